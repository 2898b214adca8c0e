"""The web app of reader (Flask): a feed reader with one feed and one entry."""

from pathlib import Path

from reader import make_reader
from reader._app import create_app

from sitemap_middleware import SitemapMiddleware

from .windows import explaining_wsgi

FEED = "https://example.com/feed"

if not Path("reader.sqlite").exists():
    with make_reader("reader.sqlite") as reader:
        reader.add_feed(FEED, allow_invalid_url=True)
        reader.add_entry({"feed_url": FEED, "id": "1", "title": "News & more", "link": "https://example.com/1"})

bare = create_app({"": {"url": "reader.sqlite"}})

wrapped = explaining_wsgi(SitemapMiddleware(bare, store="memory://"))
