"""`python -m benchmarks NAME…`: run benchmarks and print what they found; without a name, list them."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
from pathlib import Path

NAMES = ("request", "document", "scale", "stores", "check")


def main() -> None:
    modules = {name: importlib.import_module(f"{__package__}.{name}") for name in NAMES}
    titles = {name: (module.__doc__ or "").partition("\n")[0] for name, module in modules.items()}
    listed = "\n".join(f"  {name:<10} {title}" for name, title in titles.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=f"{listed}\n  all        All of these.\n\nHow true the dates are: python -m benchmarks.truth",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[*NAMES, "all", []])
    parser.add_argument("--pages", type=int, metavar="N", help="pages or URLs, in place of a benchmark's own number")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--short", action="store_true", help="the shortest form, to see that it works; all if no name")
    arguments = parser.parse_args()
    names = NAMES if "all" in arguments.names or (arguments.short and not arguments.names) else arguments.names
    if not names:
        parser.print_help()
        return
    machine = f"{os.cpu_count()} cores, {platform.python_implementation()} {platform.python_version()}"
    print(f"{machine}\n")
    found = []
    for name in names:
        options = dict(modules[name].SHORT) if arguments.short else {}
        if arguments.pages and name != "request":
            options["pages"] = arguments.pages
        for table in modules[name].run(**options):
            print(table, flush=True)
            found.append({"benchmark": name, **table.as_json()})
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": machine, "tables": found}, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
