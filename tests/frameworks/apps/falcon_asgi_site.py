"""The Falcon site of `falcon_site` with coroutines, as an ASGI app."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import falcon.asgi

from . import falcon_site
from .falcon_site import HOST, INSTALL, PEOPLE

__all__ = ["HOST", "INSTALL", "PEOPLE", "PROTOCOL", "ROOT_PATH", "add_page", "build"]

PROTOCOL = "asgi"
ROOT_PATH = False


def with_coroutines(resource: type) -> type:
    """The same class of resources, whose responders are coroutines."""

    def coroutine(respond: Callable[..., None]) -> Callable[..., Any]:
        @functools.wraps(respond)  # and with its mark
        async def answer(self: Any, request: Any, response: Any, **params: Any) -> None:
            respond(self, request, response, **params)

        return answer

    responders = {name: coroutine(getattr(resource, name)) for name in dir(resource) if name.startswith("on_")}
    return type(resource.__name__, (resource,), responders)


def build() -> Any:
    return falcon_site.build(falcon.asgi.App(), with_coroutines)


def add_page(app: Any, path: str) -> None:
    app.add_route(path, with_coroutines(falcon_site.Page)())
