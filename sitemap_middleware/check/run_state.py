"""What the checks of one run share: what they found, and all documents and URLs, with what only they together show."""

from __future__ import annotations

import heapq
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from zlib import crc32

from .findings import RULES, Finding, Problem, Severity, finding_key, shortened
from .url_elements import CheckedLastmod, check_lastmod

DEFAULT_LIMIT: Final = 100
DEFAULT_MAX_DOCUMENTS: Final = 5_000
SAMPLE_PAGES: Final = 50
"""Pages that `Pages.SAMPLE` requests."""
MAX_KEPT_BYTES: Final = 1_000_000_000
"""About how much memory the URLs of a run take: some two millions. No further documents are read then."""
MIN_URLS: Final = 20
"""URLs below which equal values are no sign of anything."""
EQUAL_SHARE: Final = 0.9
"""The share of URLs from which on one value is said to be that of nearly all."""
_ROW_BYTES: Final = 400
"""Memory for a URL, besides its characters."""
_NOW_SECONDS: Final = 300
"""How much older than the request the dates of a sitemap that is always new may be."""
HINTS: Final = {
    "lastmod": "lastmod-all-equal",
    "changefreq": "changefreq-uniform",
    "priority": "priority-uniform",
}
"""The elements of an entry besides `loc`, each with the code of values that are the same everywhere."""


@dataclass(slots=True, eq=False)
class ListedDocument:
    """A document that is to be read."""

    url: str
    """Its URL, or the path of a file that was found."""
    location: str | None
    parent: ListedDocument | None = None
    index_latest: float | None = None
    """The last moment that its date in the index may mean."""
    newest: CheckedLastmod | None = None
    """The latest date that was read in it."""


@dataclass(slots=True, eq=False)
class ListedUrl:
    """A URL that a document lists."""

    loc: str
    page: str
    """As `CheckedLoc.page`."""
    document: str
    line: int
    is_extended: bool
    """Whether its entry has images, videos or news."""
    versions: frozenset[str]
    is_elsewhere: bool = False
    """Whether it is on another host than its document, which is reported."""
    lastmod: str = ""
    """As written, like `changefreq` and `priority`."""
    changefreq: str = ""
    priority: str = ""


class Pages(StrEnum):
    """Which of the listed pages are requested."""

    NONE = "none"
    SAMPLE = "sample"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """What a run checks, and how much of it."""

    ignored: Collection[str] = ()
    """Codes that are not reported."""
    limit: int = DEFAULT_LIMIT
    """Findings of one code that are kept; further ones are counted. 0 keeps all."""
    max_documents: int = DEFAULT_MAX_DOCUMENTS
    pages: Pages = Pages.NONE
    earlier: Collection[str] | None = None
    """The baseline of an earlier run, if one is asked for: its URLs, and the keys of findings that are only counted."""


