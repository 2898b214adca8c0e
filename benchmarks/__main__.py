"""`python -m benchmarks NAME…`: run benchmarks and print what they found; without a name, list them."""

from __future__ import annotations

import argparse
import importlib
import os
import platform

NAMES = ("request", "document", "serving", "scale", "stores")


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
    parser.add_argument("--short", action="store_true", help="the shortest form, to see that it works; all if no name")
    arguments = parser.parse_args()
    names = NAMES if "all" in arguments.names or (arguments.short and not arguments.names) else arguments.names
    if not names:
        parser.print_help()
        return
    print(f"{os.cpu_count()} cores, {platform.python_implementation()} {platform.python_version()}\n")
    for name in names:
        options = dict(modules[name].SHORT) if arguments.short else {}
        if arguments.pages and name != "request":
            options["pages"] = arguments.pages
        for table in modules[name].run(**options):
            print(table, flush=True)


if __name__ == "__main__":
    main()
