"""Brings the documents of each site up to date, and keeps the last good ones."""

from __future__ import annotations

import logging
import math
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, NamedTuple, cast

from ..exceptions import StoreError, ValuesError
from ..http.messages import TEST_CLIENT_WAIT_SECONDS, Request
from ..http.robots_parser import RobotsRules
from ..listing.candidates import SiteSnapshot
from ..listing.entries import EntryBuilder
from ..models import BaseURL, Site
from ..options.table import Options
from ..routing.route_table import RouteTable
from ..stores.base import UNLEARNED_PART, PartState, Store
from ..stores.requested_refreshes import RefreshMarks
from ..stores.store_clock import StoreClock
from ..util import reset_after_fork
from .background import BeingGenerated, RenderedSite, Renderer, Unavailable
from .document import Document
from .parts import PartSource, Saver
from .site_documents import DocumentPaths, MissingXMLError, PublishedDocument, SiteDocuments
from .sources import WAIT_SECONDS, PartSources, States

log: logging.Logger = logging.getLogger("sitemap_middleware")

MAX_SITES: Final = 64
"""Sites whose documents are kept in memory at one time."""

FIRST_WAIT_SECONDS: Final = 10.0
"""Seconds that a request waits for documents that are being rendered if there are none to serve meanwhile."""

DEADLINE_SECONDS: Final = 2.0
"""Seconds after which a request gets the last good document. What it began goes on in the background."""

MAX_WAITED_PAGES: Final = 1000
"""Learned pages whose documents a request renders by itself. If more are stale, they are rendered in the background."""

PROVIDER_FAILING_REASON: Final = "the values of a route fail, and the log says why"
"""What clients are told if there is no document because a provider fails."""

Freshness = tuple[int, float, float]
"""A generation, and the POSIX seconds between which the documents in memory need no check."""

_NEVER: Final[Freshness] = -1, 0.0, 0.0


class _Inputs(NamedTuple):
    """What the documents of a site were made from when all were last up to date."""

    version: int
    """The version of the site's pages in the store."""
    table: RouteTable
    rules: str
    marks: RefreshMarks
    read_at: float
    """POSIX seconds."""


class _SiteSitemap:
    """What is known of the sitemap of one site."""

    def __init__(self, base_url: BaseURL, path: str, now: float) -> None:
        self.lock = threading.Lock()
        """Held while the documents are brought up to date."""
        self.created_at = now
        self.documents = SiteDocuments(path)
        self.rendered = RenderedSite(base_url)
        self.inputs: _Inputs | None = None
        """None if the next request must bring everything up to date."""
        self.fresh = _NEVER
        self.states: States = {}
        """The parts of the site in the store, as they were last read."""
        self.values_age = 0.0
        self.is_lost = False
        """Whether the store has lost what it held of the site."""


