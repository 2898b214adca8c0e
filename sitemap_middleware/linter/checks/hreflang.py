"""Checks the versions of one page in other languages. `language_versions` has the links back from other pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from ..message import Finding
from ..report import quoted
from ..rules import hreflang as rules
from ..vocabulary import XHTML
from ..xml_reader import Element
from .languages import has_ignored_region, is_hreflang
from .loc import CheckedLoc, check_loc, normal_url

_MAX_CACHED: Final = 4096


@lru_cache(_MAX_CACHED)
def _normal_href(href: str) -> str | None:
    """The URL of a version as `normal_url` gives it; None if it is not absolute. All versions name the same URLs."""
    checked = check_loc(href, is_page=False)
    return normal_url(checked) if checked.host else None


class Version(NamedTuple):
    """A version of a page."""

    code: str
    url: str
    """As `normal_url` gives it."""
    element: Element


def read_versions(elements: Sequence[Element]) -> tuple[list[Version], list[tuple[Finding, Element]]]:
    """Return the versions that an entry names, and what is wrong with them."""
    versions, findings = list[Version](), list[tuple[Finding, Element]]()
    for link in elements:
        if link.name != f"{XHTML} link":
            continue
        missing = [name for name in ("rel", "hreflang", "href") if not link.attributes.get(name, "").strip()]
        if missing or link.attributes["rel"].strip() != "alternate":
            said = f"{missing[0]} is missing" if missing else f"rel is {quoted(link.attributes['rel'])}"
            findings.append(((rules.ATTRIBUTES, said), link))
            continue
        code = link.attributes["hreflang"].strip()
        if not is_hreflang(code):
            findings.append(((rules.CODE, f"{quoted(code)} is not the code of a language"), link))
        elif has_ignored_region(code):
            findings.append(((rules.REGION, f"the region of {quoted(code)} is ignored"), link))
        url = _normal_href(link.attributes["href"])
        if url is None:
            findings.append(((rules.RELATIVE, f"{quoted(link.attributes['href'])} is not an absolute URL"), link))
        else:
            versions.append(Version(code.lower(), url, link))
    return versions, findings


def check_versions(versions: Sequence[Version], page: CheckedLoc) -> Iterator[tuple[Finding, Element]]:
    """Check the versions of a page beside each other."""
    by_code = dict[str, Version]()
    for version in versions:
        if by_code.setdefault(version.code, version).url != version.url:
            yield (rules.DUPLICATE, f"{by_code[version.code].url} is {version.code}, too"), version.element
    if versions and page.host and normal_url(page) not in {version.url for version in versions}:
        yield (rules.SELF_MISSING, "the versions of the page do not name the page itself"), versions[0].element
