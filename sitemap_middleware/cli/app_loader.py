"""Loading: the app that `module:attribute` names, and the middleware about it or within. Refuses in one line."""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import inspect
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NoReturn

from ..middleware import SitemapMiddleware
from ..routing import wrapping
from .terminal import CommandError

_MAX_LAYERS: Final = 100
"""Layers of an app that are looked through for the middleware."""

_LIBRARY_FOLDERS: Final = tuple(
    f"{folder}{os.sep}"
    for folder in (Path(__file__).parents[1], *map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib")))
)
"""Where code lies that is not the owner's."""

_ADD_MIDDLEWARE_HINT: Final = (
    "add it: app.add_middleware(SitemapMiddleware) in Starlette and FastAPI,"
    " app.wsgi_app = SitemapMiddleware(app.wsgi_app) in Flask"
)


_USUAL_APP_NAMES: Final = (
    "app",
    "application",
    "create_app",
    "make_app",
    "get_app",
    "build_app",
    "asgi",
    "wsgi",
    "api",
    "server",
)
"""Usual names of apps and of functions that make one."""

_NAME_APP_HINT: Final = "name the app itself, without --factory or parentheses"


def load_app(name: str, *, factory: bool) -> tuple[Any, SitemapMiddleware]:
    """The app that `module:attribute` names, and its middleware."""
    module, colon, said = name.partition(":")
    if not (module and colon and said):
        raise CommandError(f"{name!r} names no app: give MODULE:ATTRIBUTE, such as app:app or shop.web:app")
    attribute, arguments = _parse_attribute(said, name)
    app = _find_attribute(_import_module(module), module, attribute)
    if arguments is None and (factory or _is_app_factory(app)):
        arguments = (), {}
        name += "()"
    if arguments is not None:
        if not callable(app):
            raise CommandError(
                f"{name.removesuffix('()')} is {_type_name(app)}, no function that makes an app: {_NAME_APP_HINT}"
            )
        app = _call_factory(functools.partial(app, *arguments[0], **arguments[1]), name)
    found = _find_middleware(app, name)
    if found is not None:
        return app, found
    if not callable(app):
        raise CommandError(f"{name} is {_type_name(app)}, no app: a WSGI or ASGI app can be called")
    raise CommandError(f"{name} has no SitemapMiddleware; {_ADD_MIDDLEWARE_HINT}")


def _parse_attribute(said: str, name: str) -> tuple[str, tuple[tuple[Any, ...], dict[str, Any]] | None]:
    """The attribute, and the arguments if it is called as gunicorn has it: ``create_app("production")``."""
    if not said.endswith(")"):
        return said, None
    try:
        call = ast.parse(said, mode="eval").body
        if isinstance(call, ast.Call):
            named = {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}
            return ast.unparse(call.func), (tuple(map(ast.literal_eval, call.args)), named)
    except (SyntaxError, ValueError):
        pass
    raise CommandError(f"{name!r} cannot be read: give a call with plain values, such as shop:create_app('production')")


def _is_app_factory(app: Any) -> bool:
    """Whether it is a function that makes an app: it can be called with nothing, as no app can."""
    if not inspect.isfunction(app) or inspect.iscoroutinefunction(app):
        return False
    taken = inspect.signature(app).parameters.values()
    return all(one.default is not one.empty or one.kind is one.VAR_KEYWORD for one in taken)


def _import_module(name: str) -> Any:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and f"{name}.".startswith(f"{error.name}."):
            raise CommandError(
                f"there is no module {error.name!r} in {here} nor where Python looks for modules"
            ) from error
        _fail(f"module {name} cannot be imported", error)
    except (Exception, SystemExit) as error:
        _fail(f"module {name} cannot be imported", error)


def _find_attribute(module: Any, name: str, attribute: str) -> Any:
    found = module
    for part in attribute.split("."):
        try:
            found = getattr(found, part)
        except AttributeError as error:
            if found is not module:
                told = f"module {name} has no {attribute!r}: there is no {part!r} in {_type_name(found)}"
                raise CommandError(told) from error
            others = [one for one in _USUAL_APP_NAMES if one != part and callable(getattr(module, one, None))]
            cure = f"; it has {others[0]}, so try {name}:{others[0]}" if others else ""
            raise CommandError(f"module {name} has no {part!r}{cure}") from error
    return found


def _call_factory(factory: Callable[[], Any], name: str) -> Any:
    try:
        return factory()
    except (Exception, SystemExit) as error:
        _fail(f"{name} failed", error)


def _find_middleware(app: Any, name: str) -> SitemapMiddleware | None:
    """The first SitemapMiddleware among an app's layers."""
    waiting, seen = [app], dict[int, Any]()
    while waiting and len(seen) < _MAX_LAYERS:
        layer = waiting.pop(0)
        if id(layer) in seen:
            continue
        seen[id(layer)] = layer
        if isinstance(layer, SitemapMiddleware):
            return layer
        if wrapping.is_starlette(layer) and hasattr(layer, "build_middleware_stack"):
            stack = layer.middleware_stack or _call_factory(layer.build_middleware_stack, f"the middleware of {name}")
            found = _find_middleware(stack, name)
            if found is not None:
                found.service.urlmap.bind(layer)
                return found
        waiting += [*wrapping.layers(layer), *_closure_values(layer)]
    return None


def _closure_values(layer: Any) -> list[Any]:
    """What a function that wraps an app has about it."""
    cells = getattr(layer, "__closure__", None) or ()
    held = []
    for cell in cells:
        with contextlib.suppress(ValueError):  # a name that was not yet given a value
            held.append(cell.cell_contents)
    return [one for one in held if callable(one)]


def _fail(what: str, error: BaseException) -> NoReturn:
    """In one line: what failed, how, and on which line of the owner's own code."""
    if isinstance(error, SyntaxError):
        place = f"{error.filename}, line {error.lineno}"
        said = error.msg
    else:
        frames = [one for one in traceback.extract_tb(error.__traceback__) if not one.filename.startswith("<")]
        own = [one for one in frames if not one.filename.startswith(_LIBRARY_FOLDERS)] or frames
        place = f"{own[-1].filename}, line {own[-1].lineno}" if own else "before its first line"
        said = str(error)
    raise CommandError(f"{what}: {type(error).__name__}: {said} ({place})") from error


def _type_name(thing: object) -> str:
    if inspect.ismodule(thing):
        return f"the module {thing.__name__}"
    return f"an object of type {type(thing).__name__}"
