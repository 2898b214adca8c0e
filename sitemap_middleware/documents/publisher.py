"""Brings the documents of each site up to date, and keeps the last good ones."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from ..exceptions import StoreError
from ..http.messages import Request
from ..http.robots_parser import RobotsRules
from ..http.urls import quote_path
from ..listing.candidates import SiteSnapshot, decode_path
from ..listing.entries import EntryBuilder
from ..listing.provider_items import as_values_error
from ..listing.site_signals_cache import MAX_CACHED_SITES, Parts
from ..models import Site
from ..observe.refresh_marks import RefreshMarks
from ..options.table import Options
from ..protocol.language_codes import X_DEFAULT
from ..routing.route_table import RouteTable
from ..stores.breaker import GuardedStore
from ..util import begin, log, reset_after_fork
from . import xml
from .changes import Change, is_good, page_lookup, settled
from .no_sitemap_reasons import BeingGenerated, Unavailable
from .rendered_parts import ASK_AGAIN_SECONDS, AskAgain, MissingXMLError, Part, PartSource, gone_source, part_sources
from .site_sitemap import SiteSitemap
from .xml import Document

FRESH_SECONDS: Final = 1.0
"""Seconds for which documents are served without reading the store."""

WAIT_SECONDS: Final = 1.0
"""Seconds that a request waits for documents that are being rendered if there are earlier ones to serve."""

FIRST_WAIT_SECONDS: Final = 10.0
"""Seconds that a request waits for documents that are being rendered if there are none to serve meanwhile."""

MAX_WAITED_PAGES: Final = 1000
"""Learned pages whose documents a request renders by itself. If more are stale, they are rendered in the background."""

PAUSE_FACTOR: Final = 2
"""The pause after a part was rendered in the background, as a multiple of the time that it took."""


@dataclass(kw_only=True, eq=False)
class Publisher:
    """Makes the documents of all sites. Workers that share a store render in turn what none of them has rendered."""

    entries: EntryBuilder
    store: GuardedStore
    options: Options
    on_loss: Callable[[Site], object]
    """Called when the store has lost what it held of a site."""
    ask: Callable[[Site, Iterable[str]], object]
    """Has decoded paths requested."""
    ask_again: AskAgain

    def __post_init__(self) -> None:
        self._clock = self.options.clock
        self._started_at = self._clock()
        self._sites: OrderedDict[str, SiteSitemap] = OrderedDict()
        self._closing = threading.Event()
        self._generation = 0
        """Grows whenever documents in memory may have become outdated."""
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """In a forked child: the parent's locks may be held for ever, and its threads are not here."""
        self._sites.clear()
        self._closing = threading.Event()

    def close(self) -> None:
        """Render nothing more in the background: a server that shuts down waits for it."""
        self._closing.set()

    def expire(self) -> None:
        """Look at the store before a document is served again."""
        self._generation += 1

    def sitemap(self, site: Site) -> SiteSitemap:
        """What is known of the sitemap of a site."""
        sitemap = self._sites.get(site.base_url)
        if sitemap is None:
            new = SiteSitemap(self.store, site.base_url, self.options.path, self._clock)
            sitemap = self._sites.setdefault(site.base_url, new)
            while len(self._sites) > MAX_CACHED_SITES:
                self._sites.popitem(last=False)
        return sitemap

    def sitemaps(self) -> list[SiteSitemap]:
        """Those of all sites."""
        return list(self._sites.values())  # a copy: other threads may add a site meanwhile

    def fresh_document(self, site: Site, path: str) -> Document | None:
        """A document in memory that was up to date a moment ago; None if there is none. Waits for nothing."""
        sitemap = self._sites.get(site.base_url)
        if sitemap is None or sitemap.checked is None:
            return None
        generation, at = sitemap.checked
        is_fresh = generation == self._generation and 0 <= self._clock() - at < min(FRESH_SECONDS, self.options.max_age)
        return sitemap.in_memory(path) if is_fresh else None

    def states(self, site: Site) -> Parts:
        """The parts of a site in the store.

        Raises `BeingGenerated` if it has lost what it held since the last time, which the last good documents have.
        """
        sitemap = self.sitemap(site)
        earlier, states = sitemap.states, self.store.parts(site.store_key)
        sitemap.states = states
        newest = max((part.version for part in earlier.values()), default=0)
        # A version only grows, unless an earlier copy of the store took its place.
        is_older = any(number in states and states[number].version < part.version for number, part in earlier.items())
        if earlier and (is_older or not states or any(part.since > newest for part in states.values())):
            log.warning(
                "the sitemap's store has lost what it held of %s: it was emptied, or an earlier copy took its place;"
                " what was lost is learned again",
                site.base_url,
            )
            self.on_loss(site)
            raise BeingGenerated
        return states

    def complete_routes(self, site: Site, table: RouteTable, request: Request) -> bool:
        """Have this process read the providers whose routes match no path before, and wait a moment; whether it just
        did. The static routes among their pages are rendered with what these say of them.
        """
        jobs = self.sitemap(site).jobs
        if "routes" in jobs or not any(provider.any_route for provider, _ in table.providers(site).values()):
            return False
        job = jobs["routes"] = begin(partial(self.entries.complete_routes, site, table, request.async_collector))
        wait((job,), FIRST_WAIT_SECONDS)
        return job.done()

    def find_document(
        self, site: Site, table: RouteTable, rules: RobotsRules, request: Request, *, path: str, marks: RefreshMarks
    ) -> Document | None:
        """The document of a path as it is now; None if there is none of that path.

        One thread at a time brings a site's documents up to date.

        Raises `Unavailable`, or `StoreError` if the store fails: it cannot be made now.
        """
        sitemap = self.sitemap(site)
        is_first = sitemap.in_memory(path) is None
        if not sitemap.lock.acquire(timeout=FIRST_WAIT_SECONDS if is_first else WAIT_SECONDS):
            raise BeingGenerated
        try:
            snapshot = SiteSnapshot(site, table, self.store, rules, self.store.time(), request.async_collector)
            checked = self._generation, self._clock()
            self._refresh(sitemap, snapshot, request, marks)
            try:
                document = sitemap.find(path)
            except MissingXMLError:  # another worker has rendered it again meanwhile
                sitemap.made_of = None
                self._refresh(sitemap, snapshot, request, marks)
                document = sitemap.find(path)
            sitemap.checked = None if sitemap.made_of is None else checked
        except (StoreError, Unavailable):
            sitemap.made_of = sitemap.checked = None  # XML may be missing: the next request looks at everything
            raise
        finally:
            sitemap.lock.release()
        return document

    def changes(self, site: Site, looked_at: float = -math.inf) -> list[Change]:
        """The changes of a site that count now, the oldest first, told or not; without those of values that the last
        look at the sitemap was to bring up to date, and did not. Raises `StoreError`.
        """
        max_age = self.options.max_age
        known = self.sitemap(site).load_changes(max_age, looked_at)
        return settled(known, max_age, self.store.time())

    # Bringing the parts of a site up to date

    def _refresh(self, sitemap: SiteSitemap, snapshot: SiteSnapshot, request: Request, marks: RefreshMarks) -> None:
        """Bring all parts up to date, unless nothing has changed since they were."""
        store, site, now = snapshot.store, snapshot.site, self._clock()
        version = store.version(site.store_key)
        made_of = (version, snapshot.table, snapshot.rules.text, marks)
        if sitemap.made_of == made_of and 0 <= now - sitemap.made_at < sitemap.fresh_seconds:
            return
        states = self.states(site)
        context = self.entries.evaluation_context(snapshot, states, version)
        sources = part_sources(
            self.entries,
            self.options.max_age,
            context,
            states,
            marks,
            ask=self.ask,
            ask_again=self.ask_again,
            keeps_changes=self.options.keeps_changes,
            ask_again_seconds=0 if request.is_of_test else ASK_AGAIN_SECONDS,
        )
        names = [source.name for source in sources]
        if self.options.keeps_changes:
            sitemap.list_parts(names)
        parts = sitemap.parts = sitemap.load(names)
        read_at = [parts[source.name].at for source in sources if source.kind == "values" and source.name in parts]
        sitemap.values_age = max((now - at for at in read_at), default=0.0)
        due = [source for source in sources if self._is_due(source, parts)]
        is_short = sum(source.pages for source in due) <= MAX_WAITED_PAGES
        here = [source for source in due if source.kind == "routes" or (source.kind == "learned" and is_short)]
        for source in here:
            previous = parts.get(source.name)
            parts[source.name] = sitemap.render(source, previous, sitemap.keep)
        self._render_in_background(sitemap, [source for source in due if source not in here], request)
        missing = [source for source in sources if source.name not in parts and source.name not in sitemap.failing]
        if any(source.kind == "values" for source in missing):
            raise BeingGenerated
        found, is_linked = [parts[source.name] for source in sources if source.name in parts], True
        if any(document.name.startswith(xml.MARKED) for part in found for document in part.documents):
            found, is_linked = self._link(sitemap, found, snapshot, request)
        gone = self._gone(sitemap, snapshot) if self.options.gone and any(part.documents for part in found) else None
        may_be_single = not (missing or snapshot.table.sections or gone)
        sitemap.list_documents(found, gone, may_be_single=may_be_single)
        if sitemap.failing and not sitemap.entry_count():
            raise Unavailable("the values of a route fail, and the log says why")
        # Values that are not read again yet, as they are slow, were made of what was known before.
        is_made = all(parts[source.name].key == source.key for source in sources if source.name in parts)
        is_complete = is_linked and is_made and not any(self._is_due(source, parts) for source in due)
        sitemap.made_of, sitemap.made_at = made_of if is_complete else None, now
        uptime, stored_now = now - self._started_at, self.store.time()
        due_at = [source.due_at(parts[source.name], stored_now, uptime) for source in sources if source.name in parts]
        sitemap.fresh_seconds = min([self.options.max_age, *(at - stored_now for at in due_at)])

    def _gone(self, sitemap: SiteSitemap, snapshot: SiteSnapshot) -> Part | None:
        """The part of the pages that were listed and are gone; None if there are none."""
        gone = [change for change in self.changes(snapshot.site) if change.kind == "gone"]
        pages = page_lookup(self.entries.policy, snapshot)([change.loc for change in gone]) if gone else {}
        # The store keeps a learned page that is gone for a day only.
        gone = [change for change in gone if change.loc in pages and not is_good(pages[change.loc])]
        if not gone:
            return None
        source = gone_source(sorted(gone[-xml.MAX_ENTRIES :]))
        part = sitemap.load([source.name]).get(source.name)
        if part is None or part.key != source.key:
            part = sitemap.render(source, part, sitemap.keep)
        return part

    def _link(
        self, sitemap: SiteSitemap, parts: list[Part], snapshot: SiteSnapshot, request: Request
    ) -> tuple[list[Part], bool]:
        """The part in which versions in other languages are linked, and whether it was made of these parts.

        It is made in the background, as it takes long on a large site. If it is not done soon, the parts are sent as
        they are, without links; if there are earlier ones with links, it raises `BeingGenerated`.
        """
        job, is_new = sitemap.jobs.get("links"), False
        if job is None or job.done():
            x_default, at_once = self.options.x_default, request.is_of_test
            may_be_named = partial(self._may_be_named, snapshot)
            work = partial(sitemap.link, parts, x_default, may_be_named, at_once=at_once)
            job = sitemap.jobs["links"] = begin(work)
            is_new = True
        wait((job,), FIRST_WAIT_SECONDS)
        if not job.done():
            if sitemap.is_linked:
                raise BeingGenerated
            return parts, False
        part, is_current = job.result()
        return [part], is_new and is_current

    def _may_be_named(self, snapshot: SiteSnapshot, code: str, url: str) -> bool:
        """Whether a decoded URL that is not listed may be linked as a version of a page.

        It may if no route of the app answers it; or if it is the `x-default`, and was not answered or redirects.
        """
        site, base = snapshot.site, decode_path(snapshot.site.base_url)
        path = url.removeprefix(base)
        if not path.startswith("/") or path == url:
            return True
        if snapshot.table.find_route(site, path) is None and snapshot.table.matching_route(site, path) is None:
            return True
        quoted = quote_path(path) or ""
        page = snapshot.find_pages([quoted]).get(quoted) if code == X_DEFAULT else None
        return code == X_DEFAULT and (page is None or 300 <= page.status < 400)

    def _is_due(self, source: PartSource, parts: Mapping[str, Part]) -> bool:
        uptime = self._clock() - self._started_at
        return source.is_due(parts.get(source.name), self.store.time(), uptime)

    def _render_in_background(self, sitemap: SiteSitemap, due: Collection[PartSource], request: Request) -> None:
        """Render parts after this request, or at the same time, and wait a moment.

        A job that runs already is enough. A slow provider does not delay learned pages.
        """
        if self._closing.is_set():  # the app goes on; what ran before must end all the same
            self._closing = threading.Event()
        waited: list[Future[Any]] = []
        for kind in ("values", "learned"):
            sources = [source for source in due if source.kind == kind]
            if not sources:
                continue
            job = sitemap.jobs.get(kind)
            if job is None or job.done():
                job = sitemap.jobs[kind] = begin(partial(self._render_all, sitemap, sources, self._closing))
            waited.append(job)
        is_new = any(source.name not in sitemap.parts for source in due)
        wait(waited, FIRST_WAIT_SECONDS if request.is_of_test or is_new else WAIT_SECONDS)

    def _render_all(self, sitemap: SiteSitemap, sources: Collection[PartSource], closing: threading.Event) -> None:
        """Render each of some parts, unless another worker has done so by now, even if another one fails."""
        for source in sources:
            try:
                parts = sitemap.load([source.name])
                part = parts.get(source.name)
                if part is None or self._is_due(source, parts):
                    part = sitemap.render(source, part)
                sitemap.parts[source.name] = part
            except StoreError:  # the circuit breaker has logged it
                return
            except Exception as error:  # nor may a fault of the middleware remove earlier documents
                if closing.is_set():
                    return  # the provider failed because the process ends
                failure = as_values_error(error)
                if source.name not in sitemap.failing:
                    cause = failure.__cause__
                    log.warning("the sitemap shows the last good pages, or none: %s", failure, exc_info=cause)
                sitemap.failing[source.name] = str(failure)
                with suppress(StoreError):
                    if (part := sitemap.withdraw(source)) is not None:
                        sitemap.parts[source.name] = part
                continue
            if sitemap.failing.pop(source.name, None) is not None:
                log.warning("the sitemap's values can be read again")
            if closing.wait(PAUSE_FACTOR * part.seconds if source.kind == "learned" else 0):
                return
