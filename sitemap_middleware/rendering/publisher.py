"""The publisher: the documents of each site, put together of what is rendered, rendered where something changed."""

from __future__ import annotations

import logging
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Final

from ..config import Options
from ..exceptions import StoreError, ValuesError
from ..fork_safety import WorkerId, reset_after_fork
from ..http import TEST_CLIENT_WAIT_SECONDS, Request
from ..listing.candidates import SiteSnapshot
from ..listing.entries import EntryBuilder
from ..listing.policy import EvaluationContext
from ..listing.providers import as_values_error
from ..listing.site_signals_cache import SiteSignalsCache
from ..models import Provider, Route, Site, StoreKey
from ..robots_parser import RobotsRules
from ..routing.url_map import LEARNED_SECTION, ROUTES_SECTION, RouteTable
from ..stores.base import Store
from ..urls import quote_path
from .chunk_index import RenderKey
from .chunking import group_chunks, make_chunks
from .chunks import Chunk, Document, sitemapindex, urlset
from .document_cache import CachedDocument, DocumentCache, Freshness
from .document_plan import DocumentPlan, fits_one_document
from .learned_section import LearnedSection
from .provider_section import AlreadyRunning, ProcessEnding, ProviderSection
from .responses import PreparedResponses

log = logging.getLogger("sitemap_middleware")

MAX_SITES: Final = 64
"""Sites whose documents are kept in memory at one time."""

WAIT_SECONDS: Final = 1.0
"""Seconds to wait for documents that are being made, where there are earlier ones to serve."""

FIRST_WAIT_SECONDS: Final = 10.0
"""The same, where there are none."""

MAX_WAITED_BLOCKS: Final = 100
"""Blocks, at most, that a request for the index has rendered while it waits; more are rendered behind it."""

VALUES_FAILING_REASON: Final = "the app fails to enumerate its pages"
"""What is said of documents that cannot be made for that."""

LEASE_SECONDS: Final = 60
"""Seconds after which another worker goes on with what one renders at leisure."""

PAUSE_FACTOR: Final = 4
"""Times as long as it took to render one document that the next one waits."""


@dataclass(slots=True)
class _SiteDocuments:
    """What is known of the documents of one site."""

    learned_section: LearnedSection
    token: object = None
    """What they were made of when they were last looked at."""
    routes: tuple[RenderKey, float, list[Chunk]] | None = None
    provider_sections: dict[Provider, ProviderSection] = field(default_factory=dict)
    plans: list[DocumentPlan] = field(default_factory=list)
    ready: DocumentCache = field(default_factory=DocumentCache)
    busy: threading.Lock = field(default_factory=lambda: threading.Lock())  # noqa: PLW0108 (gevent may replace it later)
    job: _BackgroundJob | None = None
    """Enumerates the values of routes."""
    rendering: _BackgroundJob | None = None
    """Renders learned pages."""


class _BackgroundJob:
    """What is made behind requests."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.failed: Exception | None = None


class Unavailable(Exception):
    """The store does not answer, or the app's own values fail, and there is no earlier document to serve."""


class BeingGenerated(Unavailable):
    """There is no earlier document to serve while the first one is generated."""

    def __init__(self) -> None:
        super().__init__("it is being generated, try again in a moment")


