"""A site whose pages say all that an entry can: images, videos, news, versions in other languages."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import flask

from sitemap_middleware import Entry, News, SitemapMiddleware, Video, sitemap

NOW = datetime.fromtimestamp(int(os.environ.get("NOW", time.time())), UTC)
"""What the site was given by the test, which must know the same dates."""
IMAGES = {f"/photos/{name}": [f"/static/{name}-{number}.jpg" for number in range(3)] for name in ("rye", "cake & tea")}
VIDEOS: dict[str, dict[str, Any]] = {
    "/films/kneading": {
        "thumbnail_loc": "/static/kneading.jpg?w=1&h=2",
        "title": "Kneading <by hand> & more",
        "description": "How to knead “a dough”.",
        "content_loc": "/static/kneading.mp4",
        "player_loc": "/player?film=kneading",
        "duration": 600,
        "expiration_date": NOW + timedelta(days=90),
        "rating": 4.5,
        "view_count": 1234,
        "publication_date": NOW - timedelta(days=9),
        "tags": ["dough"],
        "family_friendly": True,
        "restriction": ("allow", "AT DE"),
        "requires_subscription": False,
        "uploader": "The Loaf",
        "platform": ("deny", "tv"),
        "live": False,
    }
}
NEWS = {
    f"/news/{number}": {
        "name": "The Loaf",
        "language": "en",
        "publication_date": NOW - timedelta(hours=number + 1),
        "title": f"Rye & wheat rise by {number} %",
    }
    for number in range(3)
}
LANGUAGES = ("en", "de-AT", "zh-Hans")
MODIFIED = {path: NOW - timedelta(days=10 + day) for day, path in enumerate([*IMAGES, *VIDEOS, *NEWS])}
"""When each page was last modified, except for those in several languages."""


def entries(kind: str) -> list[Entry]:
    said: dict[str, dict[str, Any]] = {
        **{path: {"images": images} for path, images in IMAGES.items()},
        **{path: {"videos": [Video(**video)]} for path, video in VIDEOS.items()},
        **{path: {"news": News(**news)} for path, news in NEWS.items()},
    }
    return [
        Entry({"name": path.removeprefix(kind)}, lastmod=MODIFIED[path], changefreq="weekly", priority=0.8, **more)
        for path, more in said.items()
        if path.startswith(kind)
    ]


flask_app = flask.Flask(__name__, static_folder=None)
for kind in ("/photos/", "/films/", "/news/"):

    @flask_app.get(f"{kind}<name>", endpoint=kind.strip("/"))
    @sitemap(values=partial(entries, kind))
    def page(name: str) -> str:
        return "<!doctype html><title>page</title><p>A page."


@flask_app.get("/<lang>/about")
@sitemap(values=LANGUAGES, alternates="lang", section="languages")
def about(lang: str) -> str:
    return f"<!doctype html><html lang={lang}><title>About</title><p>About us."


flask_app.wsgi_app = SitemapMiddleware(flask_app.wsgi_app, sections=True, x_default="en")  # type: ignore[method-assign] # as Flask's docs do
