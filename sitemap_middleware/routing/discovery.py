"""Discovery: which URLs an app has, read off its own URL map whenever it is asked.

`discover_routes` goes through whatever wraps and mounts apps and hands each to the module
of its framework. Frameworks are looked for among the modules that are already
imported: an app of one that is not cannot be here.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import ModuleType
from typing import Any, Final

from ..models import Context, PathBuilder, Route
from .change_detector import ChangeDetector

_MAX_LAYERS: Final = 32
"""Layers of wrappers and mounts that are looked through; more is a circle."""

_WRAPPED_APP_NAMES: Final = (
    "app",
    "wsgi_app",
    "asgi_app",
    "application",
    "wsgi_application",
    "other_asgi_app",
    "wrapped",
    "_app",
    "inner",
    "func",
    "__wrapped__",
)
"""Names under which middleware, of either protocol and by any author, keeps the app that it wraps."""


_PROXY_MIDDLEWARE_NAME: Final = re.compile("proxy_?fix|proxy_?headers|forwarded|reverse_?prox", re.IGNORECASE)
"""In the names of classes of middleware that correct requests by what a proxy says."""


def discover_routes(
    app: Any, witness: ChangeDetector, prefix: str = "", host: str | None = None, depth: int = 0
) -> Iterator[Route]:
    """Every route that answers GET, of an app, of what it wraps and of what is mounted in it.

    The witness is told of all that is looked at.
    """
    if depth > _MAX_LAYERS:
        return
    witness.watch(partial(_outer_layers, app))
    found = list(layers(app))
    taken: list[str] = []
    for layer in found:
        mounts = _mounts(layer)
        for path in sorted(mounts, key=len, reverse=True):  # the longest is asked first
            yield from _not_taken(discover_routes(mounts[path], witness, prefix + path, host, depth + 1), taken)
            taken.append(prefix + path)
    for layer in found:
        if is_werkzeug(layer):
            from . import werkzeug

            yield from _not_taken(werkzeug.werkzeug_routes(layer, witness, prefix, host), taken)
        elif is_starlette(layer):
            from . import starlette

            yield from _not_taken(starlette.starlette_routes(layer, witness, prefix, host, depth), taken)


def matching_template(app: Any, path: str, host: str | None, depth: int = 0) -> str | None:
    """The template of the route that the app's own router gives a GET of a decoded path; None if it gives it none.

    Args:
        app: the app.
        path: decoded.
        host: the one that it is asked on, if the app has routes for that alone.
        depth: how many apps are around.
    """
    if depth > _MAX_LAYERS:
        return None
    for layer in layers(app):
        mounts = _mounts(layer)
        for prefix in sorted(mounts, key=len, reverse=True):
            if f"{path}/".startswith(f"{prefix}/"):
                found = matching_template(mounts[prefix], path[len(prefix) :], host, depth + 1)
                return None if found is None else prefix + found
        if is_werkzeug(layer):
            from . import werkzeug

            return werkzeug.matching_template(layer, path, host)
        if is_starlette(layer):
            from . import starlette

            return starlette.matching_template(layer, path, host, depth)
    return None


def layers(app: Any) -> Iterator[Any]:
    """An app and what it wraps, from the outside in, each as the object it belongs to."""
    seen: set[int] = set()
    while app is not None and len(seen) < _MAX_LAYERS:
        owner = getattr(app, "__self__", None)
        whole = owner is None or isinstance(owner, ModuleType)
        layer = app if whole else owner  # Flask's app.wsgi_app is a method of the app
        if id(layer) in seen:
            return
        seen.add(id(layer))
        yield layer
        if is_starlette(layer) or (is_werkzeug(layer) and not whole):
            return
        app = next((inner for name in _WRAPPED_APP_NAMES if callable(inner := _get_attribute(layer, name))), None)


def framework_app(app: Any) -> Any:
    """The first app of a known framework among the layers; None where there is none."""
    return next((layer for layer in layers(app) if is_werkzeug(layer) or is_starlette(layer)), None)


def has_readable_routes(app: Any) -> bool:
    """Whether among the layers there is an app whose routes can be read, or a dispatcher to several."""
    return any(is_werkzeug(layer) or is_starlette(layer) or _mounts(layer) for layer in layers(app))


def only_routes_answer(app: Any) -> bool:
    """Whether nothing answers but the routes: it is a Flask app, no middleware around it, no hook before requests."""
    first = next(layers(app), None)
    return is_werkzeug(first) and getattr(first, "before_request_funcs", None) == {}


def is_werkzeug(app: Any) -> bool:
    """Whether it is an app with Werkzeug's URL map: Flask's, Quart's, or one's own."""
    routing = sys.modules.get("werkzeug.routing")
    return routing is not None and isinstance(_get_attribute(app, "url_map"), routing.Map)


def is_starlette(app: Any) -> bool:
    """Whether it is a Starlette or FastAPI app, or a router of theirs."""
    applications, routing = sys.modules.get("starlette.applications"), sys.modules.get("starlette.routing")
    return (applications is not None and isinstance(app, applications.Starlette)) or (
        routing is not None and isinstance(app, routing.Router)
    )


def proxy_middleware(app: Any) -> Any:
    """What inside the sitemap's middleware corrects requests by a proxy's headers, such as Werkzeug's ProxyFix.

    None if nothing does. What lies around the sitemap's middleware is passed over.
    """
    found = framework_app(app)
    chains = [[*layers(app)], *([*layers(_get_attribute(found, name))] for name in ("wsgi_app", "asgi_app"))]
    chains.append([getattr(one, "cls", None) for one in _get_attribute(found, "user_middleware") or ()])
    for chain in chains:
        ours = [number for number, layer in enumerate(chain) if "SitemapMiddleware" in _names(layer)]
        for layer in chain[ours[-1] + 1 if ours else 0 :]:
            if any(map(_PROXY_MIDDLEWARE_NAME.search, _names(layer))):
                return layer
    return None


def _names(layer: Any) -> list[str]:
    """The names of a layer's class, or of the class that it is, and of those that it is derived from."""
    return [one.__name__ for one in (layer if isinstance(layer, type) else type(layer)).__mro__]


