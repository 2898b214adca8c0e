"""Prints the results of the command `check` as text."""

from __future__ import annotations

from typing import Final

from ..linter.message import Message
from ..linter.rules import Family, Rule, Severity
from ..linter.runner import Result
from .terminal_output import console, print_line, print_notes, print_rows

_STYLES: Final = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: ""}


def print_result(result: Result) -> None:
    """Print the messages, one in a line, and how many there are."""
    out = console()
    for message in result.messages:
        print_line(out, _line(message), _STYLES[message.severity])
    found = ", ".join(_counted(number, severity) for severity, number in result.counts.items() if number)
    urls, documents = _counted(result.urls, "URL"), _counted(result.documents, "document")
    pages = f", {_counted(result.pages, 'page')} requested" if result.pages else ""
    print_line(out, f"{urls} in {documents}{pages}: {found or 'nothing found'}")
    print_notes([f"{number:,} more of {code}; --limit 0 prints all" for code, number in result.omitted.items()])


def _line(message: Message) -> str:
    place = message.place
    where = ":".join([place.document, *(str(number) for number in (place.line, place.column) if number)])
    about = "" if message.url == place.document else f"{message.url}: "
    return f"{where}: {message.severity}: {about}{message.message} [{message.code}]"


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 or what == Severity.INFO else f"{number:,} {what}s"


def print_rule(rule: Rule) -> None:
    """Print what a rule means."""
    out = console()
    print_line(out, f"{rule.code} ({rule.severity}): {rule.title}")
    print_line(out, rule.explanation)
    print_line(out, f"Fix: {rule.fix}")
    print_line(out, rule.url)


def print_family(family: Family) -> None:
    """Print the rules of a family."""
    out = console()
    print_line(out, f"{family.name}: {family.about}")
    print_rows(out, [(rule.code, f"{rule.severity}: {rule.title}", "") for rule in family.rules])
