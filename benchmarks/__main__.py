"""`python -m benchmarks`: run all, or those named, and print what was found."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
from pathlib import Path

NAMES = ("request", "generation", "discovery", "servers", "values")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="What the middleware costs.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"which to run, of {', '.join(NAMES)}; all, if left out"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--items", type=int, metavar="N", help="how many items values have")
    chosen = parser.parse_args()
    if unknown := set(chosen.names) - set(NAMES):
        parser.error(f"there is no benchmark {unknown.pop()!r}; there are {', '.join(NAMES)}")
    machine = f"{os.cpu_count()} cores, {platform.python_implementation()} {platform.python_version()}"
    print(f"{machine}. Medians over interleaved rounds, with quartiles (from, to); CPU time.\n")
    found = []
    for name in chosen.names or NAMES:
        more = {"items": chosen.items} if name == "values" and chosen.items else {}
        for table in importlib.import_module(f"{__package__}.{name}").run(**more):
            print(table, flush=True)
            found.append({"benchmark": name, **table.as_json()})
    if chosen.json:
        chosen.json.write_text(json.dumps({"machine": machine, "tables": found}, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
