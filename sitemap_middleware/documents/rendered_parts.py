"""Parts: what is rendered together, as one or more documents, and kept in the store for all workers.

A part is the static routes, or the pages of a provider, in as many documents as they need; or up to 10,000 learned
pages, which are one document. Two more have the pages that are gone, and the documents of all with links between
languages. All are rendered, saved and read in the same way.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from itertools import chain, islice
from operator import attrgetter
from typing import Final, Literal, NamedTuple, Protocol

from ..evidence.dates import w3c_from_timestamp
from ..exceptions import StoreError
from ..listing.candidates import decode_path
from ..listing.entries import EntryBuilder
from ..listing.policy import EvaluationContext
from ..listing.site_signals_cache import LEARNING_INTERVAL_SECONDS, Parts
from ..models import BaseURL, Page, Site, SitemapUrl
from ..observe.refresh_marks import RefreshMarks
from ..routing.route_table import GONE_SECTION, LEARNED_SECTION, ROUTES_SECTION
from ..stores.base import PART_PAGES, UNLEARNED_PART
from ..stores.breaker import GuardedStore
from ..util import log, yield_to_other_threads
from . import changes
from .changes import Change, KnownChanges, PageLookup
from .language_links import LINKED, language_sets, linked
from .xml import MARKED, Document, dated_locs, etag_of, numbered, selected, urlsets

MAX_AGE_FACTOR: Final = 10
"""Values are valid for this many times the time that reading them took, or `max_age` if that is longer."""

_VALUES: Final = "values/"
"""The beginning of the name of a part of pages that values give."""

_LINKED: Final = "linked"
"""The name of the part with the documents of all others, if versions in other languages are linked."""

_PART: Final = "documents/"
_XML: Final = "documents/xml/"
_CHANGES: Final = "changes/"
"""How the names of records begin: of a part, of the XML of a document, and of the changes of a part."""

_PARTS: Final = "changes"
"""The record of the names of the parts whose changes count."""


class MissingXMLError(StoreError):
    """The store does not have the XML of a document as it was listed: another worker has replaced it."""


MAX_ASKED: Final = 100
"""Pages that are requested of those that left a part at one time: values may give less for once."""

ASK_AGAIN_SECONDS: Final = 60 * 60
"""Seconds after which a page that values name, and that last answered with an error or a redirect, is requested again.
It is requested at once if the app has called `refresh`, because it may have been published again."""


class AskAgain(Protocol):
    """Has some of these decoded paths of a site requested, now and then or at once."""

    def __call__(self, site: Site, paths: Iterable[str], *, at_once: bool) -> object: ...


class Part(NamedTuple):
    """The complete documents of a part, without their XML."""

    key: str
    """What they were rendered from. While this stays the same, so do they."""
    mark: str
    """The token of the last `refresh` before them."""
    at: float
    """POSIX seconds, by the store's clock, at which they were complete."""
    seconds: float
    """Seconds it took to render them."""
    documents: tuple[Document, ...]

    @property
    def pause(self) -> float:
        """Seconds until a slow provider is called again, so that it runs for a tenth of the time at most."""
        return MAX_AGE_FACTOR * self.seconds


