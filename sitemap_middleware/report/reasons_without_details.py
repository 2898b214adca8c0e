"""Removes paths, URLs and times from the reasons why pages are not listed, so that the report groups equal ones."""

from __future__ import annotations

import re
from typing import Final

UNDATED: Final = "no date is known"
"""The group of listed pages without a lastmod."""

_GENERAL_FORMS: Final = (
    (re.compile(r"its canonical URL is another: .*", re.DOTALL), "its canonical URL is another"),
    (
        re.compile(r"it has the same content as .*, which was known before it", re.DOTALL),
        "it has the same content as a page that was known before it",
    ),
    (
        re.compile(r"it is the same page as .*", re.DOTALL),
        "it is the same page as that of its path with the other slash",
    ),
    (
        re.compile(r"an answer of .* confirms an earlier one of that kind"),
        "repeated answers show that it is no longer a page",
    ),
    (re.compile(r"it is .*, not a page", re.DOTALL), "it is of a media type that is not a page"),
    (re.compile(r"its suffix stands for .*", re.DOTALL), "its suffix stands for something that is not a page"),
)


def without_details(reason: str) -> str:
    """The group of a reason why a page is not listed."""
    for form, group in _GENERAL_FORMS:
        if form.fullmatch(reason):
            return group
    return reason
