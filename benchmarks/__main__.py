"""`python -m benchmarks`: run all benchmarks, or those named, and print the results."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
from pathlib import Path

from . import plots

NAMES = (
    "request",
    "generation",
    "scale",
    "values",
    "waiting",
    "discovery",
    "servers",
    "stores",
    "saving",
    "check",
    "faults",
    "logs",
    "startup",
    "report",
    "targets",  # last, because it compares what the others found
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="What the middleware costs.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"which to run, of {', '.join(NAMES)}; all, if left out"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument(
        "--plot", type=Path, metavar="FOLDER", help="write the figures there, by benchmark, and draw them"
    )
    parser.add_argument(
        "--entries",
        type=int,
        metavar="N",
        help="so many in a document, of generation, of check, and of Django in scale (50000)",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        metavar="N",
        help="so many: of generation (7), of check (5), of saving (25), of first requests in scale (5), of batches in"
        " stores (40, 10)",
    )
    parser.add_argument(
        "--pages",
        type=_numbers,
        metavar="N,N,...",
        help="scale: sites of so many (10000,100000,1000000); stores: batches of so many (1000,10000)",
    )
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="scale: keep filled stores there, and use those that are"
    )
    parser.add_argument(
        "--items",
        type=int,
        metavar="N",
        help="values: how many items they have; stores: how many pages are kept in memory",
    )
    parser.add_argument("--seconds", type=float, metavar="N", help="faults: for how long each lasts (30)")
    parser.add_argument("--megabytes", type=int, metavar="N", help="logs: the size of each log (1024)")
    parser.add_argument("--report-pages", type=int, metavar="N", help="report: the pages of the site (1000000)")
    parser.add_argument("--short", action="store_true", help="run each in its shortest form, to see that it works")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(NAMES):
        parser.error(f"unknown benchmark {unknown.pop()!r}; choose from {', '.join(NAMES)}")
    machine = f"{os.cpu_count()} cores, {platform.python_implementation()} {platform.python_version()}"
    print(f"{machine}. Medians over interleaved rounds, with quartiles (from, to).\n")
    options_of = {
        "check": {"entries": arguments.entries, "rounds": arguments.rounds},
        "generation": {"entries": arguments.entries, "rounds": arguments.rounds},
        "saving": {"rounds": arguments.rounds},
        "values": {"items": arguments.items},
        "logs": {"megabytes": arguments.megabytes},
        "report": {"pages": arguments.report_pages},
        "faults": {"seconds": arguments.seconds},
        "stores": {"pages": arguments.pages, "rounds": arguments.rounds, "items": arguments.items},
        "scale": {
            "pages": arguments.pages,
            "keep": arguments.keep,
            "entries": arguments.entries,
            "rounds": arguments.rounds,
        },
    }
    results = []
    for name in arguments.names or NAMES:
        module = importlib.import_module(f"{__package__}.{name}")
        keywords = dict(module.SHORT) if arguments.short else {}
        keywords |= {key: value for key, value in options_of.get(name, {}).items() if value is not None}
        if name == "targets":
            keywords["measured"] = results
        tables = []
        for table in module.run(**keywords):
            print(table, flush=True)
            tables.append(table.as_json())
        results += [{"benchmark": name, **table} for table in tables]
        if arguments.plot and name in plots.DRAWN:
            plots.save(arguments.plot, name, machine, tables)
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": machine, "tables": results}, indent=2) + "\n", "utf-8")


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


if __name__ == "__main__":
    main()