def trusted_hosts(app: Any) -> tuple[str, ...]:
    """The hosts that the app's own settings trust; ``.example.com`` stands for its subdomains."""
    app = framework_app(app)
    if is_werkzeug(app):
        from . import werkzeug

        return werkzeug.trusted_hosts(app)
    if is_starlette(app):
        from . import starlette

        return starlette.trusted_hosts(app)
    return ()


def root_path(app: Any) -> str:
    """The root path that the app itself declares (`FastAPI(root_path=…)`); empty where it declares none."""
    return str(_get_attribute(framework_app(app), "root_path") or "") if is_starlette(framework_app(app)) else ""


def _mounts(app: Any) -> Mapping[str, Any]:
    """The apps that a dispatcher such as Werkzeug's has by the first part of the path; none where it is no such."""
    mounts = _get_attribute(app, "mounts")
    known = mounts if isinstance(mounts, dict) else {}
    return {path.rstrip("/"): mounted for path, mounted in known.items() if isinstance(path, str)}


def _outer_layers(app: Any) -> list[Any]:
    """The layers of an app, and what their dispatchers have; all but the routes."""
    found = list(layers(app))
    for layer in tuple(found):
        found += _mounts(layer).items()
    return found


def _not_taken(routes: Iterator[Route], taken: list[str]) -> Iterator[Route]:
    """Routes but those whose paths are taken: another app is asked for them."""
    before = tuple(taken)
    if not before:
        return routes

    def free(path: str) -> bool:
        return not any(f"{path}/".startswith(f"{other}/") for other in before)

    return shadowed_routes((route for route in routes if free(route.path)), free)


def shadowed_routes(routes: Iterable[Route], free: Callable[[str], bool]) -> Iterator[Route]:
    """Routes that are asked only for the paths that something before them leaves free."""
    for route in routes:
        yield route if route.builder is None else route._replace(builder=_ShadowedBuilder(route.builder, free))


class _ShadowedBuilder:
    """The builder of a route that is asked only for free paths."""

    def __init__(self, builder: PathBuilder, free: Callable[[str], bool]) -> None:
        self._builder = builder
        self._free = free
        self.names = builder.names
        self.context: Callable[[], Context | None] = builder.context

    def build(self, params: Mapping[str, Any]) -> str:
        path = self._builder.build(params)
        if not self._free(path):
            raise ValueError(f"{path} leads to another route of the app")
        return path

    def matches(self, path: str) -> bool:
        return self._free(path) and self._builder.matches(path)


def check_params(params: Mapping[str, Any], needed: Iterable[str], known: Iterable[str]) -> None:
    """`ValueError` where parameters are missing, or are none of the route's."""
    if missing := set(needed) - set(params):
        raise ValueError(f"the route's {', '.join(sorted(missing))} is missing")
    if unknown := set(params) - set(known):
        raise ValueError(f"the route has no parameter {', '.join(sorted(map(str, unknown)))}")


def _get_attribute(app: Any, name: str) -> Any:
    try:
        return getattr(app, name, None)
    except Exception:  # a proxy that is bound to nothing now
        return None
