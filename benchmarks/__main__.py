"""`python -m benchmarks`: run all, or those named, and print what was found."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
from pathlib import Path

from . import plots

NAMES = ("request", "generation", "scale", "values", "discovery", "servers", "stores", "faults")


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
        "--entries", type=int, metavar="N", help="so many in a document, of generation and of Django in scale (50000)"
    )
    parser.add_argument(
        "--rounds",
        type=int,
        metavar="N",
        help="so many: of generation (7), of first requests in scale (5), of batches in stores (40, 10)",
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
    parser.add_argument("--short", action="store_true", help="run each in its shortest form, to see that it works")
    chosen = parser.parse_args()
    if unknown := set(chosen.names) - set(NAMES):
        parser.error(f"there is no benchmark {unknown.pop()!r}; there are {', '.join(NAMES)}")
    machine = f"{os.cpu_count()} cores, {platform.python_implementation()} {platform.python_version()}"
    print(f"{machine}. Medians over interleaved rounds, with quartiles (from, to).\n")
    given = {
        "generation": {"entries": chosen.entries, "rounds": chosen.rounds},
        "values": {"items": chosen.items},
        "faults": {"seconds": chosen.seconds},
        "stores": {"pages": chosen.pages, "rounds": chosen.rounds, "items": chosen.items},
        "scale": {"pages": chosen.pages, "keep": chosen.keep, "entries": chosen.entries, "rounds": chosen.rounds},
    }
    found = []
    for name in chosen.names or NAMES:
        module = importlib.import_module(f"{__package__}.{name}")
        options = dict(module.SHORT) if chosen.short else {}
        options |= {key: value for key, value in given.get(name, {}).items() if value is not None}
        tables = []
        for table in module.run(**options):
            print(table, flush=True)
            tables.append(table.as_json())
        found += [{"benchmark": name, **table} for table in tables]
        if chosen.plot and name in plots.DRAWN:
            plots.save(chosen.plot, name, machine, tables)
    if chosen.json:
        chosen.json.write_text(json.dumps({"machine": machine, "tables": found}, indent=2) + "\n", "utf-8")


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


if __name__ == "__main__":
    main()
