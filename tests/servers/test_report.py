"""The report on real servers of both protocols: shown in debug mode on this machine alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ..support import servers

REPORT = "/sitemap-report"

FLASK = """
from flask import Flask
from sitemap_middleware import SitemapMiddleware
app = Flask("shop")
app.debug = True
app.add_url_rule("/", "home", lambda: "<h1>Home</h1>")
app.wsgi_app = SitemapMiddleware(app.wsgi_app, base_url="https://shop.example", store="memory://", report="/sitemap-report")
"""

STARLETTE = """
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route
from sitemap_middleware import SitemapMiddleware
async def home(request): return HTMLResponse("<h1>Home</h1>")
app = Starlette(debug=True, routes=[Route("/", home)])
app.add_middleware(SitemapMiddleware, base_url="https://shop.example", store="memory://", report="/sitemap-report")
"""


@pytest.mark.parametrize(("launch", "app"), [(servers.gunicorn, FLASK), (servers.uvicorn, STARLETTE)])
def test_in_debug_mode_this_machine_sees_it_and_what_a_proxy_forwards_does_not(
    launch: Any, app: str, tmp_path: Path
) -> None:
    (tmp_path / "report_shop.py").write_text(app, "utf-8")
    with launch("report_shop:app", tmp_path) as server:
        answer = server.get(REPORT)
        assert (answer.status, "What the sitemap lists" in answer.text) == (200, True)
        assert server.get(f"{REPORT}/style.css").header("content-type") == "text/css; charset=utf-8"
        for headers in ({"X-Forwarded-For": "127.0.0.1"}, {"Host": "shop.example"}, {"Forwarded": "for=127.0.0.1"}):
            assert server.get(REPORT, headers).status == 404
