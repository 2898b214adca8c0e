"""Brings the documents of each site up to date, and keeps the last good ones."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Collection
from typing import Final, NamedTuple

from ..exceptions import StoreError, ValuesError
from ..fork_safety import reset_after_fork
from ..listing.candidates import SiteSnapshot
from ..listing.entries_by_section import EntryBuilder
from ..models import Site
from ..options.table import Options
from ..request_response import TEST_CLIENT_WAIT_SECONDS, Request
from ..robots_parser import RobotsRules
from ..routing.route_table import LEARNED_SECTION, ROUTES_SECTION, RouteTable
from ..stores.base import Store
from ..stores.requested_refreshes import RefreshMarks
from ..stores.store_clock import StoreClock
from .chunked_document import RenderKey
from .learned_section import LearnedSection
from .provider_section_scheduler import PROVIDER_FAILING_REASON, ProviderSections
from .responses import CachedDocument, Freshness
from .routes_section import RoutesSection
from .section import (
    FIRST_WAIT_SECONDS,
    WAIT_SECONDS,
    BeingGenerated,
    RefreshContext,
    RenderingResources,
    Section,
    Unavailable,
)
from .site_documents import PublishedDocument, SiteDocuments

MAX_SITES: Final = 64
"""Sites whose documents are kept in memory at one time."""


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
    """The sections and the documents of one site."""

    def __init__(self, resources: RenderingResources, options: Options, site: Site) -> None:
        self.lock = threading.Lock()
        """Held while the documents are brought up to date."""
        self.providers = ProviderSections(resources, site)
        self.learned = LearnedSection(resources, site, self.lock)
        self.sections: tuple[Section, ...] = (RoutesSection(resources), self.providers, self.learned)
        self.documents = SiteDocuments(resources.store, options, site.base_url)
        self.inputs: _Inputs | None = None
        """None if the next request must bring the sections up to date."""


class Publisher:
    """Makes the documents of all sites."""

    def __init__(
        self,
        entries: EntryBuilder,
        store: Store,
        options: Options,
        store_clock: StoreClock,
    ) -> None:
        self._entries = entries
        self._store = store
        self._options = options
        self._clock = options.clock
        self._store_clock = store_clock
        self._sites: OrderedDict[str, _SiteSitemap] = OrderedDict()
        self._resources = RenderingResources(entries, store, options.clock, options.max_age, options.max_age_days)
        self._stem = options.path.removesuffix(".xml")
        self._part_path = re.compile(re.escape(self._stem) + r"-(([A-Za-z0-9_.~-]+?)(-[1-9][0-9]{0,4})?)\.xml")
        self._section_names = frozenset(provider.section for provider in options.sections)
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """In a forked child: the parent's locks may be held for ever, and its threads are not here."""
        self._resources.closing = threading.Event()
        self._sites.clear()

    def take_loss(self, site: Site) -> bool:
        """Whether the store has lost what it held of a site, since the last call."""
        try:
            self._resources.sites_lost.remove(site.store_key)
        except KeyError:
            return False
        return True

    def close(self) -> None:
        """Render nothing more in the background: a server that shuts down waits for it."""
        self._resources.closing.set()

    def may_be_document_path(self, path: str) -> bool:
        """Whether a path could be that of a document, whatever the names of the sections are."""
        return path.startswith(self._stem) and (
            path == self._options.path or self._part_path.fullmatch(path) is not None
        )

    def is_document_path(self, path: str, provider_names: Collection[str]) -> bool:
        """Whether a path is that of a document, given the names of the providers' sections."""
        if not path.startswith(self._stem):
            return False
        part = self._part_path.fullmatch(path)
        if part is None or part[3] is None:  # only the first document of a named section has no number
            return path == self._options.path or (part is not None and part[2] in self._section_names)
        return part[2] in (ROUTES_SECTION, LEARNED_SECTION, *provider_names)

    def cached_document(self, site: Site, path: str) -> CachedDocument | None:
        """A document in memory, fresh or not. Waits for nothing."""
        sitemap = self._sites.get(site.base_url)
        return None if sitemap is None else sitemap.documents.cached(path)

    def find_document(
        self,
        site: Site,
        table: RouteTable,
        rules: RobotsRules,
        request: Request,
        freshness: Freshness | None,
        *,
        path: str,
        marks: RefreshMarks,
    ) -> CachedDocument | None:
        """The document of a path as it is now, or the last good one; None if there is none of that path.

        One thread at a time brings a site's documents up to date; meanwhile others get the last good ones.

        Args:
            site: the site.
            table: the routes as they are now.
            rules: the site's robots.txt.
            request: the one that the document is made for.
            freshness: what to keep with the returned document, so that requests need no other check for a while; None
                if the next request has to check again.
            path: of the document.
            marks: what `refresh` asked for.

        Raises:
            Unavailable: it cannot be made now, and there is no earlier document, or one whose pages have changed since.
        """
        sitemap = self._sitemap_of(site)
        documents = sitemap.documents
        if not sitemap.lock.acquire(timeout=FIRST_WAIT_SECONDS if documents.cached(path) is None else WAIT_SECONDS):
            last_good = documents.cached(path)  # looked up again: the other thread may have dropped or replaced it
            if last_good is None:
                raise BeingGenerated
            return last_good
        try:
            snapshot = SiteSnapshot(
                site, table, self._store, rules, self._store_clock.now(site.store_key), request.async_collector
            )
            self._refresh(sitemap, snapshot, path, request, marks)
            return documents.assemble(path, table, self._limited(freshness, sitemap.inputs))
        except (StoreError, ValuesError, Unavailable) as error:
            sitemap.inputs = None  # chunks may be missing from the store: the next request looks at everything
            last_good = documents.last_good(path)
            if last_good is None:
                raise _as_unavailable(error) from error
            return last_good
        finally:
            sitemap.lock.release()

    # Statistics

    @property
    def rendered_blocks(self) -> int:
        """Blocks of learned pages rendered since the process began."""
        return self._resources.rendered_blocks

    def has_entries(self, site: Site) -> bool:
        """Whether the documents of a site that are in memory have entries."""
        sitemap = self._sites.get(site.base_url)
        return sitemap is not None and bool(sitemap.documents.of_sections)

    def published_documents(self, site: Site) -> list[PublishedDocument]:
        """The documents of a site as they were last brought up to date, the index first if there is one."""
        sitemap = self._sites.get(site.base_url)
        return [] if sitemap is None else sitemap.documents.published()

    def entry_count(self) -> int:
        """The number of entries in the documents of all sites."""
        return sum(documents.entry_count() for documents in self._all_documents())

    def document_count(self) -> int:
        """The number of documents of all sites, indexes included."""
        return sum(documents.count() for documents in self._all_documents())

    def values_age(self) -> float:
        """The age in seconds of the oldest provider items when a request last needed them; 0 if there are none."""
        return max((sitemap.providers.age for sitemap in list(self._sites.values())), default=0.0)

    def _all_documents(self) -> list[SiteDocuments]:
        # list(): other threads may add a site meanwhile.
        return [sitemap.documents for sitemap in list(self._sites.values())]

    def _sitemap_of(self, site: Site) -> _SiteSitemap:
        sitemap = self._sites.get(site.base_url)
        if sitemap is None:
            sitemap = self._sites.setdefault(site.base_url, _SiteSitemap(self._resources, self._options, site))
            while len(self._sites) > MAX_SITES:
                self._sites.popitem(last=False)
        return sitemap

    # Bringing sections up to date

    def _refresh(
        self, sitemap: _SiteSitemap, snapshot: SiteSnapshot, path: str, request: Request, marks: RefreshMarks
    ) -> None:
        """Bring all sections up to date, unless nothing has changed since they were."""
        version = self._store.version(snapshot.site.store_key)
        inputs = _Inputs(version, snapshot.table, snapshot.rules.text, marks, self._clock())
        known = sitemap.inputs
        if (
            known is not None
            and known[:4] == inputs[:4]
            and 0 <= inputs.read_at - known.read_at < self._options.max_age
            and sitemap.documents.cached(path) is not None
            and request.wait_seconds != TEST_CLIENT_WAIT_SECONDS  # a test sees what it has just changed
        ):
            return
        sitemap.learned.read_blocks(version)
        evaluation = self._entries.evaluation_context(snapshot, sitemap.learned.page_count, version)
        part = self._part_path.fullmatch(path)
        key = RenderKey(
            sitemap.learned.unlearned_version, evaluation.settings_digest, evaluation.site_signals.record.dated_digest
        )
        context = RefreshContext(evaluation, key, request, None if part is None else part[1], marks)
        are_complete = [section.refresh(context) for section in sitemap.sections]
        sitemap.documents.replace_sections(
            [document for section in sitemap.sections for document in section.documents()]
        )
        sitemap.inputs = inputs if all(are_complete) else None
        if all(are_complete):
            self._entries.warn_of_flat_priorities(snapshot.site, sitemap.documents.entry_count())

    def _limited(self, freshness: Freshness | None, inputs: _Inputs | None) -> Freshness | None:
        """How long a document may be served: not if something is still being rendered, nor past `max_age`."""
        if freshness is None or inputs is None:
            return None
        return freshness._replace(valid_until=min(freshness.valid_until, inputs.read_at + self._options.max_age))


def _as_unavailable(error: Exception) -> Unavailable:
    """The error for clients: it does not name what failed in particular."""
    if isinstance(error, Unavailable):
        return error
    return Unavailable("its store does not answer" if isinstance(error, StoreError) else PROVIDER_FAILING_REASON)
