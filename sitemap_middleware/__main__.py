"""`sitemap-middleware`, and `python -m sitemap_middleware`."""

from __future__ import annotations

import sys
from typing import Final

_EXTRA: Final = frozenset({"click", "rich"})


def main() -> None:
    """Run the command. Its libraries are an extra: where they are missing, say so in one line."""
    try:
        from .cli.main import command
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        print(f'Error: the command needs {error.name}: pip install "sitemap-middleware[cli]"', file=sys.stderr)
        sys.exit(2)
    command(prog_name="sitemap-middleware")


if __name__ == "__main__":
    main()
