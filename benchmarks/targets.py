"""The figures that the project wants, beside those that the other benchmarks found, and which of them are missed.

`python -m benchmarks` ends with this table. `python -m benchmarks targets` runs the benchmarks that it needs in a
shorter form, and prints this table alone.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from . import discovery, generation, request, servers, values, waiting
from .tables import Table

Results = Sequence[Mapping[str, Any]]
"""Tables as JSON, each with the name of its benchmark."""

NEEDED: Final[Mapping[str, Mapping[str, Any]]] = {
    "generation": {"rounds": 2},
    "request": {"rounds": 21},
    "discovery": {"rounds": 5, "only": "Starlette"},  # in one round of some, all garbage of the process is collected
    "startup": {},
    "servers": {"rounds": 5, "times": 400},
    "values": {"items": 2_000_000},  # so many that the first request is not among the slowest thousandth
    "waiting": {},
}
"""The benchmarks that have the figures, and how each is run for this table alone."""
SHORT = {"short": True}
RAW_ASGI, RAW_WSGI, CORS = "raw ASGI app", "raw WSGI app", "of CORS's added"
PEERS: Final = ("Flask-Sitemap", "flask-sitemapper", "asgi-sitemaps")


class Target(NamedTuple):
    """A figure that is wanted."""

    title: str
    wanted: float
    is_least: bool
    """Whether more is better."""
    found: Callable[[Results], float]
    """Raises `LookupError` if it was not measured."""


def run(measured: Results = (), *, short: bool = False) -> Iterator[Table]:
    """The table of all targets.

    Args:
        measured: what the other benchmarks found. If there is nothing, those that are needed run now.
        short: whether only the quickest of them runs.
    """
    if not measured:
        names = ("startup",) if short else NEEDED
        measured = [table for name in names for table in _measured(name, short=short)]
    table = Table("What is wanted, and what was found", ["", "wanted", "found", ""])
    missed = []
    for target in TARGETS:
        wanted = f"{'≥' if target.is_least else '≤'} {target.wanted:g}"
        try:
            found = target.found(measured)
        except LookupError:
            table.add(target.title, wanted, "not measured")
            continue
        is_met = found >= target.wanted if target.is_least else found <= target.wanted
        table.add(target.title, wanted, found, "" if is_met else "missed")
        missed += [] if is_met else [target.title]
    table.notes.append(f"Missed: {'; '.join(missed)}." if missed else "None is missed.")
    yield table


def _measured(name: str, *, short: bool) -> Iterator[Mapping[str, Any]]:
    module = importlib.import_module(f"{__package__}.{name}")
    for table in module.run(**(module.SHORT if short else NEEDED[name])):
        yield {"benchmark": name, **table.as_json()}


def _cell(results: Results, benchmark: str, title: str, row: str, column: str) -> float:
    """The figure in a column of a row, of the first table of a benchmark whose title begins so."""
    for table in results:
        if table["benchmark"] == benchmark and table["title"].startswith(title):
            for cells in table["rows"]:
                if cells["name"] == row:
                    return float(cells[column])
    raise LookupError(row)


def _times_faster(ours: str, peers: Iterable[str]) -> Callable[[Results], float]:
    """How many times as long the fastest of these peers takes for a document."""

    def found(results: Results) -> float:
        def milliseconds(name: str) -> float:
            return _cell(results, "generation", "A document of", name, "ms")

        return min(map(milliseconds, peers)) / milliseconds(ours)

    return found


def _figure(benchmark: str, title: str, row: str, column: str) -> Callable[[Results], float]:
    return lambda results: _cell(results, benchmark, title, row, column)


def _added(title: str, row: str = request.OURS, column: str = "added") -> Callable[[Results], float]:
    return _figure("request", f"{title}: {request.PAGE.title}", row, column)


def _beside_least(title: str, *, first: bool = False) -> Callable[[Results], float]:
    """How many times as much as the least possible ours adds, to the first request of a second or to another one."""
    rows = (request.FIRST, request.LEAST_FIRST) if first else (request.OURS, request.LEAST)
    ours, least = (_added(title, row) for row in rows)
    return lambda results: ours(results) / least(results)


def _speed(server: str, path: str) -> Callable[[Results], float]:
    return _figure("servers", server, servers.NAMES[path], "speed, times bare")


TARGETS: Final = (
    Target("values of a Flask app, times as fast as the best peer", 3, True, _times_faster(generation.VALUES, PEERS)),
    Target(
        "values of a Starlette app, the same", 3, True, _times_faster(generation.STARLETTE_VALUES, PEERS)
    ),
    Target("from the store's rows, the same", 2, True, _times_faster(generation.ROWS, PEERS)),
    Target("from objects, the same", 8, True, _times_faster(generation.ISAL, PEERS)),
    Target("from objects, times as fast as Django", 40, True, _times_faster(generation.ISAL, ["Django"])),
    Target(
        "one page changed, isal, times as fast as writing all",
        50,
        True,
        _figure("generation", "A gzipped document", "all is written and gzipped, isal", "times as long"),
    ),
    Target("ASGI, added to a page requested very often, µs", 1.0, False, _added(RAW_ASGI, request.BUSY)),
    Target("the same, divided by what CORSMiddleware adds", 0.2, False, _added(RAW_ASGI, request.BUSY, CORS)),
    Target("WSGI, added to a page requested very often, µs", 1.0, False, _added(RAW_WSGI, request.BUSY)),
    Target("Flask, added to a page requested very often, µs", 2.0, False, _added("Flask", request.BUSY)),
    Target("ASGI, added to a page that is compared, µs", 1.0, False, _added(RAW_ASGI)),
    Target("the same, times the least that compares", 1.2, False, _beside_least(RAW_ASGI)),
    Target("WSGI, added to a page that is compared, µs", 1.0, False, _added(RAW_WSGI)),
    Target("the same, times the least that compares", 1.2, False, _beside_least(RAW_WSGI)),
    Target("Flask, added to a page that is compared, µs", 2.0, False, _added("Flask")),
    Target("ASGI, added to the first request of a second, µs", 1.8, False, _added(RAW_ASGI, request.FIRST)),
    Target("the same, times the least that records", 1.2, False, _beside_least(RAW_ASGI, first=True)),
    Target("hello of browsers on uvicorn, speed beside the bare app", 0.96, True, _speed("uvicorn", servers.OURS)),
    Target("hello on granian, the same", 0.96, True, _speed("granian", servers.OURS)),
    Target("gzipped document on uvicorn, speed beside a Response", 0.95, True, _speed("uvicorn", servers.DOCUMENT)),
    Target("the same on granian", 0.95, True, _speed("granian", servers.DOCUMENT)),
    Target("a path of the app that ends in .xml, beside the bare app", 0.93, True, _speed("uvicorn", servers.OTHERS)),
    Target(
        "discovery of 10,000 Starlette routes, % of the app's build",
        2,
        False,
        _figure("discovery", "Starlette", discovery.PARTS["discovery"], "% of the build"),
    ),
    Target(
        "event loop late while values are read, p99.9, ms", 10, False,
        _figure("values", "A sitemap of", values.ASYNC, "p99.9"),
    ),
    Target(
        "a page on uvicorn while pages are rendered, p99, ms", 10, False,
        _figure("waiting", waiting.TITLE, waiting.RENDERING, "p99, ms"),
    ),
    Target("import and wrap, ms", 43, False, _figure("startup", "What", "import and wrap, ms", "least")),
    Target("memory after import and wrap, MB", 3.5, False, _figure("startup", "What", "memory, MB", "median")),
)  # fmt: skip
