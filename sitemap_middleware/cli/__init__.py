"""The command line."""

from __future__ import annotations

from typing import Final

_EXTRAS: Final = {"click": "cli", "rich": "cli", "httpx": "check", "jinja2": "report", "obstore": "publish"}


def missing_library_message(error: ModuleNotFoundError) -> str | None:
    """How to install a library of the command line that cannot be imported; None if it is another module."""
    library = (error.name or "").partition(".")[0]
    extra = _EXTRAS.get(library)
    return None if extra is None else f'the command needs {library}: pip install "sitemap-middleware[{extra}]"'
