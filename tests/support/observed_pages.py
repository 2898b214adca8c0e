"""Site signals of pages that a test makes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sitemap_middleware.evidence.site_signals import SiteSignals, site_signals
from sitemap_middleware.models import Page


def signals_of(pages: Iterable[Page], *arguments: Any, **options: Any) -> SiteSignals:
    """The signals of a site with these pages; see `site_signals`."""
    return site_signals(pages, *arguments, **options)