@dataclass(frozen=True, slots=True)
class PartSource:
    """What a part is rendered from, and when it is rendered again."""

    kind: Literal["routes", "values", "learned"]
    name: str
    """Its name in the store, unique within the site."""
    key: str
    entries: Callable[[bool], Iterable[tuple[str, Iterable[SitemapUrl]]]]
    """Returns the names of its first documents, with their entries; the argument says whether `refresh` asks for them.
    Reading either may raise what the store or a provider raises."""
    max_age: float
    """Seconds after which it is rendered again because of time alone."""
    mark: str = ""
    pages: int = 0
    """The learned pages that rendering it reads."""
    look_up: PageLookup | None = None
    """Looks up pages, if its changes are kept."""
    ask: Callable[[Iterable[str]], object] = lambda _: None
    """Has locs requested that it no longer lists, to know whether they are gone."""
    still_listed: Callable[[Collection[str]], Collection[str]] = lambda locs: locs
    """Those of the locs that its provider gave that may be listed now."""

    def is_due(self, part: Part | None, now: float, uptime: float) -> bool:
        """Whether it is to be rendered again, given what was rendered last."""
        return part is None or part.mark != self.mark or not part.at <= now < self.due_at(part, now, uptime)

    def due_at(self, part: Part, now: float, uptime: float) -> float:
        """From when on what was rendered is to be rendered again.

        Code that a deployment has changed is called although what the code before gave is still fresh: what was
        rendered before this process began, by its `uptime` in seconds, is due. Slow providers are called less often,
        unless `refresh` asks.
        """
        pause = part.pause if self.kind == "values" else 0.0
        is_of_earlier_code = self.kind != "learned" and 0 <= uptime < now - part.at
        is_current = part.key == self.key and not is_of_earlier_code
        return part.at + max(pause, self.max_age if is_current else 0.0)


def part_sources(
    builder: EntryBuilder,
    max_age: float,
    context: EvaluationContext,
    states: Parts,
    marks: RefreshMarks,
    *,
    ask: Callable[[Site, Iterable[str]], object],
    ask_again: AskAgain,
    keeps_changes: bool,
    ask_again_seconds: float,
) -> list[PartSource]:
    """What the parts of a site are rendered from, in the order of the index.

    Those of static routes and of a small site's learned pages are rendered again after `max_age`: a view's lastmod may
    be a callable, and pages become too old to be listed. Of a large site, the learned pages take longer: they are
    rendered again when the site signals are computed.

    `ask` has decoded paths of a site requested, and `ask_again` some of those that `values` name although they last
    answered with an error or a redirect.
    """
    snapshot = context.snapshot
    look_up = changes.page_lookup(builder.policy, snapshot) if keeps_changes else None

    def ask_locs(locs: Iterable[str]) -> None:
        ask(snapshot.site, [decode_path(loc.removeprefix(snapshot.site.base_url)) for loc in locs])

    def ask_those_due(pages: Iterable[Page], *, is_refreshed: bool) -> None:
        """Of pages that the app may have published just now, the last answer is recent; else the oldest come first."""
        seconds = 0 if is_refreshed else ask_again_seconds
        due = [page for page in pages if page.status != 200 and snapshot.now - page.last_seen >= seconds]
        due.sort(key=attrgetter("last_seen"), reverse=is_refreshed)
        ask_again(snapshot.site, (decode_path(page.path) for page in due), at_once=not seconds)

    def key(number: int, signals_digest: str = "") -> str:
        version = states[number].version if number in states else 0
        return f"{version}/{context.settings_digest}/{signals_digest}"

    def static_entries(section: str | None, _: bool) -> Iterator[tuple[str, Iterable[SitemapUrl]]]:
        name = f"{ROUTES_SECTION}-1" if section is None else table.document(section, "routes")
        yield name, builder.route_entries(context, section)

    def provided_entries(
        document: str, names: Collection[str], is_refreshed: bool
    ) -> Iterator[tuple[str, Iterable[SitemapUrl]]]:
        again = partial(ask_those_due, is_refreshed=is_refreshed)
        of_each = (builder.provider_entries(context, *context.providers[name], again) for name in names)
        yield document, chain.from_iterable(of_each)

    def learned_entries(number: int, _: bool) -> Iterator[tuple[str, Iterable[SitemapUrl]]]:
        pages = snapshot.store.part(snapshot.site.store_key, number)
        for section, entries in builder.learned_entries(context, pages).items():
            name = table.document(section, "pages") if section else f"{LEARNED_SECTION}-1"
            yield numbered(name, number), entries

    table = snapshot.table
    sections = {section for route in table.static(snapshot.site) if (section := table.section_of(route))}
    provided: dict[str, list[str]] = {}
    for name, (_, of_provider) in context.providers.items():
        section = table.section_of(of_provider[0])
        provided.setdefault(table.document(section, "values") if section else f"{name}-1", []).append(name)
    numbers = sorted(states.keys() - {UNLEARNED_PART})
    is_large = sum(states[number].pages for number in numbers) > PART_PAGES
    learned_max_age = LEARNING_INTERVAL_SECONDS if is_large else max_age
    source = partial(PartSource, look_up=look_up, ask=ask_locs)
    routes = [
        source(
            "routes",
            name=f"{ROUTES_SECTION}/{section}" if section else ROUTES_SECTION,
            key=key(UNLEARNED_PART, context.site_signals.digest),
            entries=partial(static_entries, section),
            max_age=max_age,
            mark=marks.everything.hex(),
        )
        for section in (None, *sorted(sections))
    ]
    values = [
        source(
            "values",
            name=f"{_VALUES}{document}",
            key=key(UNLEARNED_PART),  # read again after `max_age`, for any change of the site signals
            entries=partial(provided_entries, document, names),
            still_listed=partial(builder.still_listed, context, context.providers[names[0]][1][0]),
            max_age=max_age,
            mark="".join(marks.token_of(name).hex() for name in names),
        )
        for document, names in provided.items()
    ]
    learned = [
        source(
            "learned",
            name=f"{LEARNED_SECTION}-{number}",
            key=key(number, context.site_signals.digest),
            entries=partial(learned_entries, number),
            max_age=learned_max_age,
            pages=states[number].pages,
        )
        for number in numbers
    ]
    return [*routes, *values, *learned]


