"""Entry point of `sitemap-middleware` and `python -m sitemap_middleware`."""

from __future__ import annotations

import sys
from typing import Final

_CLI_LIBRARIES: Final = frozenset({"click", "rich"})


def main() -> None:
    """Run the command line. If its optional libraries are missing, print one line that says how to install them."""
    try:
        from .cli.main import command
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _CLI_LIBRARIES:
            raise
        print(f'Error: the command needs {error.name}: pip install "sitemap-middleware[cli]"', file=sys.stderr)
        sys.exit(2)
    command(prog_name="sitemap-middleware")


if __name__ == "__main__":
    main()