class Publisher:
    """Makes documents, keeps the last good ones, and knows since when each has been what it is."""

    def __init__(
        self,
        entries: EntryBuilder,
        store: Store,
        site_signals: SiteSignalsCache,
        options: Options,
        now: Callable[[StoreKey], int],
    ) -> None:
        """`now`: the time that the pages of a site are judged by."""
        self._entries = entries
        self._store = store
        self._site_signals = site_signals
        self._path = options.path
        self._max_age = options.max_age
        self._clock = options.clock
        self._now = now
        self._sites: OrderedDict[str, _SiteDocuments] = OrderedDict()
        self._worker_id = WorkerId()
        self.rendered = 0
        """Blocks of learned pages rendered since the process began."""
        self._failing = False
        """Whether values fail, and that was warned of."""
        self._stem = options.path.removesuffix(".xml")
        self._part = re.compile(re.escape(self._stem) + r"-(([A-Za-z0-9_.~-]+)-[1-9][0-9]{0,4})\.xml")
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """In a forked child: the parent's locks may be held for ever, and its threads are not here."""
        self._closing = threading.Event()
        self._sites.clear()

    def close(self) -> None:
        """Make nothing more behind requests: a server that shuts down waits for it."""
        self._closing.set()

    def is_document_path(self, path: str, sections: Collection[str]) -> bool:
        """Whether a path is that of a document, these being the names of the documents of values."""
        if not path.startswith(self._stem):
            return False
        named = self._part.fullmatch(path)
        return path == self._path or (named is not None and named[2] in (ROUTES_SECTION, LEARNED_SECTION, *sections))

    def cached_document(self, site: Site, path: str) -> CachedDocument | None:
        """A document in memory, fresh or not. Waits for nothing."""
        edition = self._sites.get(site.base_url)
        return None if edition is None else edition.ready.get(path)

    def has_entries(self, site: Site) -> bool:
        """Whether the documents of a site that are kept in memory have entries."""
        edition = self._sites.get(site.base_url)
        return edition is not None and bool(edition.plans)

    def find_document(
        self,
        site: Site,
        table: RouteTable,
        rules: RobotsRules,
        request: Request,
        freshness: Freshness | None,
        *,
        path: str,
    ) -> CachedDocument | None:
        """The document of a path as it is now, or the last good one; None where there is none of that path.

        One thread at a time looks after a site's documents; meanwhile others serve
        what there is. Raises `Unavailable` where nothing was made before, and it
        cannot be made now.

        Args:
            site: the one that is asked for.
            table: the URL map as it is now.
            rules: what its robots.txt forbids.
            request: the one that it is made for.
            freshness: of the document that is returned; None if the next request is to look again.
            path: of the document.
        """
        edition = self._site_documents(site)
        ready = edition.ready.get(path)
        if not edition.busy.acquire(timeout=FIRST_WAIT_SECONDS if ready is None else WAIT_SECONDS):
            if ready is None:
                raise BeingGenerated
            return ready
        try:
            state = SiteSnapshot(site, table, self._store, rules, self._now(site.store_key), request.async_collector)
            return self._current_document(edition, state, path, request, freshness)
        except (StoreError, ValuesError, Unavailable) as error:
            if isinstance(error, ValuesError):
                self._note_failure(error)
            if ready is None:
                raise _unavailable_reason(error) from error
            return ready
        finally:
            edition.busy.release()

    def entry_count(self) -> int:
        """How many entries the documents of all sites hold."""
        return sum(part.count for parts in self._all_plans() for part in parts)

    def document_count(self) -> int:
        """How many documents all sites have, indexes too."""
        return sum(1 if fits_one_document(parts) else 1 + len(parts) for parts in self._all_plans() if parts)

    def values_age(self) -> float:
        """How old, in seconds, the oldest values were when a request last needed them; 0 if there are none."""
        made = [one for edition in list(self._sites.values()) for one in edition.provider_sections.values()]
        return max((one.age for one in made), default=0.0)

    def _all_plans(self) -> list[list[DocumentPlan]]:
        # Other threads may meet a new site meanwhile.
        return [edition.plans for edition in list(self._sites.values())]

    def _site_documents(self, site: Site) -> _SiteDocuments:
        edition = self._sites.get(site.base_url)
        if edition is None:
            edition = _SiteDocuments(LearnedSection(self._entries, self._store, site))
            edition = self._sites.setdefault(site.base_url, edition)
            while len(self._sites) > MAX_SITES:
                self._sites.popitem(last=False)
        return edition

    def _current_document(
        self, edition: _SiteDocuments, state: SiteSnapshot, path: str, request: Request, freshness: Freshness | None
    ) -> CachedDocument | None:
        version = self._store.version(state.site.store_key)
        now = self._clock()
        made = (
            None if request.wait_seconds == TEST_CLIENT_WAIT_SECONDS else edition.token
        )  # a test sees what it has just changed
        token = (version, state.table, state.rules.text)
        if not (
            isinstance(made, tuple)
            and made[:3] == token
            and 0 <= now - made[3] < self._max_age
            and edition.ready.get(path) is not None
        ):
            edition.learned_section.refresh(version)
            outlook = self._site_signals.get(state, edition.learned_section.pages, version)
            view = self._entries.evaluation_context(state, outlook)
            self._render_routes(edition, view, now)
            whole = self._render_providers(edition, view, request)
            whole = self._render_learned(edition, view, path, request) and whole
            edition.plans = list(self._document_plans(edition))
            self._entries.warn_of_flat_priorities(state.site, self.entry_count())
            edition.token = (*token, now) if whole else None
        try:
            found = self._assemble(edition, state, path)
        except StoreError:
            edition.token = None  # something may have been lost: the next request looks again at what there is
            raise
        if found is not None:
            if freshness is not None and isinstance(edition.token, tuple):
                until = min(freshness.valid_until, edition.token[3] + self._max_age)
                freshness = freshness._replace(valid_until=until)
            else:
                freshness = None
            found.mark_fresh(freshness, state.table)
        return found

    def _render_routes(self, edition: _SiteDocuments, view: EvaluationContext, now: float) -> None:
        origin = RenderKey(
            edition.learned_section.named_block.version, view.settings_digest, view.site_signals.record.is_dated
        )
        made = edition.routes
        if made is None or made[0] != origin or not 0 <= now - made[1] < self._max_age:
            edition.routes = origin, now, list(make_chunks(self._entries.route_entries(view)))

    def _render_providers(self, edition: _SiteDocuments, view: EvaluationContext, request: Request) -> bool:
        """Have the routes' values enumerated that are due; whether all now are as they should be."""
        sections = self._entries.providers(view.snapshot)
        edition.provider_sections = {
            provider: edition.provider_sections.get(provider)
            or ProviderSection(self._store, view.snapshot.site.base_url, name, self._worker_id, self._clock)
            for name, (provider, _) in sections.items()
        }
        origin = RenderKey(
            edition.learned_section.named_block.version, view.settings_digest, view.site_signals.record.is_dated
        )
        tested = request.wait_seconds == TEST_CLIENT_WAIT_SECONDS
        for one in edition.provider_sections.values():
            one.refresh(expired=tested)
        due = [provider for provider, one in edition.provider_sections.items() if one.is_due(origin, self._max_age)]
        if due and (edition.job is None or edition.job.done.is_set()):
            made = {one: (edition.provider_sections[one], routes) for one, routes in sections.values()}
            edition.job = self._run_in_background(
                request, lambda: self._render_due({one: made[one] for one in due}, view, origin)
            )
        if due and edition.job is not None:
            last = [one.rendered for one in edition.provider_sections.values()]
            slow = sum(one.seconds for one in last if one is not None) > WAIT_SECONDS  # then it is waited for in vain
            edition.job.done.wait(FIRST_WAIT_SECONDS if tested or None in last else 0.0 if slow else WAIT_SECONDS)
            self._check_job(edition.job, list(edition.provider_sections.values()))
        return not any(one.is_due(origin, self._max_age) for one in edition.provider_sections.values())

    def _render_due(
        self, due: Mapping[Provider, tuple[ProviderSection, list[Route]]], view: EvaluationContext, origin: RenderKey
    ) -> None:
        """Make the pages of each provider, whatever becomes of the others; then fail as one of them did."""
        busy: list[Exception] = []
        failed: list[Exception] = []
        for provider, (one, routes) in due.items():
            try:
                with closing(self._entries.provider_entries(view, provider, routes)) as entries:
                    one.render(entries, origin, self._max_age, self._closing.is_set)
            except ProcessEnding:
                raise
            except AlreadyRunning as error:
                busy.append(error)
            except StoreError as error:
                failed.append(error)
            except ValuesError as error:
                failed.append(error)
                self._note_failure(error)
            except Exception as error:  # of our own: what was made before stays up all the same
                failed.append(as_values_error(error))
                self._note_failure(as_values_error(error))
        if failed or busy:
            raise (failed + busy)[0]
        self._note_recovery()

    def _check_job(self, job: _BackgroundJob, enumerations: Sequence[ProviderSection]) -> None:
        """What came of enumerating: where it failed, what was made before may be served still, if there is any."""
        if any(one.rendered is None for one in enumerations):
            if isinstance(job.failed, ValuesError | StoreError):
                raise job.failed
            raise Unavailable(VALUES_FAILING_REASON) if self._failing else BeingGenerated

    def _render_learned(self, edition: _SiteDocuments, view: EvaluationContext, path: str, request: Request) -> bool:
        """Have learned pages rendered that are not as they should be; whether none is left."""
        stale = edition.learned_section.stale_blocks(view)
        few = sum(map(len, stale.values())) <= MAX_WAITED_BLOCKS
        began = self._clock()
        for number in stale:
            if few or path == f"{self._stem}-{LEARNED_SECTION}-{number}.xml":
                with closing(edition.learned_section.render_stale(view, number)) as steps:
                    for _ in steps:
                        self.rendered += 1
                        if self._clock() - began > WAIT_SECONDS and not edition.learned_section.has_unrendered_blocks(
                            number
                        ):
                            break
        if not edition.learned_section.stale_blocks(view):
            return True
        if edition.rendering is None or edition.rendering.done.is_set():
            edition.rendering = self._run_in_background(request, lambda: self._render_remaining(edition, view))
        return False

    def _render_remaining(self, edition: _SiteDocuments, view: EvaluationContext) -> None:
        """Render what is left, at leisure: the app's own requests go first."""
        site = view.snapshot.site.base_url
        with edition.busy:  # or what changed meanwhile would be taken for what was looked at
            stale = edition.learned_section.stale_blocks(view)
        for number in stale:
            began = self._clock()
            if not self._store.lease(site, LEARNED_SECTION, self._worker_id.name, int(began), LEASE_SECONDS):
                return
            with edition.busy:
                for _ in edition.learned_section.render_stale(view, number):
                    self.rendered += 1
            if self._closing.wait(PAUSE_FACTOR * max(0.0, self._clock() - began)):
                return

    def _run_in_background(self, request: Request, work: Callable[[], None]) -> _BackgroundJob:
        job = _BackgroundJob()

        def working() -> None:
            try:
                work()
            except Exception as error:
                job.failed = error
            finally:
                job.done.set()

        self._closing.clear()
        request.run_in_background(working)
        return job

    def _document_plans(self, edition: _SiteDocuments) -> Iterator[DocumentPlan]:
        """Every document that has entries."""
        _, _, routes = edition.routes or (None, None, [])
        for number, chunks in enumerate(group_chunks(routes), 1):
            yield DocumentPlan(f"{ROUTES_SECTION}-{number}", chunks)
        for one in edition.provider_sections.values():
            for number, pieces in enumerate(one.documents(), 1):
                yield DocumentPlan(f"{one.section}-{number}", pieces, one.reload_or_discard)
        yield from edition.learned_section.documents()

    def _assemble(self, edition: _SiteDocuments, state: SiteSnapshot, path: str) -> CachedDocument | None:
        """The document of a path, put together of what is rendered."""
        parts = edition.plans
        whole = fits_one_document(parts)
        if path == self._path and not whole:
            return self._assemble_index(edition, state, path)
        if path != self._path:
            named = self._part.fullmatch(path)
            parts = [part for part in parts if not whole and named is not None and part.name == named[1]]
        if not any(part.pieces or part.is_incomplete for part in parts):
            return None
        digests = tuple(chunk.digest for part in parts for chunk in part.chunks)
        known = edition.ready.get_if_made_of(path, digests)
        if known is not None:
            return known
        chunks = [chunk for part in parts for chunk in part.load_chunks(self._store, state.site.base_url)]
        return self._cache_document(edition, state, path, urlset(chunks), digests)

    def _assemble_index(self, edition: _SiteDocuments, state: SiteSnapshot, path: str) -> CachedDocument:
        stem = state.site.base_url + (quote_path(self._stem) or "")
        index = sitemapindex((f"{stem}-{part.name}.xml", part.lastmod) for part in edition.plans)
        digests = (index.etag.encode(),)
        return edition.ready.get_if_made_of(path, digests) or self._cache_document(edition, state, path, index, digests)

    def _cache_document(
        self, edition: _SiteDocuments, state: SiteSnapshot, path: str, document: Document, digests: tuple[bytes, ...]
    ) -> CachedDocument:
        since = self._store.served_since(state.site.base_url, path, document.etag, int(self._clock()))
        responses = PreparedResponses(document, since, self._max_age)
        cached = CachedDocument(document, since, responses, digests, state.table)
        edition.ready.put(path, cached)
        return cached

    def _note_recovery(self) -> None:
        if self._failing:
            self._failing = False
            log.warning("the sitemap's values can be had again")

    def _note_failure(self, error: ValuesError) -> None:
        """Warn of values that fail, once."""
        if not self._failing:
            self._failing = True
            log.warning("the sitemap shows its last good state, or none: %s", error, exc_info=error.__cause__)


def _unavailable_reason(error: Exception) -> Unavailable:
    """Why there is nothing to serve, for strangers: no word of what failed in particular."""
    if isinstance(error, Unavailable):
        return error
    return Unavailable("its store does not answer" if isinstance(error, StoreError) else VALUES_FAILING_REASON)