def gone_source(gone: Sequence[Change]) -> PartSource:
    """What the part of the pages that are gone is rendered from."""
    entries = [SitemapUrl(change.loc, w3c_from_timestamp(change.at)) for change in gone]
    key = blake2b(repr(entries).encode(), digest_size=8).hexdigest()
    return PartSource("routes", GONE_SECTION, key, lambda _: [(GONE_SECTION, entries)], max_age=math.inf)


class SavedParts:
    """The rendered parts of a site, in the store."""

    def __init__(self, store: GuardedStore, base_url: BaseURL, timer: Callable[[], float]) -> None:
        """`timer` measures how long rendering takes, in seconds."""
        self.base_url = base_url
        self._store = store
        self._timer = timer
        self._withdrawn: dict[str, object] = {}
        """By name of a part whose values failed: what it was last compared with."""

    def load(self, names: Collection[str]) -> dict[str, Part]:
        """Those of these parts that were rendered, by this or another worker."""
        records = self._load(_PART + name for name in names)
        found = {name: _decoded(records.get(_PART + name, b"")) for name in names}
        return {name: part for name, part in found.items() if part is not None}

    def with_xml(self, document: Document) -> Document:
        """A document with its XML. Raises `MissingXMLError` if the store has lost it, or has another one by now."""
        record = _XML + document.name
        gzipped = self._load([record]).get(record, b"")
        with suppress(OSError, EOFError, ValueError):  # what gzip raises for damaged data
            if etag_of(gzip.decompress(gzipped)) == document.etag:
                return document._replace(gzipped=gzipped)
        raise MissingXMLError(f"the XML of {document.name} is missing from the store")

    def withdraw(self, source: PartSource) -> Part | None:
        """Take out of a part whose values fail what may no longer be listed; None if there is no part.

        Raises:
            MissingXMLError: the store has the XML of a newer document.
        """
        part = self.load([source.name]).get(source.name)
        if part is None:
            return None
        compared = source.key, part.at, self._store.time() // max(1.0, source.max_age)
        if self._withdrawn.get(source.name) == compared:
            return part
        before = [self.with_xml(document) for document in part.documents]
        kept = [document for found in before if (document := selected(found, source.still_listed)) is not None]
        if kept != before:
            part = self.render(source, part, last_good=kept)
        self._withdrawn[source.name] = compared
        return part

    def render(
        self,
        source: PartSource,
        previous: Part | None,
        keep: Callable[[Document], object] = lambda _: None,
        last_good: Iterable[Document] | None = None,
    ) -> Part:
        """Render a part, then save all of it at once. `keep` is called with each document.

        `last_good`: the documents of values that fail; the part stays as old as it is.
        """
        began = self._timer()
        saved: dict[str, bytes] = {}
        if source.look_up is not None:
            previous, saved = self._load_at_once(source.name, previous)
        earlier = {} if previous is None else {document.name: document for document in previous.documents}
        records: dict[str, bytes | None] = {_XML + name: None for name in earlier}
        documents: list[Document] = []
        may_split = source.kind != "learned"
        made = last_good
        if made is None:
            named = source.entries(previous is not None and previous.mark != source.mark)
            made = chain.from_iterable(urlsets(entries, name, may_split=may_split) for name, entries in named)
        for rendered in made:
            document = rendered.with_date(earlier.get(rendered.name), self._store.time())
            if not document.name.startswith(MARKED):  # those are not sent
                keep(document)
            records[_XML + document.name] = document.gzipped
            documents.append(document.figures)
        seconds = max(0.0, self._timer() - began)
        part = Part(source.key, source.mark, self._store.time(), seconds, tuple(documents))
        if source.look_up is not None:
            known = changes.decoded(saved.get(_CHANGES + source.name), int(part.at))
            # One that never had an entry may be of an app that was not ready.
            if previous is None:
                known = known.without_entries()
            elif previous.documents or known.by_loc:
                before, known = known, _with_changes(known, source, (previous, saved), (part, records))
                left = {loc for loc, change in known.by_loc.items() if change.kind == "left"}
                left -= {loc for loc, change in before.by_loc.items() if change.kind == "left"}
                source.ask(islice(left, MAX_ASKED))
            records[_CHANGES + source.name] = known.encoded()
        if last_good is not None and previous is not None:
            part = Part(*previous[:-1], part.documents)
        self._store.save(self.base_url, {**records, _PART + source.name: _encoded(part)})
        return part

    def link(
        self,
        parts: Iterable[Part],
        x_default: str | None,
        may_be_named: Callable[[str, str], bool],
        *,
        at_once: bool,
    ) -> tuple[Part, bool]:
        """One part with all documents of these, in which versions are linked; and whether it is up to date.

        Unless it is wanted at once, it takes a tenth of the time at most, by using the earlier one meanwhile.

        Raises:
            MissingXMLError: the store has the XML of a newer document.
        """
        began, now = self._timer(), self._store.time()
        rendered = [document for part in parts for document in part.documents]
        key = etag_of(repr([x_default, *(document[:2] for document in rendered)]).encode())
        before, saved = self.load([_LINKED]).get(_LINKED), dict[str, Document]()
        earlier = {document.name: document for document in before.documents} if before is not None else {}
        names = {document.name.removeprefix(MARKED) for document in rendered}
        # A process with other settings may have named them otherwise.
        may_wait = not at_once and names.issuperset(name.removeprefix(LINKED) for name in earlier)
        if before is not None and 0 <= now - before.at < LEARNING_INTERVAL_SECONDS:
            if before.key == key or (may_wait and now - before.at < before.pause):
                return before, before.key == key
            saved = earlier  # after a while they are saved again: the store may have lost them
        sets = language_sets(lambda: (self.with_xml(document) for document in rendered), x_default, may_be_named)
        records: dict[str, bytes | None] = {_XML + name: None for name in earlier if name.startswith(LINKED)}
        documents: list[Document] = []
        for document in rendered:
            if not document.name.startswith(MARKED):
                documents.append(document)
                continue
            made = linked(self.with_xml(document), sets, saved)
            records.pop(_XML + made.name, None)
            if made.gzipped:
                made = made.with_date(earlier.get(made.name), self._store.time())
                records[_XML + made.name] = made.gzipped
            documents.append(made.figures)
        part = Part(key, "", self._store.time(), max(0.0, self._timer() - began), tuple(documents))
        self._store.save(self.base_url, {**records, _PART + _LINKED: _encoded(part)})
        return part, True

    def _load_at_once(self, name: str, part: Part | None) -> tuple[Part | None, dict[str, bytes]]:
        """A part as it is saved now, and with it the records of its changes and documents, as they were at one moment.

        Other workers may save it meanwhile: what is compared must belong together, or a change would be lost.
        """
        while True:
            documents = () if part is None else part.documents
            saved = self._load([_PART + name, _CHANGES + name, *(_XML + document.name for document in documents)])
            now = _decoded(saved.get(_PART + name, b""))
            if now is None or now.documents == documents:
                return now, saved
            part = now

    def list_parts(self, names: Iterable[str]) -> None:
        """Note which parts a site has: the changes of others are of pages that it no longer has."""
        record = json.dumps(sorted(names)).encode()
        if self._load([_PARTS]).get(_PARTS) != record:
            self._store.save(self.base_url, {_PARTS: record})

    def load_changes(self, max_age: float, looked_at: float) -> list[KnownChanges]:
        """The changes of the parts of a site, without those of values that were due at a time, and are still.

        The app may have withdrawn what they gave. Of other pages, the settings and the page itself say so.
        """
        names: list[str] = []
        with suppress(ValueError, TypeError):
            names += map(str, json.loads(self._load([_PARTS]).get(_PARTS, b"[]")))
        provided = self.load([name for name in names if name.startswith(_VALUES)])
        current = {name for name, part in provided.items() if part.at + max(max_age, part.pause) > looked_at}
        names = [name for name in names if name in current or not name.startswith(_VALUES)]
        records = self._load(_CHANGES + name for name in names)
        return [changes.decoded(records[record], 0) for record in sorted(records)]

    def _load(self, records: Iterable[str]) -> dict[str, bytes]:
        return self._store.load(self.base_url, [*records])


