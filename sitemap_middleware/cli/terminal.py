"""What is said at a terminal, and how a command refuses."""

from __future__ import annotations

import sys

import click


class CommandError(click.ClickException):
    """What the command cannot do, in one line."""

    exit_code = 2

    def __init__(self, message: str) -> None:
        super().__init__(printable(" ".join(message.split())))


def printable(text: str) -> str:
    """A text without what could move the cursor or cannot be written where it is printed."""
    printable = "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
    encoding = sys.stdout.encoding or "utf-8"
    return printable.encode(encoding, "backslashreplace").decode(encoding)
