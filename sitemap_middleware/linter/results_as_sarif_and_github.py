"""Formats the results of a run for programs: SARIF, and annotations of GitHub Actions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, Final

from .message import Message
from .rules import RULES, Rule, Severity
from .runner import Result

SARIF_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_COMMANDS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def as_sarif(result: Result, version: str) -> str:
    """Return the messages as a log in SARIF 2.1.0 (OASIS), which code scanning services read.

    Args:
        result: what a run found.
        version: the version of this package.
    """
    used = [*dict.fromkeys(message.code for message in result.messages)]
    driver = {
        "name": "sitemap-middleware check",
        "version": version,
        "informationUri": "https://sitemap-middleware.example/docs/howto/check.html",
        "rules": [_sarif_rule(RULES[code]) for code in used],
    }
    numbers = {code: number for number, code in enumerate(used)}
    results = [_sarif_result(message, numbers[message.code]) for message in result.messages]
    log = {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
    return json.dumps(log, indent=2)


def _sarif_rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "shortDescription": {"text": f"{rule.title}."},
        "fullDescription": {"text": rule.explanation},
        "help": {"text": rule.fix},
        "helpUri": rule.url,
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