_Rendering = tuple[Part, Mapping[str, bytes | None]]
"""A part, and the records that have the XML of its documents."""


def _with_changes(known: KnownChanges, source: PartSource, before: _Rendering, after: _Rendering) -> KnownChanges:
    """The changes of a part that was rendered again; those of its earlier entries are dropped if it cannot be told."""
    try:
        return changes.compared(
            known,
            _other_entries(before, after),
            _other_entries(after, before),
            source.look_up or (lambda _: {}),
            rendered_at=before[0].at,
            now=int(after[0].at),
            is_enumerated=source.kind == "values",
            has_new_settings=before[0].key.split("/")[1:2] != source.key.split("/")[1:2],
        )
    except StoreError:
        raise
    except Exception as error:  # the XML is lost or damaged, or a converter of the app fails: the sitemap matters more
        log.debug("it is not known what changed in %s: %s", source.name, error)
        return known.without_entries()


def _other_entries(rendering: _Rendering, other: _Rendering) -> dict[str, str | None]:
    """The locs and lastmods in the documents of a rendering that the other one does not have."""
    part, records = rendering
    same = {document.etag for document in other[0].documents}
    entries: dict[str, str | None] = {}
    for document in part.documents:
        if document.etag not in same:
            xml = gzip.decompress(records.get(_XML + document.name) or b"")
            if etag_of(xml) != document.etag:
                raise ValueError(f"the XML of {document.name} is lost")
            entries |= dated_locs(xml)
            yield_to_other_threads()
    return entries


def _encoded(part: Part) -> bytes:
    return json.dumps([*part[:-1], [document[:-1] for document in part.documents]]).encode()


def _decoded(record: bytes) -> Part | None:
    """A part as it was saved; None if it was not, or cannot be decoded."""
    with suppress(ValueError, TypeError):
        key, mark, at, seconds, documents = json.loads(record)
        return Part(str(key), str(mark), float(at), float(seconds), tuple(Document(*fields) for fields in documents))
    return None
