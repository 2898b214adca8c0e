"""The report on real servers of both protocols: shown in debug mode on this machine, else the app's own 404."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ..support import servers

REPORT = "/sitemap-report"

FLASK = """
from flask import Flask
from sitemap_middleware import SitemapMiddleware
app = bare = Flask("shop")
app.debug = {debug}
app.add_url_rule("/", "home", lambda: "<h1>Home</h1>")
app.wsgi_app = SitemapMiddleware(app.wsgi_app, base_url="https://shop.example", store="memory://", {options})
"""

STARLETTE = """
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route
from sitemap_middleware import SitemapMiddleware
async def home(request): return HTMLResponse("<h1>Home</h1>")
app = Starlette(debug={debug}, routes=[Route("/", home)])
app.add_middleware(SitemapMiddleware, base_url="https://shop.example", store="memory://", {options})
"""

ALLOWING = 'report="/sitemap-report", authorize=lambda request: request.headers.get("X-Key") == "open"'


def serve(kind: str, folder: Path, *, debug: bool, options: str) -> Iterator[servers.Server]:
    code = (FLASK if kind == "wsgi" else STARLETTE).format(debug=debug, options=options)
    name = f"report_shop_{kind}"
    (folder / f"{name}.py").write_text(code, "utf-8")
    launch = servers.gunicorn if kind == "wsgi" else servers.uvicorn
    with launch(f"{name}:app", folder) as server:
        yield server


@pytest.fixture(params=["wsgi", "asgi"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_in_debug_mode_this_machine_sees_it_and_what_a_proxy_forwards_does_not(kind: str, tmp_path: Path) -> None:
    for server in serve(kind, tmp_path, debug=True, options=f"report={REPORT!r}"):
        answer = server.get(REPORT)
        assert (answer.status, "What the sitemap lists" in answer.text) == (200, True)
        assert server.get(f"{REPORT}/style.css").header("content-type") == "text/css; charset=utf-8"
        for headers in ({"X-Forwarded-For": "127.0.0.1"}, {"Host": "shop.example"}, {"Forwarded": "for=127.0.0.1"}):
            assert server.get(REPORT, headers).status == 404


def test_authorize_lets_in(kind: str, tmp_path: Path) -> None:
    for server in serve(kind, tmp_path, debug=False, options=ALLOWING):
        for path in (REPORT, f"{REPORT}/pages", f"{REPORT}/health"):
            answer = server.get(path, {"X-Key": "open", "Host": "shop.example", "X-Forwarded-For": "10.0.0.1"})
            assert (answer.status, answer.header("cache-control")) == (200, "no-store")
            assert server.get(path).status == 404
