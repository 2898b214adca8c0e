"""WSGI and ASGI middleware that serves an accurate /sitemap.xml for Flask, Starlette, FastAPI and other apps."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .evidence.page_verdict import Explanation
    from .exceptions import MiddlewareLookupError, OptionError, SitemapError, StoreError
    from .middleware import SitemapMiddleware
    from .options.decorator import sitemap
    from .options.entry import Entry
    from .protocol.extensions import News, Video
    from .stores import Store

__all__ = [
    "Entry",
    "Explanation",
    "MiddlewareLookupError",
    "News",
    "OptionError",
    "SitemapError",
    "SitemapMiddleware",
    "Store",
    "StoreError",
    "Video",
    "sitemap",
]

_MODULES: Final = {
    "Entry": "options.entry",
    "Explanation": "evidence.page_verdict",
    "MiddlewareLookupError": "exceptions",
    "News": "protocol.extensions",
    "OptionError": "exceptions",
    "SitemapError": "exceptions",
    "SitemapMiddleware": "middleware",
    "Store": "stores",
    "StoreError": "exceptions",
    "Video": "protocol.extensions",
    "sitemap": "options.decorator",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use: pytest imports the package in every run, for the plugin."""
    if name in _MODULES:
        value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        return value
    if name == "__version__":  # takes milliseconds
        from importlib.metadata import version

        return version("sitemap-middleware")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
