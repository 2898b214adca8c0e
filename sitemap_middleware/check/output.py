"""Formats the results of a run: as text, as JSON, as SARIF, and as annotations of GitHub Actions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, Final

from .findings import Message
from .rules import RULES, Rule, Severity
from .runner import Result

SARIF_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
MAX_EQUAL: Final = 3
"""Messages with one text that have a line each. More are one line."""
_FAMILIES_OF_PAGES: Final = frozenset({"fetch", "page", "coverage"})
"""Families whose messages are about one URL each: which it is, is what they say. The others are about what a generator
writes everywhere."""
_CODES_OF_HOSTS: Final = frozenset({"fetch-failed", "page-failed"})
"""Codes of these families whose text says what is wrong with the host of all of them."""
_LEVELS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_COMMANDS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def text_lines(result: Result, *, merge_equal: bool) -> Iterator[tuple[str, Severity]]:
    """Yield the messages as lines of text, with their severity.

    Args:
        result: what a run found.
        merge_equal: whether many equal messages about a document are one line.
    """
    mergeable = filter(_is_mergeable, result.messages) if merge_equal else ()
    equal = {key: count for key, count in Counter(map(_key, mergeable)).items() if count > MAX_EQUAL}
    for message in result.messages:
        if (count := equal.get(_key(message))) is None:
            yield _line(message), message.severity
        elif count:
            equal[_key(message)] = 0  # the others are not printed
            yield _line(message, f" (and {count - 1:,} more)"), message.severity


def _is_mergeable(message: Message) -> bool:
    return message.code in _CODES_OF_HOSTS or RULES[message.code].family not in _FAMILIES_OF_PAGES


def _key(message: Message) -> tuple[str, str, str]:
    return message.code, message.message, message.place.document


def _line(message: Message, more: str = "") -> str:
    place = message.place
    where = ":".join([place.document, *(str(number) for number in (place.line, place.column) if number)])
    about = "" if message.url == place.document else f"{message.url}: "
    return f"{where}: {message.severity}: {about}{message.message}{more} [{message.code}]"


def summary(result: Result) -> str:
    """Say how much was read, and how many messages there are."""
    found = ", ".join(_counted(number, severity) for severity, number in result.counts.items() if number)
    urls, documents = _counted(result.urls, "URL"), _counted(result.documents, "document")
    pages = f", {_counted(result.pages, 'page')} requested" if result.pages else ""
    return f"{urls} in {documents}{pages}: {found or 'nothing found'}"


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 or what == Severity.INFO else f"{number:,} {what}s"


def as_json(result: Result) -> str:
    """Return the messages as a list of objects. `line` is 0 for what is about a whole document."""
    objects = [
        {
            "code": message.code,
            "severity": str(message.severity),
            "url": message.url,
            "message": message.message,
            "document": message.place.document,
            "line": message.place.line,
        }
        for message in result.messages
    ]
    return json.dumps(objects, indent=2)


def as_sarif(result: Result, version: str) -> str:
    """Return the messages as a log in SARIF 2.1.0 (OASIS), which code scanning services read.

    Args:
        result: what a run found.
        version: the version of this package.
    """
    used = [*dict.fromkeys(message.code for message in result.messages)]
    rules = [_sarif_rule(RULES[code]) for code in used]
    driver = {"name": "sitemap-middleware check", "version": version, "rules": rules}
    results = [_sarif_result(message, used.index(message.code)) for message in result.messages]
    log = {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
    return json.dumps(log, indent=2)


def _sarif_rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "shortDescription": {"text": f"{rule.title}."},
        "fullDescription": {"text": rule.explanation},
        "help": {"text": rule.fix},
        **({"helpUri": rule.source} if rule.source else {}),
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"tags": [rule.family]},
    }


def _sarif_result(message: Message, number: int) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": _uri(message.place.document or message.url)}}
    if message.place.line:
        region = {"startLine": message.place.line}
        place["region"] = region | ({"startColumn": message.place.column} if message.place.column else {})
    return {
        "ruleId": message.code,
        "ruleIndex": number,
        "level": _LEVELS[message.severity],
        "message": {"text": f"{message.url}: {message.message}."},
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {"codeAndUrl/v1": f"{message.code} {message.url}"},
    }


def _uri(document: str) -> str:
    """A URL as it is, and a path as a relative or an absolute URI."""
    if document.startswith(("http://", "https://")):
        return document
    path = PurePath(document)
    return path.as_uri() if path.is_absolute() else path.as_posix()


def github_annotations(result: Result) -> Iterator[str]:
    """Yield the messages as workflow commands of GitHub Actions, which shows them beside the files."""
    for message in result.messages:
        values = {"title": message.code}
        if not message.place.document.startswith(("http://", "https://")):
            values = {"file": message.place.document, "line": str(message.place.line or 1), **values}
            if message.place.column:
                values["col"] = str(message.place.column)
        properties = ",".join(f"{name}={_escaped(value, property_value=True)}" for name, value in values.items())
        yield f"::{_COMMANDS[message.severity]} {properties}::{_escaped(f'{message.url}: {message.message}')}"


def _escaped(text: str, *, property_value: bool = False) -> str:
    """Text in which no character begins another command, ends a value, or controls a terminal."""
    text = "".join(char if char.isprintable() or char in "\r\n" else repr(char)[1:-1] for char in text)
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if property_value else text
