"""Imports the app that `module:attribute` or `file.py:attribute` names, and finds its SitemapMiddleware."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NoReturn

from ..adapters.installation import ADD_MIDDLEWARE_HINT, find_all
from ..middleware import SitemapMiddleware
from .terminal_output import CommandError, printable

_LIBRARY_FOLDERS: Final = tuple(
    f"{folder}{os.sep}"
    for folder in (Path(__file__).parents[1], *map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib")))
)
"""Folders of code that is not the user's own."""

_MODULE_OR_FILE: Final = re.compile(r"[^\W\d][\w.]*|.+\.py")

_APP_NAME: Final = re.compile(rf"({_MODULE_OR_FILE.pattern}):(?![\\/])(.+)", re.DOTALL)

_MAX_NAMES_IN_HINT: Final = 3

_USUAL_APP_NAMES: Final = (
    *("app", "application", "create_app", "make_app", "get_app", "build_app", "asgi", "wsgi", "api", "server"),
)
"""Usual names of apps and of app factories."""

_Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def load_app(app: Any, *, factory: bool = False) -> tuple[Any, SitemapMiddleware]:
    """Return an app, which may be given as `module:attribute` or `file.py:attribute`, and its middleware.

    A factory is called: with the arguments given, as in gunicorn's ``shop:create_app("production")``,
    else with none. Raises `CommandError`.
    """
    name = app if isinstance(app, str) else printable(repr(app))
    if isinstance(app, str):
        app, name = _import_app(app, factory=factory)
    try:
        found = find_all(app, SitemapMiddleware)
    except Exception as error:
        _fail(f"the middleware of {name} failed", error)
    if found:
        return app, found[0]
    if not callable(app):
        raise CommandError(f"{name} is {_describe_type(app)}, not an app: WSGI and ASGI apps are callable")
    if inspect.isfunction(app) and not inspect.iscoroutinefunction(app) and not _may_be_app(app):
        raise CommandError(f"{name} is a function that is no app; if it makes one, give its arguments: {name}('...')")
    raise CommandError(f"{name} has no SitemapMiddleware; {ADD_MIDDLEWARE_HINT}")


def is_app_name(text: str) -> bool:
    """Whether a text has the form of an app's name, `module:attribute` or `file.py:attribute`."""
    return _APP_NAME.fullmatch(text) is not None


def _import_app(name: str, *, factory: bool) -> tuple[Any, str]:
    """Return the app that a name stands for, and what to call it in errors."""
    match = _APP_NAME.fullmatch(name)
    if match is None:
        module, _, attribute = name.rpartition(".")
        or_attribute = f" or {module}:{attribute}" if module and attribute != "py" else ""
        is_place = _MODULE_OR_FILE.fullmatch(name)
        example = f"{name}:app{or_attribute}" if is_place else "app:app, shop.web:app or shop/web.py:app"
        raise CommandError(
            f"{name!r} does not name an app: give MODULE:ATTRIBUTE or FILE.py:ATTRIBUTE, such as {example}"
        )
    place, expression = match.groups()
    attribute, arguments = _parse_attribute(expression, name)
    module_name = _module_of_file(place) if place.endswith(".py") else place
    app = _find_attribute(_import_module(module_name), place, attribute)
    if arguments is None and (factory or _is_app_factory(app)):
        arguments = (), {}
        name += "()"
    if arguments is None:
        return app, name
    if not callable(app):
        kind = _describe_type(app)
        raise CommandError(
            f"{name.removesuffix('()')} is {kind}, not an app factory: name the app itself, without --factory or"
            " parentheses"
        )
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
        near = get_close_matches(file.name, (path.name for path in file.parent.glob("*.py")), 1)
        hint = f"; did you mean {file.parent / near[0]}?" if near else ""
        raise CommandError(f"no such file: {place}{hint}")
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
    folder = Path.cwd()
    _search_first(folder)
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        is_itself = isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(f"{error.name}.")
        if not is_itself:
            _fail(f"module {name} cannot be imported", error)
        modules = [*(path.stem for path in folder.glob("*.py")), *(path.parent.name for path in folder.glob("*/*.py"))]
        near = get_close_matches(str(error.name), modules, 1)  # type: ignore[union-attr] # a ModuleNotFoundError
        hint = f"; did you mean {near[0]}?" if near else ""
        missing = error.name  # type: ignore[union-attr] # as above
        raise CommandError(
            f"no module named {missing!r} in {folder} or on Python's module search path{hint}"
        ) from error


def _find_attribute(module: Any, module_name: str, attribute: str) -> Any:
    value = module
    for part in attribute.split("."):
        try:
            value = getattr(value, part)
        except AttributeError as error:
            if value is not module:
                raise CommandError(
                    f"module {module_name} has no {attribute!r}: {_describe_type(value)} has no {part!r}"
                ) from error
            usual = (name for name in _USUAL_APP_NAMES if name != part and callable(getattr(module, name, None)))
            public = [name for name, value in vars(module).items() if not name.startswith("_") and _is_nameable(value)]
            candidates = list(dict.fromkeys([*get_close_matches(part, public), *usual]))[:_MAX_NAMES_IN_HINT]
            hint = f"; it has {', '.join(candidates)}, so try {module_name}:{candidates[0]}" if candidates else ""
            raise CommandError(f"module {module_name} has no {part!r}{hint}") from error
    return value


def _is_nameable(value: object) -> bool:
    """Whether a value looks like an app, or a function that makes one."""
    if inspect.isfunction(value):
        return _is_app_factory(value) or _may_be_app(value)
    return callable(value) and not inspect.isclass(value)


def _is_app_factory(value: Any) -> bool:
    """Whether it is a function that can be called without arguments. An app cannot."""
    return inspect.isfunction(value) and not inspect.iscoroutinefunction(value) and not _required_parameters(value)


def _may_be_app(function: Callable[..., Any]) -> bool:
    """Whether a function takes the two arguments of WSGI, or the three of ASGI."""
    required = _required_parameters(function)
    return len(required) in {2, 3} or any(parameter.kind is parameter.VAR_POSITIONAL for parameter in required)


def _required_parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
    ]


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
