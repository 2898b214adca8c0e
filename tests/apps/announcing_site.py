"""A site whose pages and whose clock are files, so that several processes see the same."""

from __future__ import annotations

import os
from pathlib import Path

import flask

from sitemap_middleware import SitemapMiddleware, sitemap


def now() -> float:
    return float(Path("clock").read_text())


app = flask.Flask(__name__, static_folder=None)


@app.get("/items/<slug>")
@sitemap(values=lambda: Path("items").read_text().split())
def item(slug: str) -> str:
    return f"<!doctype html><main>{slug}"


@app.get("/pid")
def pid() -> flask.Response:
    return flask.Response(str(os.getpid()), mimetype="text/plain")


app.wsgi_app = SitemapMiddleware(app.wsgi_app, indexnow=True, clock=now, verify=False)  # type: ignore[method-assign] # as Flask's docs do
