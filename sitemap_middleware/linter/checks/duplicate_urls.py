"""Compares the URLs of all documents: finds those that are listed twice, or in two spellings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from ..message import Finding
from ..rules import loc as rules
from ..temporary_url_database import UrlRow
from .loc import check_loc, normal_url, page_key


def duplicate_findings(similar: Iterable[UrlRow]) -> Iterator[tuple[Finding, UrlRow]]:
    """Return URLs that are listed more than once.

    Args:
        similar: URLs of which each shares its key with another one, those of one key after each other.
    """
    for _, rows in groupby(similar, lambda row: page_key(check_loc(row.loc))):
        known = dict[str, UrlRow]()
        spellings = dict[str, UrlRow]()
        for row in rows:
            if (same := known.setdefault(row.loc, row)) is not row:
                yield from _repeated(row, same)
                continue
            spelling = normal_url(check_loc(row.loc))
            if (alike := spellings.setdefault(spelling, row)) is not row:
                yield (rules.DUPLICATE_SPELLING, f"{alike.loc} is the same page"), row
            elif (pair := spellings.get(_other_slash(spelling))) is not None:
                yield (rules.SLASH_PAIR, f"{pair.loc} is listed, too"), row


def _repeated(row: UrlRow, same: UrlRow) -> Iterator[tuple[Finding, UrlRow]]:
    if row.document == same.document:
        yield (rules.DUPLICATE, f"the URL is listed in line {same.line}, too"), row
    elif not row.extended and not same.extended:
        yield (rules.DUPLICATE_ELSEWHERE, "another document lists the URL, too"), row


def _other_slash(url: str) -> str:
    return url[:-1] if url.endswith("/") else f"{url}/"