class Publisher:
    """Makes the documents of all sites."""

    def __init__(self, entries: EntryBuilder, store: Store, options: Options, store_clock: StoreClock) -> None:
        self._entries = entries
        self._sources = PartSources(entries, options, store_clock)
        self._store = store
        self._options = options
        self._clock = options.clock
        self._store_clock = store_clock
        self._renderer = Renderer(store, store_clock, options.clock)
        self._sites: OrderedDict[str, _SiteSitemap] = OrderedDict()
        self.paths: DocumentPaths = DocumentPaths(options)
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """In a forked child: the parent's locks may be held for ever, and its threads are not here."""
        self._sites.clear()

    def close(self) -> None:
        """Render nothing more in the background: a server that shuts down waits for it."""
        self._renderer.close()

    # Documents

    def fresh_document(self, site: Site, path: str, generation: int) -> Document | None:
        """A document in memory that was up to date a moment ago; None if there is none. Waits for nothing."""
        sitemap = self._sites.get(site.base_url)
        if sitemap is None or not self.is_fresh(site, generation):
            return None
        return sitemap.documents.in_memory(path)

    def is_fresh(self, site: Site, generation: int) -> bool:
        """Whether all documents of a site were up to date a moment ago, in this generation. Waits for nothing."""
        sitemap = self._sites.get(site.base_url)
        if sitemap is None:
            return False
        known, since, until = sitemap.fresh
        return known == generation and since <= self._clock() < until

    def last_document(self, site: Site, path: str) -> Document | None:
        """A document as it was last served; None if its pages have changed since, or if there was none."""
        sitemap = self._sites.get(site.base_url)
        return None if sitemap is None else sitemap.documents.in_memory(path)

    def is_listed(self, site: Site, path: str) -> bool:
        """Whether the documents of a site, as they were last brought up to date, include that of a path."""
        sitemap = self._sites.get(site.base_url)
        return sitemap is not None and sitemap.documents.has(path)

    def find_document(
        self,
        site: Site,
        table: RouteTable,
        rules: RobotsRules,
        request: Request,
        *,
        path: str,
        marks: RefreshMarks,
        freshness: Freshness | None = None,
    ) -> Document | None:
        """The document of a path as it is now, or the last good one; None if there is none of that path.

        One thread at a time brings a site's documents up to date; meanwhile others get the last good ones.

        Args:
            site: the site.
            table: the routes as they are now.
            rules: the site's robots.txt.
            request: the one that the document is made for.
            path: of the document.
            marks: what `refresh` asked for.
            freshness: a generation, when the request began, and until when others need no other check, in POSIX
                seconds; None if the next request has to check again.

        Raises:
            Unavailable: it cannot be made now, and there is no earlier document, or one whose pages have changed since.
        """
        sitemap, began = self._sitemap_of(site), self._clock()
        documents = sitemap.documents
        last_good = documents.in_memory(path)
        if not sitemap.lock.acquire(timeout=FIRST_WAIT_SECONDS if last_good is None else WAIT_SECONDS):
            last_good = documents.in_memory(path)  # the other thread may have replaced it
            if last_good is None:
                raise BeingGenerated
            return last_good
        may_wait = last_good is None or request.wait_seconds is None  # then another thread waits, as long as it likes
        patience = _Patience(self._store, self._clock, math.inf if may_wait else began + DEADLINE_SECONDS)
        store = cast("Store", patience)
        try:
            now = self._store_clock.now()
            snapshot = SiteSnapshot(site, table, store, rules, now, request.async_collector)
            document = self._find_current(sitemap, snapshot, request, marks, path)
            sitemap.fresh = self._limited(freshness, sitemap.inputs)
        except (StoreError, ValuesError, Unavailable) as error:
            sitemap.inputs = None  # XML may be missing from the store: the next request looks at everything
            sitemap.fresh = _NEVER
            last_good = documents.in_memory(path)
            if last_good is None:
                raise _as_unavailable(error) from error
            return last_good
        else:
            return document
        finally:
            patience.ends_at = math.inf
            sitemap.lock.release()

    def take_loss(self, site: Site) -> bool:
        """Whether the store has lost what it held of a site, since the last call."""
        sitemap = self._sitemap_of(site)
        is_lost, sitemap.is_lost = sitemap.is_lost, False
        return is_lost

    def failing_values(self, site: Site) -> str | None:
        """Why the pages of providers are as they were, or missing, in the documents of a site; None if none are."""
        sitemap = self._sites.get(site.base_url)
        return None if sitemap is None else "; ".join(sorted({*sitemap.rendered.failing.values()})) or None

    @property
    def rendered_parts(self) -> int:
        """Parts of learned pages rendered since the process began."""
        return self._renderer.rendered_parts

    # Figures

    def has_entries(self, site: Site) -> bool:
        """Whether the documents of a site that were last brought up to date have entries."""
        sitemap = self._sites.get(site.base_url)
        return sitemap is not None and bool(sitemap.documents.listed)

    def published_documents(self, site: Site) -> list[PublishedDocument]:
        """The documents of a site as they were last brought up to date, the index first if there is one."""
        sitemap = self._sites.get(site.base_url)
        return [] if sitemap is None else sitemap.documents.published()

    def entry_count(self) -> int:
        """The number of entries in the documents of all sites."""
        return sum(sitemap.documents.entry_count() for sitemap in self._all())

    def document_count(self) -> int:
        """The number of documents of all sites, indexes included."""
        return sum(sitemap.documents.count() for sitemap in self._all())

    def values_age(self) -> float:
        """The age in seconds of the oldest provider items when a request last needed them; 0 if there are none."""
        return max((sitemap.values_age for sitemap in self._all()), default=0.0)

    def _all(self) -> list[_SiteSitemap]:
        return list(self._sites.values())  # a copy: other threads may add a site meanwhile

    def _sitemap_of(self, site: Site) -> _SiteSitemap:
        sitemap = self._sites.get(site.base_url)
        if sitemap is None:
            sitemap = self._sites.setdefault(
                site.base_url, _SiteSitemap(site.base_url, self._options.path, self._clock())
            )
            while len(self._sites) > MAX_SITES:
                self._sites.popitem(last=False)
        return sitemap

    # Bringing the parts of a site up to date

    def _find_current(
        self, sitemap: _SiteSitemap, snapshot: SiteSnapshot, request: Request, marks: RefreshMarks, path: str
    ) -> Document | None:
        """The document of a path as it is now."""
        saver = Saver(snapshot.store, snapshot.site.base_url)
        self._refresh(sitemap, snapshot, request, marks)
        try:
            return sitemap.documents.find(path, saver, snapshot.now)
        except MissingXMLError:  # another worker has rendered it again meanwhile, or the store has lost it
            sitemap.inputs = None
            self._refresh(sitemap, snapshot, request, marks)
            return sitemap.documents.find(path, saver, snapshot.now)

    def _refresh(self, sitemap: _SiteSitemap, snapshot: SiteSnapshot, request: Request, marks: RefreshMarks) -> None:
        """Bring all parts up to date, unless nothing has changed since they were."""
        store, by_test = snapshot.store, request.wait_seconds == TEST_CLIENT_WAIT_SECONDS
        version = store.version(snapshot.site.store_key)
        inputs = _Inputs(version, snapshot.table, snapshot.rules.text, marks, self._clock())
        known = sitemap.inputs
        if (
            known is not None
            and known[:4] == inputs[:4]
            and 0 <= inputs.read_at - known.read_at < self._options.max_age
            and not by_test  # a test sees what it has just changed
        ):
            return
        states = store.parts(snapshot.site.store_key)
        self._note_loss(sitemap, states, snapshot.site)
        evaluation = self._entries.evaluation_context(snapshot, states, version)
        routes = self._sources.routes(evaluation, states, marks)
        values = self._sources.values(evaluation, states, marks, is_expired=by_test)
        learned = self._sources.learned(evaluation, states)
        saver, shared, rendered = Saver(store, snapshot.site.base_url), [*values, *learned], sitemap.rendered
        parts = saver.load([source.name for source in (routes, *shared)])
        previous, stored = rendered.parts.get(routes.name), parts.get(routes.name)
        parts[routes.name] = saver.render_here(routes, previous, stored, self._store_clock.now())
        rendered.parts = parts
        for name in {*rendered.failing} - {source.name for source in shared}:  # their routes are gone
            rendered.failing.pop(name, None)
        self._refresh_values(sitemap, values, request, by_test=by_test)
        self._refresh_learned(rendered, learned, request, store, by_test=by_test)
        ordered = {source.name: part for source in (routes, *shared) if (part := parts.get(source.name)) is not None}
        is_complete = all(source.name in parts or source.name in rendered.failing for source in shared)
        is_named = any(provider.section is not None for provider, _ in evaluation.providers.values())
        sitemap.documents.replace_parts(ordered, may_be_single=is_complete and not is_named)
        if rendered.failing and not sitemap.documents.listed:
            raise Unavailable(PROVIDER_FAILING_REASON)
        sitemap.inputs = None if any(source.is_due(parts.get(source.name)) for source in shared) else inputs

    def _note_loss(self, sitemap: _SiteSitemap, states: States, site: Site) -> None:
        """Note if the store has lost pages: only learned ones may go in the course of time."""
        nothing, earlier = PartState(0, 0), sitemap.states
        sitemap.states = states  # at once: should the store fail now, the next request says nothing of it again
        before, now = earlier.get(UNLEARNED_PART, nothing), states.get(UNLEARNED_PART, nothing)
        # The version of a part only grows, unless an earlier copy of the store took its place.
        is_older = any(number in states and states[number].version < part.version for number, part in earlier.items())
        if now.pages < before.pages or is_older or (earlier and not states):
            log.warning(
                "the sitemap's store has lost what it held of %s: it was emptied, or an earlier copy took its place;"
                " what was lost is learned again",
                site.base_url,
            )
            sitemap.is_lost = True

    def _refresh_values(
        self, sitemap: _SiteSitemap, sources: list[PartSource], request: Request, *, by_test: bool
    ) -> None:
        """Call the providers that are due, and wait a moment. Earlier documents stay until new ones are complete."""
        rendered = sitemap.rendered
        known = [rendered.parts.get(source.name) for source in sources]
        at = (sitemap.created_at if part is None else part.at for part in known)
        sitemap.values_age = max((max(0.0, self._clock() - moment) for moment in at), default=0.0)
        if not any(source.is_due(part) for source, part in zip(sources, known, strict=True)):
            return
        job = self._renderer.start(rendered, sources, request)
        wait = 0.0 if sum(part.seconds for part in known if part is not None) > WAIT_SECONDS else WAIT_SECONDS
        job.done.wait(FIRST_WAIT_SECONDS if by_test or None in known else wait)
        if any(source.name not in rendered.parts and source.name not in rendered.failing for source in sources):
            raise job.error if isinstance(job.error, StoreError) else BeingGenerated

    def _refresh_learned(
        self, rendered: RenderedSite, sources: list[PartSource], request: Request, store: Store, *, by_test: bool
    ) -> None:
        """Render stale parts: a few pages at once, more in the background while earlier documents are served."""
        stale = [source for source in sources if source.is_due(rendered.parts.get(source.name))]
        if sum(source.pages for source in stale) <= MAX_WAITED_PAGES:
            self._renderer.render_now(rendered, stale, store)
            return
        job = self._renderer.start(rendered, stale, request)
        is_new = not any(source.name in rendered.parts for source in sources)
        job.done.wait(FIRST_WAIT_SECONDS if by_test or is_new else WAIT_SECONDS)
        if job.done.is_set() and isinstance(job.error, StoreError):
            raise job.error

    def _limited(self, freshness: Freshness | None, inputs: _Inputs | None) -> Freshness:
        """How long documents may be served: not if something is still being rendered, nor past `max_age`."""
        if freshness is None or inputs is None:
            return _NEVER
        generation, since, until = freshness
        return generation, since, min(until, inputs.read_at + self._options.max_age)


class _Patience:
    """A store whose calls fail from some time on: where no other thread can wait for a slow one."""

    def __init__(self, store: Store, clock: Callable[[], float], ends_at: float) -> None:
        self._store = store
        self._clock = clock
        self.ends_at = ends_at
        """POSIX seconds. Set to infinity when the request ends: what it has begun goes on in the background."""

    def __getattr__(self, name: str) -> Any:
        if self._clock() > self.ends_at:
            raise StoreError(f"the store takes longer than {DEADLINE_SECONDS:g} seconds for a sitemap")
        return getattr(self._store, name)


def _as_unavailable(error: Exception) -> Unavailable:
    """The error for clients: it does not name what failed in particular."""
    if isinstance(error, Unavailable):
        return error
    return Unavailable("its store does not answer" if isinstance(error, StoreError) else PROVIDER_FAILING_REASON)
