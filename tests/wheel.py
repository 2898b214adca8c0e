"""Check the built wheel, in a clean environment without this repository's sources."""

from __future__ import annotations

import importlib.metadata
import pathlib

import flask

import sitemap_middleware
from sitemap_middleware import SitemapMiddleware

package = pathlib.Path(sitemap_middleware.__file__).parent
assert "site-packages" in package.parts, package
assert (package / "py.typed").exists()
assert importlib.metadata.version("sitemap-middleware")
assert all(hasattr(sitemap_middleware, name) for name in sitemap_middleware.__all__)

app = flask.Flask("shop")
app.add_url_rule("/", view_func=lambda: "home")
app.wsgi_app = SitemapMiddleware(app.wsgi_app, base_url="https://example.com", store="memory://")
client = app.test_client()
client.get("/")
answer = client.get("/sitemap.xml")
assert answer.status_code == 200, answer.text
assert "<loc>https://example.com/</loc>" in answer.text, answer.text
print("1 passed, 0 failed")
