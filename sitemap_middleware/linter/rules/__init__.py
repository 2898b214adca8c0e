"""The rules, by code. Each module declares one family."""

from __future__ import annotations

from typing import Final

from . import coverage, fetch, hints, hreflang, image, index, lastmod, loc, news, page, robots, video, xml
from .base import Family, Rule, Severity

__all__ = ["FAMILIES", "RULES", "Family", "Rule", "Severity"]

FAMILIES: Final[tuple[Family, ...]] = (
    fetch.FAMILY,
    xml.FAMILY,
    index.FAMILY,
    loc.FAMILY,
    lastmod.FAMILY,
    hints.FAMILY,
    image.FAMILY,
    video.FAMILY,
    news.FAMILY,
    hreflang.FAMILY,
    page.FAMILY,
    robots.FAMILY,
    coverage.FAMILY,
)

RULES: Final[dict[str, Rule]] = {rule.code: rule for family in FAMILIES for rule in family.rules}
