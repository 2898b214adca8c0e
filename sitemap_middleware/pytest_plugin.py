"""The pytest plugin: the fixture `sitemap_of`, by which tests of an app read its sitemap.

pytest imports this module in every run, so it imports nothing else before the fixture is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .sitemap_in_test import SitemapOf


@pytest.fixture
def sitemap_of() -> SitemapOf:
    """A function that reads the sitemap of an app.

    ``assert "/about" in sitemap_of(app)``
    """
    from .sitemap_in_test import read_sitemap

    return read_sitemap
