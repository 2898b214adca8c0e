"""The command line."""

from __future__ import annotations

from typing import Final

_LIBRARIES: Final = frozenset({"click", "rich"})
"""What the extra `cli` installs."""


def missing_library_message(error: ModuleNotFoundError) -> str | None:
    """How to install a library of the command line that cannot be imported; None if it is another module."""
    if (error.name or "").partition(".")[0] not in _LIBRARIES:
        return None
    return f'the command needs {error.name}: pip install "sitemap-middleware[cli]"'
