from __future__ import annotations

from typing import Any

from quart import Blueprint, Quart, websocket

from sitemap_middleware import SitemapMiddleware

from . import page
from .flask_site import with_pages

PROTOCOL = "asgi"
HOST = "shop.testserver"
PEOPLE = "/people/<int:number>"


def as_coroutine(view: Any) -> Any:
    async def coroutine(**values: Any) -> Any:
        return view(**values)

    coroutine.__name__ = view.__name__
    return coroutine


def build() -> Quart:
    app = Quart("contract", static_folder=None, subdomain_matching=True)

    @app.websocket("/live")
    async def live() -> None:
        await websocket.send("news")

    with_pages(app, Blueprint("blog", __name__, url_prefix="/blog"), as_coroutine)
    shop = Blueprint("shop", __name__, url_prefix="/shop")
    shop.add_url_rule("/", "shelves", lambda: page("/shop/"))
    shop.add_url_rule("/cart-help", "cart_help", lambda: page("/shop/cart-help"))
    app.register_blueprint(shop)
    return app


def add_page(app: Quart, path: str) -> None:
    async def later() -> str:
        return page(path)

    app.view_functions["later"] = later
    app.url_map.add(app.url_rule_class(path, endpoint="later", methods=["GET"]))


def _inside(app: Quart, **options: Any) -> Quart:
    app.asgi_app = SitemapMiddleware(app.asgi_app, **options)  # type: ignore[method-assign] # as Quart has it
    return app


INSTALL = {"outside": SitemapMiddleware, "asgi_app": _inside}
