"""Imports the app that `module:attribute` or `file.py:attribute` names, and finds its SitemapMiddleware."""

from __future__ import annotations

import ast
import importlib
import inspect
import operator
import os
import re
import sys
import sysconfig
import traceback
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NoReturn

from ..adapters.app_lookup import ADD_MIDDLEWARE_HINT, find_all
from ..middleware import SitemapMiddleware
from .terminal import CommandError, printable

_LIBRARY_FOLDERS: Final = tuple(
    f"{folder}{os.sep}"
    for folder in (Path(__file__).parents[1], *map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib")))
)
"""Folders of code that is not the user's own."""

_MODULE_OR_FILE: Final = re.compile(r"[^\W\d][\w.]*|.+\.py")

_APP_NAME: Final = re.compile(rf"({_MODULE_OR_FILE.pattern}):(?=[^\W\d])(.+)", re.DOTALL)

_USUAL_APP_NAMES: Final = ("app", "application", "create_app", "make_app")

_Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def load_app(app: Any) -> tuple[Any, SitemapMiddleware]:
    """Return an app, which may be given as `module:attribute` or `file.py:attribute`, and its middleware.

    A factory is called: with the arguments given, as in gunicorn's ``shop:create_app("production")``,
    else with none. Raises `CommandError`.
    """
    name = app if isinstance(app, str) else printable(repr(app))
    if isinstance(app, str):
        app, name = _import_app(app)
    try:
        found = find_all(app, SitemapMiddleware)
    except Exception as error:
        _fail(f"the middleware of {name} failed", error)
    if found:
        return app, found[0]
    if not callable(app):
        raise CommandError(f"{name} is {_describe_type(app)}, not an app: WSGI and ASGI apps are callable")
    if not _may_be_app(app):
        raise CommandError(f"{name} is a function that is no app; if it makes one, give its arguments: {name}('...')")
    raise CommandError(f"{name} has no SitemapMiddleware; {ADD_MIDDLEWARE_HINT}")


def is_app_name(text: str) -> bool:
    """Whether a text has the form of an app's name, `module:attribute` or `file.py:attribute`."""
    return _APP_NAME.fullmatch(text) is not None


def _import_app(name: str) -> tuple[Any, str]:
    """Return the app that a name stands for, and what to call it in errors."""
    match = _APP_NAME.fullmatch(name)
    if match is None:
        example = f"{name}:app" if _MODULE_OR_FILE.fullmatch(name) else "app:app, shop.web:app or shop/web.py:app"
        raise CommandError(
            f"{name!r} does not name an app: give MODULE:ATTRIBUTE or FILE.py:ATTRIBUTE, such as {example}"
        )
    place, expression = match.groups()
    attribute, arguments = _parse_attribute(expression, name)
    module = _import_module(_module_of_file(place) if place.endswith(".py") else place)
    try:
        app = operator.attrgetter(attribute)(module)
    except AttributeError as error:
        raise CommandError(_missing_attribute(module, place, attribute, error)) from error
    if arguments is None:
        if not _is_function(app) or _required_parameters(app):
            return app, name
        arguments = (), {}
        name += "()"
    if not callable(app):
        kind = _describe_type(app)
        raise CommandError(f"{name} is {kind}, not an app factory: name the app itself, without parentheses")
    try:
        return app(*arguments[0], **arguments[1]), name
    except (Exception, SystemExit) as error:
        _fail(f"{name} failed", error)


def _parse_attribute(expression: str, name: str) -> tuple[str, _Arguments | None]:
    """Return the attribute, and the arguments if the expression is a call."""
    if not expression.endswith(")"):
        return expression, None
    try:
        call = ast.parse(expression, mode="eval").body
        if isinstance(call, ast.Call):
            keywords = {keyword.arg or "**": ast.literal_eval(keyword.value) for keyword in call.keywords}
            if "**" not in keywords:
                return ast.unparse(call.func), (tuple(map(ast.literal_eval, call.args)), keywords)
    except (SyntaxError, TypeError, ValueError):
        pass
    raise CommandError(f"{name!r} cannot be read: give a call with plain values, such as shop:create_app('production')")


def _module_of_file(place: str) -> str:
    """Return the name of the module in a file, and make it importable: from the folder above its outermost package."""
    file = Path(place).absolute()
    if not file.is_file():
        raise CommandError(f"no such file: {place}")
    parts, folder = [] if file.stem == "__init__" else [file.stem], file.parent
    while (folder / "__init__.py").exists():
        parts.insert(0, folder.name)
        folder = folder.parent
    _search_first(folder)
    return ".".join(parts)


def _search_first(folder: Path) -> None:
    """Add a folder to the module search path."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _import_module(name: str) -> Any:
    _search_first(Path.cwd())
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing and f"{name}.".startswith(f"{missing}."):
            raise CommandError(
                f"no module named {missing!r} in {Path.cwd()} or on Python's module search path"
            ) from error
        _fail(f"module {name} cannot be imported", error)


def _missing_attribute(module: Any, place: str, attribute: str, error: AttributeError) -> str:
    """What to say if a module does not have an attribute: which one may be meant."""
    if error.obj is not module:
        return f"module {place} has no {attribute!r}: {_describe_type(error.obj)} has no {error.name!r}"
    names = [name for name, value in vars(module).items() if _may_be_app(value) and not inspect.isclass(value)]
    near = get_close_matches(str(error.name), [name for name in names if not name.startswith("_")])
    found = near or [name for name in _USUAL_APP_NAMES if name in names]
    hint = f"; it has {', '.join(found)}, so try {place}:{found[0]}" if found else ""
    return f"module {place} has no {error.name!r}{hint}"


def _may_be_app(value: Any) -> bool:
    """Whether a value can be called as an app, with the two arguments of WSGI or the three of ASGI, or as a factory."""
    return callable(value) and (not _is_function(value) or len(_required_parameters(value)) in {0, 2, 3})


def _is_function(value: Any) -> bool:
    return inspect.isfunction(value) and not inspect.iscoroutinefunction(value)


def _required_parameters(function: Any) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    return [item.name for item in parameters if item.default is item.empty and item.kind is not item.VAR_KEYWORD]


def _fail(what: str, error: BaseException) -> NoReturn:
    """Raise a `CommandError` of one line, with the error and the line of the user's own code that caused it."""
    if isinstance(error, SyntaxError):
        message, place = error.msg, f"{error.filename}, line {error.lineno}"
    else:
        message = str(error)
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<")]
        own_frames = [frame for frame in frames if not frame.filename.startswith(_LIBRARY_FOLDERS)] or frames
        place = f"{own_frames[-1].filename}, line {own_frames[-1].lineno}" if own_frames else "before its first line"
    raise CommandError(f"{what}: {type(error).__name__}: {message} ({place})") from error


def _describe_type(value: object) -> str:
    if inspect.ismodule(value):
        return f"the module {value.__name__}"
    return f"an object of type {type(value).__name__}"
