"""A site with one route and very many pages (Starlette)."""

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware


def page(request: Request) -> HTMLResponse:
    return HTMLResponse(f"<!doctype html><title>{request.path_params['number']}</title><p>A page.")


app = Starlette(routes=[Route("/pages/{number:int}", page)])
app.add_middleware(SitemapMiddleware, learn="/pages/{number}")
