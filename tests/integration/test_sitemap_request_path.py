"""A request for the sitemap takes the path through the modules that `docs/architecture.md` draws."""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import flask

from sitemap_middleware import SitemapMiddleware

ARCHITECTURE = Path(__file__).parents[2] / "docs" / "architecture.md"

PACKAGE = "sitemap_middleware."

CALLERS = re.compile(r"adapters\.wsgi|sitemap_handler|rendering\.(publisher|\w+_sections?)")
"""The modules whose calls count: the adapter, the handler, the publisher, the sections."""

NOT_COUNTED = re.compile(r"__init__|request_of_environ|<.*>|warn_of_\w+")
"""Constructors, the function that makes the request, generator expressions and log helpers, by name."""

NUMBERED = re.compile(r"─ (\w+) +(\d+)\b")
"""A module in the drawing, with its number."""


@contextmanager
def counted_calls() -> Iterator[set[tuple[str, str]]]:
    """Collects the pairs of modules of which one calls the other, on this thread, by the rule of the architecture."""
    calls: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_back is not None:
            caller, called = module_of(frame.f_back), module_of(frame)
            if caller != called and CALLERS.fullmatch(caller) and called and is_counted(frame, called):
                calls.add((caller, called))

    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)


def module_of(frame: FrameType) -> str:
    name = str(frame.f_globals.get("__name__"))
    return name.removeprefix(PACKAGE) if name.startswith(PACKAGE) else ""


def is_counted(frame: FrameType, module: str) -> bool:
    if module.startswith("stores.") or NOT_COUNTED.fullmatch(frame.f_code.co_name):
        return False
    *classes, name = frame.f_code.co_qualname.split(".")
    owner: object = sys.modules[PACKAGE + module]
    for attribute in classes:
        owner = getattr(owner, attribute)
    return not isinstance(inspect.getattr_static(owner, name), property | functools.cached_property)


def test_the_calls_between_modules_are_those_of_the_architecture() -> None:
    app = flask.Flask("site")
    app.add_url_rule("/", "home", lambda: "home")
    middleware = SitemapMiddleware(app.wsgi_app, routes=app, store="memory://", verify=False)
    app.wsgi_app = middleware  # type: ignore[method-assign]
    client = app.test_client()
    client.get("/")
    assert not middleware.service.sitemap_handler.unavailable_responses  # now the parts of the service are created
    with counted_calls() as calls:
        answer = client.get("/sitemap.xml")
    assert b"<loc>http://localhost/</loc>" in answer.data
    drawn = NUMBERED.findall(ARCHITECTURE.read_text("utf-8"))
    assert [int(number) for _, number in drawn] == list(range(1, len(drawn) + 1))
    assert sorted(called.rpartition(".")[2] for _, called in calls) == sorted(name for name, _ in drawn)
