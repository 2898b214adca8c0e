"""`check` of an app records no response to its own requests for pages."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.cli.main import command

from ...support.command_line import cli_runner

ADDED = """
    from {module} import {kind}
    from starlette.middleware.gzip import GZipMiddleware
    from starlette.responses import HTMLResponse
    from starlette.routing import Route
    from sitemap_middleware import SitemapMiddleware

    async def home(request):
        return HTMLResponse('<p>Home')

    async def post(request):
        return HTMLResponse('<p>Post')

    app = {kind}(routes=[Route("/", home), Route("/post/{{n}}", post)])
    {first}
    app.add_middleware(
        SitemapMiddleware, store="sqlite:///site.sqlite3", base_url="http://localhost", learn="/post/{{n}}",
        verify=False,
    )
    {last}
"""
GZIP = "app.add_middleware(GZipMiddleware)"


@pytest.mark.parametrize("kind", ["starlette.applications:Starlette", "fastapi:FastAPI"])
@pytest.mark.parametrize(("first", "last"), [("", ""), (GZIP, ""), ("", GZIP)], ids=["alone", "outside", "inside"])
def test_pages_requested_by_check_are_no_visits(
    kind: str, first: str, last: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, _, name = kind.partition(":")
    (tmp_path / "shop.py").write_text(textwrap.dedent(ADDED.format(module=module, kind=name, first=first, last=last)))
    monkeypatch.chdir(tmp_path)
    ran = cli_runner().invoke(command, ["check", "shop.py:app"])
    assert "1 page requested" in ran.output, ran.output
    app = Starlette(routes=[Route("/", HTMLResponse("<p>Home"))])
    site = SitemapMiddleware(app, store="sqlite:///site.sqlite3", base_url="http://localhost", verify=False)
    assert site.explain("/").page is None
    site.close()
