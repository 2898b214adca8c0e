"""The served site as a Flask app. Each response names the process that sent it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import flask

from sitemap_middleware import Entry, SitemapMiddleware, sitemap

from .served_site import SHOPS, STATIC, body, entry, hangs, headers
from .windows import signing_wsgi


def shops() -> Iterator[Entry]:
    for name in SHOPS:
        yield entry(name)
        if hangs():
            time.sleep(60 * 60)


def page(**_: Any) -> flask.Response:
    path = flask.request.path
    return flask.Response(body(path), headers=headers(path))


@sitemap(values=shops)
def shop(name: str) -> flask.Response:
    return page()


app = flask.Flask(__name__, static_folder=None)
for path in (*STATIC, "/posts/<slug>"):
    app.add_url_rule(path, path, page)
app.add_url_rule("/shops/<name>", "shops", shop)
middleware = SitemapMiddleware(app.wsgi_app, learn="/posts/<slug>")
app.wsgi_app = signing_wsgi(middleware)  # type: ignore[method-assign] # as Flask's docs do
