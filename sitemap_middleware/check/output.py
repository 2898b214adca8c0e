"""Formats the results of a run: as text, as JSON, and as SARIF."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, Final

from .findings import RULES, Finding, Rule, Severity, finding_key
from .run_state import Run

SARIF_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
MAX_EQUAL: Final = 3
"""Findings with one text that have a line each. More are one line."""
_FAMILIES_OF_PAGES: Final = frozenset({"fetch", "page", "coverage"})
"""Families whose findings are about one URL each: which it is, is what they say. The others are about what a generator
writes everywhere."""
_MERGED_CODES: Final = frozenset({"fetch-failed", "page-failed"})
"""Codes of these families that are mostly about the host of all of them."""
_LEVELS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def text_lines(result: Run, *, merge_equal: bool) -> Iterator[tuple[str, Severity]]:
    """Yield the findings as lines of text, with their severity. Many equal ones about a document may be one line."""
    counts = Counter((finding.code, finding.text, finding.document) for finding in result.findings)
    for finding in result.findings:
        key, more = (finding.code, finding.text, finding.document), ""
        if merge_equal and (finding.code in _MERGED_CODES or finding.rule.family not in _FAMILIES_OF_PAGES):
            if counts[key] == 0:
                continue  # is counted in a line before
            if counts[key] > MAX_EQUAL:
                more = f" (and {counts[key] - 1:,} more)"
                counts[key] = 0
        about = "" if finding.url == finding.document else f"{finding.url}: "
        severity = finding.rule.severity
        yield f"{finding.place}: {severity}: {about}{finding.text}{more} [{finding.code}]", severity


def by_rule(result: Run) -> list[tuple[Rule, list[Finding]]]:
    """The findings of each rule, those that are worst and most frequent first."""
    rules = sorted(map(RULES.__getitem__, result.counts), key=lambda rule: -result.counts[rule.code])
    rules.sort(key=lambda rule: [*Severity].index(rule.severity))
    return [(rule, [finding for finding in result.findings if finding.code == rule.code]) for rule in rules]


def summary(result: Run) -> str:
    """Say how much was read, and how many findings there are."""
    found = ", ".join(_counted(number, severity) for severity, number in result.by_severity().items() if number)
    urls, documents = _counted(len(result.urls), "URL"), _counted(result.checked, "document")
    if duplicates := len(result.urls) - len(result.pages):
        urls += f" ({_counted(duplicates, 'duplicate')})"
    share = hint = ""
    if result.requested < len(result.pages):
        are_all_chosen = len(result.chosen) == len(result.pages)
        hint = "the others are forbidden or out of reach" if are_all_chosen else "--pages all requests every page"
        share, hint = f"{result.requested:,} of ", f" ({hint})"
    pages = f", {share}{_counted(len(result.pages), 'page')} requested{hint}" if result.chosen else ""
    return f"{urls} in {documents}{pages}: {found or 'nothing found'}"


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 or what == Severity.INFO else f"{number:,} {what}s"


def as_json(result: Run) -> str:
    """Return the findings as a list of objects. `line` is 0 for what is about a whole document."""
    objects = [
        {
            "code": finding.code,
            "severity": str(finding.rule.severity),
            "url": finding.url,
            "message": finding.text,
            "document": finding.document,
            "line": finding.line,
        }
        for finding in result.findings
    ]
    return json.dumps(objects, indent=2)


def as_sarif(result: Run, version: str) -> str:
    """Return the findings as a log in SARIF 2.1.0 (OASIS), which code scanning services read."""
    used = [*dict.fromkeys(finding.code for finding in result.findings)]
    rules = [_sarif_rule(RULES[code]) for code in used]
    driver = {"name": "sitemap-middleware check", "version": version, "rules": rules}
    results = [_sarif_result(finding, used.index(finding.code)) for finding in result.findings]
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


def _sarif_result(finding: Finding, number: int) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": _uri(finding.document)}}
    if finding.line:
        column = {"startColumn": finding.column} if finding.column else {}
        place["region"] = {"startLine": finding.line, **column}
    return {
        "ruleId": finding.code,
        "ruleIndex": number,
        "level": _LEVELS[finding.rule.severity],
        "message": {"text": f"{finding.url}: {finding.text}."},
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {"codeAndUrl/v1": finding_key(finding.code, finding.url)},
    }


def _uri(document: str) -> str:
    """A URL as it is, and a path as a relative or an absolute URI."""
    if document.startswith(("http://", "https://")):
        return document
    path = PurePath(document)
    return path.as_uri() if path.is_absolute() else path.as_posix()