@dataclass(eq=False)
class Run:
    """One run, and what it found."""

    now: float
    """The moment by which a date is in the future, in POSIX seconds."""
    request_time: float | None
    """When the first document was requested. None if the documents are files."""
    settings: CheckSettings

    def __post_init__(self) -> None:
        self.findings: list[Finding] = []
        self.counts: Counter[str] = Counter()
        """How often each code was found, with findings that are not kept."""
        self.documents: list[ListedDocument] = []
        self.named: dict[str, ListedDocument] = {}
        self.checked = 0
        self.unread: dict[str, list[Problem]] = {}
        """Why documents were not read, or not to their end, by their URLs."""
        self.are_links_known = True
        """Whether all pages that were requested answered with what people see."""
        self.urls: list[ListedUrl] = []
        self.pages: dict[str, ListedUrl] = {}
        """The first URL of each page, by `ListedUrl.page`."""
        self.chosen: list[str] = []
        """The URLs that were checked as pages."""
        self.requested = 0
        """How many of them were requested: robots.txt may forbid it, or a host have no address."""
        self.default_versions: set[str] = set()
        """The pages that are a version for all other languages (`x-default`)."""
        self.known_findings = 0
        """Those that the earlier run had, too. They are nowhere else."""
        self.keys: set[str] = set()
        """Of all other findings, also beyond the limit."""
        self._clusters: dict[frozenset[str], frozenset[str]] = {}
        self._kept_bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether the URLs take as much memory as they may."""
        return self._kept_bytes > MAX_KEPT_BYTES

    def report(self, problem: Problem, url: str, document: str = "", line: int = 0, column: int = 0) -> None:
        """Report a problem of a page or a document, by default one of the document `url` as a whole.

        Raises `KeyError` if there is no rule of its code.
        """
        code, text = problem
        if RULES[code].code in self.settings.ignored:
            return
        url = shortened(url)
        if self.settings.earlier is not None:
            key = self._key(code, url) if document in ("", url) else finding_key(code, url)
            if key in self.settings.earlier:
                self.known_findings += 1
                return
            self.keys.add(key)
        self.counts[code] += 1
        if not self.settings.limit or self.counts[code] <= self.settings.limit:
            self.findings.append(Finding(code, document or url, line, column, url, shortened(text)))

    def _key(self, code: str, url: str) -> str:
        """The key of a finding about a document, which is the same one on another server, and in another folder."""
        return finding_key(code, url.removeprefix(self.documents[0].url.rpartition("/")[0]).lstrip("/"))

    def unread_since(self, baseline: Collection[str]) -> list[str]:
        """The documents that were not read now, as far as a baseline does not name that."""
        keys = {url: {self._key(code, shortened(url)) for code, _ in found} for url, found in self.unread.items()}
        return [url for url in keys if not keys[url].issubset(baseline)]

    def add_document(self, document: ListedDocument) -> Problem | None:
        """Add a document. Return what is wrong with its name in the index."""
        known = self.named.setdefault(document.url, document)
        if known is document:
            self.documents.append(document)
            return None
        above = index = document.parent
        while above is not None and above is not known:
            above = above.parent
        if above is None:
            return "index-duplicate", "the document is named a second time"
        if above is index:
            return "index-itself", "the index names itself"
        return "index-loop", "the document leads to this index"

    def add_url(self, url: ListedUrl) -> Problem | None:
        """Add a URL. Return what is wrong if its page is listed already."""
        self.urls.append(url)
        url.changefreq, url.priority = sys.intern(url.changefreq), sys.intern(url.priority)  # a few different ones
        if url.versions not in self._clusters:  # the pages of a cluster name the same versions, which are kept once
            self._clusters[url.versions] = url.versions
            self._kept_bytes += sum(100 + len(version) for version in url.versions)
        url.versions = self._clusters[url.versions]
        self._kept_bytes += _ROW_BYTES + len(url.loc)
        first = self.pages.setdefault(url.page, url)
        if first is url:
            pair = self.pages.get(url.page[:-1] if url.page.endswith("/") else f"{url.page}/")
            return ("loc-slash-pair", f"{pair.loc} is listed, too") if pair is not None else None
        if first.loc != url.loc:
            return "loc-duplicate-spelling", f"{first.loc} is the same page"
        if first.document == url.document:
            return "loc-duplicate", f"the URL is listed in line {first.line}, too"
        if url.is_extended or first.is_extended:
            return None
        return "loc-duplicate-elsewhere", f"{first.document} lists the URL, too"

    def chosen_pages(self) -> list[ListedUrl]:
        """The pages that are requested. A sample has the first one, and others by a hash of their URLs.

        So they are from all parts of a sitemap, and the next run, after some URLs more, has nearly the same.
        """
        pages = [*self.pages.values()]
        most = {Pages.NONE: 0, Pages.SAMPLE: SAMPLE_PAGES, Pages.ALL: len(pages)}[self.settings.pages]
        others = heapq.nsmallest(most - 1, range(1, len(pages)), key=lambda number: crc32(pages[number].page.encode()))
        return [pages[number] for number in [0, *sorted(others)] if most and pages]

    def by_severity(self) -> dict[Severity, int]:
        """How many findings there are of each severity."""
        numbers = dict.fromkeys(Severity, 0)
        for code, number in self.counts.items():
            numbers[RULES[code].severity] += number
        return numbers

    def omitted(self) -> Counter[str]:
        """How many findings of each code are not kept."""
        return self.counts - Counter(finding.code for finding in self.findings)

    def equal_values(self) -> Iterator[tuple[Problem, str]]:
        """Say which values nearly all URLs have, once all documents were read; if not of all, of which document."""
        if len(self.urls) >= MIN_URLS and all(map(self._is_request_time, self.urls)):
            yield ("lastmod-now", f"all {len(self.urls):,} URLs have the time of the request as lastmod"), ""
            return
        by_document: dict[str, list[ListedUrl]] = {}
        for url in self.urls:
            by_document.setdefault(url.document, []).append(url)
        for name, code in HINTS.items():
            of_all = self._equal_values(self.urls, name)
            for document, urls in [("", self.urls)] if of_all else by_document.items():
                if text := of_all or self._equal_values(urls, name):
                    yield (code, text), document

    def _equal_values(self, urls: Sequence[ListedUrl], name: str) -> str:
        """What nearly all of some URLs have in common; nothing if they have nothing, or are few."""
        [(value, count)] = Counter(getattr(url, name) for url in urls).most_common(1) or [("", 0)]
        if len(urls) < MIN_URLS or not value or count < EQUAL_SHARE * len(urls):
            return ""
        if name == "lastmod" and check_lastmod(value, self.now).problem:
            return ""
        return f"{'all' if count == len(urls) else f'{count:,} of'} {len(urls):,} URLs have {name} {value}"

    def _is_request_time(self, url: ListedUrl) -> bool:
        date = check_lastmod(url.lastmod, self.now)
        if self.request_time is None or date.problem is not None or date.earliest is None:
            return False
        return date.earliest == date.latest and abs(self.request_time - date.earliest) < _NOW_SECONDS

    def contradictions(self) -> Iterator[tuple[Problem, ListedUrl]]:
        """Say which URLs differ in scheme or `www.`, and which versions are not listed, or name no page in return."""
        schemes: dict[str, list[ListedUrl]] = {}
        hosts: dict[str, list[ListedUrl]] = {}
        for url in self.pages.values():
            if url.is_elsewhere:
                continue
            scheme, _, host, _ = url.page.split("/", 3)
            schemes.setdefault(scheme, []).append(url)
            hosts.setdefault(host, []).append(url)
        yield from _fewer("loc-mixed-schemes", schemes.get("http:", ()), schemes.get("https:", ()))
        for host, urls in hosts.items():
            yield from _fewer("loc-mixed-www", urls, hosts.get(f"www.{host}", ()))
        unlisted = set[str]()
        for url in self.urls:
            for page in sorted(url.versions):
                version = self.pages.get(page)
                if version is None:
                    is_own = page.split("/", 3)[2] == url.page.split("/", 3)[2]
                    # What is for all other languages is often no page, but a redirect to one of the visitor's language.
                    is_known = page in unlisted or page in self.default_versions
                    if is_own and not self.unread and not is_known:
                        unlisted.add(page)
                        text = f"the page names the version {page}, which no document lists"
                        yield ("hreflang-not-listed", text), url
                elif version.versions is not url.versions and page != url.page and url.page not in version.versions:
                    text = f"the page names the version {version.loc}, which does not name the page in return"
                    yield ("hreflang-no-return", text), url


def _fewer(code: str, one: Sequence[ListedUrl], other: Sequence[ListedUrl]) -> Iterator[tuple[Problem, ListedUrl]]:
    """The URLs of one form that are fewer than those of another."""
    if one and other:
        few, many = sorted((one, other), key=len)
        start = many[0].page.partition("://")[0] + "://" + many[0].page.split("/", 3)[2]
        for url in few:
            yield (code, f"other URLs that begin with {start}: {len(many):,}"), url
