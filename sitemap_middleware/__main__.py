"""Entry point of `sitemap-middleware` and `python -m sitemap_middleware`."""

from __future__ import annotations

import sys

from .cli import missing_library_message


def main() -> None:
    """Run the command line. If its optional libraries are missing, print one line that says how to install them."""
    try:
        from .cli.main import command
    except ModuleNotFoundError as error:
        if (message := missing_library_message(error)) is None:
            raise
        print(f"Error: {message}", file=sys.stderr)
        sys.exit(2)
    command(prog_name="sitemap-middleware")


if __name__ == "__main__":
    main()
