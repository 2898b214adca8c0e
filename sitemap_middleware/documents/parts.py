"""Parts: what is rendered together, as one or more documents, and kept in the store for all workers.

A part is some learned pages, at most one document; or the pages of a provider, or the static routes, in as many
documents as they need. All are rendered, saved and read in the same way.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

from ..models import BaseURL, SitemapUrl
from ..stores.base import Store
from .document import Document, etag_of, urlsets

FOREVER: Final = 2**62
"""A POSIX time that is never reached."""


class Part(NamedTuple):
    """The complete documents of a part, without their XML."""

    key: str
    """What they were rendered from. While this stays the same, so do they."""
    at: float
    """POSIX seconds, by the store's clock, at which they were complete."""
    seconds: float = 0.0
    """Seconds it took to render them."""
    until: int = FOREVER
    """POSIX seconds at which they have to be rendered again because of time alone."""
    mark: str = ""
    """The token of the last `refresh` before them."""
    documents: tuple[Document, ...] = ()


@dataclass(frozen=True, slots=True)
class PartSource:
    """How to render a part, and when."""

    name: str
    """Its name in the store, unique within the site."""
    document: str
    """The name of its first document."""
    key: str
    is_due: Callable[[Part | None], bool]
    """Whether it is to be rendered again, given what was rendered last."""
    entries: Callable[[], tuple[Iterable[SitemapUrl], int]]
    """Its entries, and until when they hold. It may raise what reading the store or a provider raises."""
    mark: str = ""
    max_documents: int | None = None
    pages: int = 0
    """Pages in the store that rendering it reads."""


class Saver(NamedTuple):
    """Where rendered parts are saved."""

    store: Store
    owner: BaseURL

    def load(self, names: Collection[str]) -> dict[str, Part]:
        """Those of these parts that were rendered, by this or another worker."""
        records = self.store.load(self.owner, [_record_name(name) for name in names])
        found = {name: _decoded(records.get(_record_name(name), b"")) for name in names}
        return {name: part for name, part in found.items() if part is not None}

    def load_document(self, name: str, part: Part, number: int) -> Document | None:
        """A document of a part with its XML; None if the store has lost it, or has another one by now."""
        document, record = part.documents[number], _xml_name(name, number)
        gzipped = self.store.load(self.owner, [record]).get(record, b"")
        with suppress(OSError, EOFError, ValueError):  # what gzip raises for damaged data
            if etag_of(gzip.decompress(gzipped)) == document.etag:
                return document._replace(gzipped=gzipped)
        return None

    def save(self, name: str, part: Part) -> None:
        """Save what is known of a part, without its XML."""
        self.store.save(self.owner, {_record_name(name): _encoded(part)})

    def forget_if_same(self, name: str, part: Part) -> None:
        """Have a part rendered again whose XML the store has lost, unless it has been by now."""
        if self.load([name]).get(name) == part:
            self.store.save(self.owner, {_record_name(name): None})

    def render(
        self,
        source: PartSource,
        previous: Part | None,
        now: Callable[[], float],
        timer: Callable[[], float],
        keep_on: Callable[[], None] = lambda: None,
    ) -> Part:
        """Render a part, then save all of it at once.

        Args:
            source: the part.
            previous: what was rendered before, if anything.
            now: returns POSIX seconds, by the clock that all workers share.
            timer: returns seconds, to measure how long it takes.
            keep_on: called after each document; raises an exception if this worker is to stop.
        """
        began = timer()
        entries, until = source.entries()
        found: list[Document] = []
        for document in islice(urlsets(entries, source.document), source.max_documents):
            found.append(document)
            keep_on()
        at = now()
        documents = tuple(document.figures for document in dated(found, previous, at))
        part = Part(source.key, at, max(0.0, timer() - began), until, source.mark, documents)
        number_before = 0 if previous is None else len(previous.documents)
        records: dict[str, bytes | None] = {_xml_name(source.name, number): None for number in range(number_before)}
        records |= {_xml_name(source.name, number): document.gzipped for number, document in enumerate(found)}
        self.store.save(self.owner, {**records, _record_name(source.name): _encoded(part)})
        return part

    def render_here(self, source: PartSource, previous: Part | None, stored: Part | None, now: float) -> Part:
        """Render a part in each worker, and save only what is known of it, so that all date it alike.

        Args:
            source: the part.
            previous: what this worker rendered before.
            stored: what is known of it in the store.
            now: POSIX seconds.
        """
        if previous is not None and not source.is_due(previous):
            return previous
        entries, _ = source.entries()
        part = Part(source.key, now, mark=source.mark, documents=dated(urlsets(entries, source.document), stored, now))
        figures = tuple(document.figures for document in part.documents)
        if stored is None or stored.documents != figures:
            self.save(source.name, part._replace(documents=figures))
        return part


def dated(documents: Iterable[Document], previous: Part | None, now: float) -> tuple[Document, ...]:
    """The documents of a part, each with its date."""
    earlier = {} if previous is None else {document.name: document for document in previous.documents}
    return tuple(document.with_date(earlier.get(document.name), int(now)) for document in documents)


def _encoded(part: Part) -> bytes:
    return json.dumps([*part[:-1], [document[:-1] for document in part.documents]]).encode()


def _decoded(record: bytes) -> Part | None:
    """A part as it was saved; None if it was not, or cannot be decoded."""
    with suppress(ValueError, TypeError):
        key, at, seconds, until, mark, documents = json.loads(record)
        part = Part(key, at, seconds, until, mark, tuple(_document(*fields) for fields in documents))
        if _has_types(part, Part("", 0.0)):
            return part
    return None


def _document(*fields: Any) -> Document:
    name, etag, entries, size, gzipped_size, lastmod, since = fields
    document = Document(name, etag, entries, size, gzipped_size, lastmod, since)
    if not _has_types(document._replace(lastmod=lastmod or ""), _SAMPLE):
        raise TypeError("a document has other fields")
    return document


_SAMPLE: Final = Document("", "", 0, 0, 0, "")


def _has_types(decoded: tuple[Any, ...], sample: tuple[Any, ...]) -> bool:
    return all(
        isinstance(value, (int, float) if isinstance(known, float) else type(known))
        for value, known in zip(decoded, sample, strict=True)
    )


def _record_name(name: str) -> str:
    return f"documents/{name}"


def _xml_name(name: str, number: int) -> str:
    return f"documents/{name}/{number}"
