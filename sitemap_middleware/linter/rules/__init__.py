"""The rules, by code. Each module declares one family."""

from __future__ import annotations

from typing import Final

from . import fetch, hints, index, lastmod, loc, xml
from .base import Family, Rule, Severity

__all__ = ["FAMILIES", "RULES", "Family", "Rule", "Severity"]

FAMILIES: Final[tuple[Family, ...]] = (
    fetch.FAMILY,
    xml.FAMILY,
    index.FAMILY,
    loc.FAMILY,
    lastmod.FAMILY,
    hints.FAMILY,
)

RULES: Final[dict[str, Rule]] = {rule.code: rule for family in FAMILIES for rule in family.rules}
