"""The rules of the linter, by code. Each module declares one family.

`checks/` finds what they declare; its modules have the same names.
"""

from __future__ import annotations

from typing import Final

from . import (
    changefreq_and_priority,
    coverage,
    fetch,
    hreflang,
    image,
    lastmod,
    listed_page,
    loc,
    news,
    robots_txt,
    size_and_index,
    video,
    xml,
)
from .base import Family, Rule, Severity

__all__ = ["FAMILIES", "RULES", "Family", "Rule", "Severity"]

FAMILIES: Final[tuple[Family, ...]] = (
    fetch.FAMILY,
    xml.FAMILY,
    size_and_index.FAMILY,
    loc.FAMILY,
    lastmod.FAMILY,
    changefreq_and_priority.FAMILY,
    image.FAMILY,
    video.FAMILY,
    news.FAMILY,
    hreflang.FAMILY,
    listed_page.FAMILY,
    robots_txt.FAMILY,
    coverage.FAMILY,
)

RULES: Final[dict[str, Rule]] = {rule.code: rule for family in FAMILIES for rule in family.rules}
