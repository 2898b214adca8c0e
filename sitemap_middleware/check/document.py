"""Checks one document: its bytes, and its entries, one by one as they are read."""

from __future__ import annotations

import codecs
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final, Literal
from urllib.parse import urlsplit

from ..protocol.extensions import MAX_NEWS
from .extensions import LINK, NEWS, check_extensions, check_versions
from .findings import Problem, quoted
from .reader import GZIP_MAGIC, Element, Unreadable, XmlReader, pieces_of
from .run_state import HINTS, ListedDocument, ListedUrl, Run
from .url_elements import (
    MAX_HINT_CHARS,
    CheckedLastmod,
    CheckedLoc,
    check_changefreq,
    check_lastmod,
    check_loc,
    check_priority,
    is_local,
)

MAX_ENTRIES: Final = 50_000
"""URLs of a sitemap, and sitemaps of an index."""
MAX_CHILDREN: Final = 100_000
"""Children of the root, with those that are no entries."""

_HTML: Final = re.compile(rb"<(?:!doctype\s+html|html|head|body)[\s>]", re.IGNORECASE)
_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, b"<\0", b"\0<")
_URL_LINE: Final = re.compile(rb"https?://", re.IGNORECASE)
_UTF_8_NAMES: Final = frozenset({"utf-8", "utf8", "us-ascii", "ascii", ""})

_SITEMAP: Final = "http://www.sitemaps.org/schemas/sitemap/0.9"
_OLD_SITEMAP: Final = "://www.google.com/schemas/sitemap/0.84"
_FEEDS: Final = ("rss", "http://www.w3.org/2005/Atom feed")
_URL_FIELDS: Final = ("loc", "lastmod", "changefreq", "priority")
_SITEMAP_FIELDS: Final = ("loc", "lastmod")
_CORE_ELEMENTS: Final = frozenset({"urlset", "sitemapindex", "url", "sitemap", *_URL_FIELDS})
_SLACK_SECONDS: Final = 24 * 3600
"""How much older than its sitemap's newest date a date in an index may be."""


class Document:
    """Checks a document, which is served at `location` if that is known. What it finds is added to the run."""

    def __init__(self, run: Run, listed: ListedDocument, location: str | None, others: list[str] | None = None) -> None:
        """`others` gets the document if it is XML of another kind, which is a mistake without it."""
        self._run = run
        self._listed = listed
        self._others = others
        self._host = check_loc(location, is_page=False).host if location else ""
        self._folder = urlsplit(location or "").path.rpartition("/")[0] + "/"
        self.kind: Literal["", "urlset", "index", "feed", "text"] = ""
        """What it is, once that is known. Search engines take a feed as a sitemap of recent changes."""
        self._prefix = ""
        self._entries = self._articles = 0
        self._is_loop = False
        """Whether the document is an index that leads back to one that leads to it."""
        self._elsewhere: dict[Problem, tuple[int, str, Element]] = {}
        """How many URLs are not where they should be, and the first one, by where they are."""

    def check(self, stream: io.BufferedIOBase, *, is_declared_gzip: bool = False, end: Problem | None = None) -> None:
        """Check the bytes of the document. The arguments are those of `pieces_of`."""
        self._run.checked += 1
        try:
            self._read(pieces_of(stream, end, is_declared_gzip=is_declared_gzip))
        except Unreadable as error:
            if self._others is not None and error.problem[0] == "xml-root" and error.line:
                self._others.append(self._listed.url)
                self._run.checked -= 1
                return
            self._run.unread[self._listed.url] = [error.problem]
            self._run.report(error.problem, self._listed.url, self._listed.url, error.line, error.column)

    # Bytes

    def _read(self, pieces: Iterator[bytes]) -> None:
        """Decide what the document is, and check it as such. Raises `Unreadable`."""
        head = b""
        for piece in pieces:
            head = head[:1] + piece  # however many blanks there are, they are a mistake of one kind
            if not head.isspace():
                break
        if head.startswith(codecs.BOM_UTF8):
            self._add(("xml-bom", "the document starts with a byte order mark"))
            head = head.removeprefix(codecs.BOM_UTF8)
        text = head.lstrip()
        if not text:
            raise Unreadable(("document-empty", "the document has no content"))
        if head.startswith(GZIP_MAGIC):
            raise Unreadable(("fetch-gzip-twice", "the decompressed document is gzip again"))
        if head.startswith(_UTF_16):
            raise Unreadable(("xml-encoding", "the document is UTF-16"))
        if _HTML.match(text):
            raise Unreadable(("fetch-html", "the document is an HTML page"))
        if _URL_LINE.match(text):
            self._read_lines(chain([head], pieces))
        elif text.startswith(b"<"):
            self._read_xml(chain([head], pieces))
        elif b"<?xml" in text:
            raise Unreadable(("xml-leading-content", "text stands before the XML declaration"))
        else:
            raise Unreadable(("xml-root", "the document is neither XML nor a list of URLs"))
        self._check_whole()

    def _read_lines(self, pieces: Iterable[bytes]) -> None:
        self.kind = "text"
        for number, line in enumerate(b"".join(pieces).split(b"\n"), 1):
            try:
                text = line.decode().strip()
            except UnicodeDecodeError:
                raise Unreadable(("xml-encoding", "the line is not UTF-8"), number) from None
            if text:
                where = Element("", {}, number, 1)
                self._count(where)
                self._page(check_loc(text), where)

    def _read_xml(self, pieces: Iterable[bytes]) -> None:
        reader = XmlReader(lambda problem, line: self._run.report(problem, self._listed.url, "", line))
        elements = reader.read(pieces)
        self._root(next(elements))
        for number, element in enumerate(elements, 1):
            if number > MAX_CHILDREN:
                text = f"the root has more than {MAX_CHILDREN:,} children; the rest was not read"
                raise Unreadable(("xml-too-complex", text), element.line, element.column)
            self._child(element)
        if reader.encoding.lower() not in _UTF_8_NAMES:
            self._add(("xml-encoding-declared", f"the declared encoding is {reader.encoding[:100]}"))
        # All articles may have gone from a sitemap of news.
        if self.kind == "feed" or any("sitemap-news" in space for space in reader.namespaces.values()):
            self._entries = self._entries or 1

    # Entries

    def _root(self, element: Element) -> None:
        """Check the root element. Raises `Unreadable` if the document is no sitemap."""
        space, name = element.namespace, element.local_name
        if element.name in _FEEDS:
            self.kind = "feed"
            return
        if name == "html":
            raise Unreadable(("fetch-html", "the document is an HTML page"), element.line, element.column)
        if name not in ("urlset", "sitemapindex"):
            text = f"the root element is {quoted(name)}, and not urlset or sitemapindex"
            raise Unreadable(("xml-root", text), element.line, element.column)
        self.kind = "index" if name == "sitemapindex" else "urlset"
        self._prefix = f"{space} " if space else ""
        if not space:
            self._add(("xml-namespace-missing", f"{name} has no namespace"), element)
        elif space != _SITEMAP:
            code = "xml-namespace-old" if space.endswith(_OLD_SITEMAP) else "xml-namespace-wrong"
            self._add((code, f"the namespace is {quoted(space)}"), element)

    def _child(self, element: Element) -> None:
        """Check a child of the root. Raises `Unreadable` if there are too many."""
        if self.kind == "feed":
            self._feed_entry(element)
        elif self.kind == "urlset" and element.name == f"{self._prefix}url":
            self._url(element)
        elif self.kind == "index" and element.name == f"{self._prefix}sitemap":
            self._sitemap(element)
        elif element.namespace in (self._prefix.strip(), ""):
            self._add(_wrong_element(element.local_name), element)

    def _check_whole(self) -> None:
        """Report what all entries together show."""
        if not self._entries:
            self._add(("document-empty", f"the document lists no {'sitemaps' if self.kind == 'index' else 'URLs'}"))
        if self.kind == "index" and self._listed.parent is not None and not self._is_loop:
            self._add(("index-nested", "an index names this index"))
        if self._articles > MAX_NEWS:
            self._add(("news-too-many", f"the document has {self._articles:,} articles"))
        for (code, text), (count, url, where) in self._elsewhere.items():
            self._add((code, f"{'a URL is' if count == 1 else f'{count:,} URLs are'} {text}"), where, url)
        check_index_date(self._run, self._listed, self._listed.index_latest)

    def _count(self, where: Element) -> None:
        """Count an entry."""
        self._entries += 1
        if self._entries > MAX_ENTRIES:
            is_index = self.kind == "index"
            code, what = ("index-too-many-sitemaps", "sitemaps") if is_index else ("document-too-many-urls", "URLs")
            text = f"the document lists more than {MAX_ENTRIES:,} {what}; the rest was not read"
            raise Unreadable((code, text), where.line)

    def _url(self, element: Element) -> None:
        self._count(element)
        fields, extensions = self._fields(element, _URL_FIELDS)
        checked = check_loc(fields["loc"].text if "loc" in fields else "")
        links = [extension for extension in extensions if extension.name == LINK]
        versions, default, located = check_versions(links, checked)
        if default:
            self._run.default_versions.add(default)
        for problem, where in chain(check_extensions(extensions, checked, self._run.now), located):
            self._add(problem, where, checked.url)
        self._articles += any(extension.name == f"{NEWS} news" for extension in extensions)
        if "lastmod" in fields:
            self._lastmod(fields["lastmod"], checked.url)
        for name, check in (("changefreq", check_changefreq), ("priority", check_priority)):
            if name in fields and (wrong := check(fields[name].text)) is not None:
                self._add(wrong, fields[name], checked.url)
        hints = {name: fields[name].text.strip()[:MAX_HINT_CHARS] for name in HINTS if name in fields}
        self._page(checked, fields.get("loc", element), len(extensions) > len(links), versions, **hints)

    def _page(
        self,
        checked: CheckedLoc,
        where: Element,
        is_extended: bool = False,
        versions: frozenset[str] = frozenset(),
        **hints: str,
    ) -> None:
        """Report what is wrong with the URL of a page, and add it to the run."""
        if self._leads_somewhere(checked, where):
            is_elsewhere = bool(self._host) and checked.host != self._host
            url = ListedUrl(
                checked.url, checked.page, self._listed.url, where.line, is_extended, versions, is_elsewhere, **hints
            )
            if (problem := self._run.add_url(url)) is not None:
                self._add(problem, where, checked.url)

    def _sitemap(self, element: Element) -> None:
        self._count(element)
        fields, _ = self._fields(element, _SITEMAP_FIELDS)
        where = fields.get("loc", element)
        checked = check_loc(where.text if "loc" in fields else "", is_page=False)
        date = self._lastmod(fields["lastmod"], checked.url) if "lastmod" in fields else None
        if self._leads_somewhere(checked, where):
            latest = date.latest if date and date.problem is None else None
            child = checked.url.partition("#")[0]
            problem = self._run.add_document(ListedDocument(child, child, self._listed, latest))
            if problem is not None:
                self._is_loop = self._is_loop or problem[0] == "index-loop"
                self._add(problem, where, child)

    def _feed_entry(self, element: Element) -> None:
        """Check an `entry` of Atom, or the `channel` of RSS with its items."""
        for item in (element, *element.children):
            for child in item.children if item.local_name in ("entry", "item") else ():
                if child.local_name == "link" and child.attributes.get("rel", "alternate") == "alternate":
                    self._entries += 1
                    self._page(check_loc(child.attributes.get("href", child.text)), child)

    def _leads_somewhere(self, checked: CheckedLoc, where: Element) -> bool:
        """Report what is wrong with a URL. Return whether it is one.

        Where it is, on another host or above the folder of the document, is reported once for all such URLs.
        """
        for problem in checked.problems:
            self._add(problem, where, checked.url)
        kind, elsewhere = "index" if self.kind == "index" else "loc", None
        if self._host and checked.host == self._host:
            if not f"{checked.path}/".startswith(self._folder):
                elsewhere = f"{kind}-outside-folder", f"not below {self._folder}, the folder of this document"
        elif checked.host and is_local(checked.host):
            elsewhere = "loc-local", f"on {checked.host}, which is not on the web"
        elif checked.host and self._host:
            elsewhere = f"{kind}-other-host", f"on {checked.host}, and this document on {self._host}"
        if elsewhere is not None:
            count, url, first = self._elsewhere.get(elsewhere, (0, checked.url, where))
            self._elsewhere[elsewhere] = count + 1, url, first
        return bool(checked.host)

    def _fields(self, element: Element, allowed: tuple[str, ...]) -> tuple[dict[str, Element], list[Element]]:
        """Return the elements of an entry by name, the first of each, and those of extensions. Check their order."""
        fields, counts, extensions = dict[str, Element](), Counter[str](), list[Element]()
        self._check_attributes(element)
        for child in element.children:
            name = child.name.removeprefix(self._prefix)
            if child.name.startswith(self._prefix) and " " not in name:
                counts[name] += 1
                fields.setdefault(name, child)
                self._check_attributes(child)
                for inner in child.children if name in _URL_FIELDS else ():
                    self._add(_wrong_element(inner.local_name), inner)
            elif child.namespace:
                extensions.append(child)
            else:
                self._add(_wrong_element(child.name), child)
        known = [name for name in counts if name in allowed]
        if known != sorted(known, key=allowed.index):
            self._add(("xml-element-order", f"the order is {', '.join(known)}"), element)
        for name, count in counts.items():
            if name not in allowed:
                self._add(_wrong_element(name), element)
            elif count > 1:
                self._add(("xml-repeated-element", f"the entry has {count} elements {name}"), element)
        if element.text and not element.text.isspace():
            text = f"{quoted(element.text.strip()[:100])} belongs to no element"
            self._add(("xml-stray-text", text), element)
        return fields, extensions

    def _check_attributes(self, element: Element) -> None:
        for name in element.attributes:
            if " " not in name:
                text = f"{element.local_name} has the attribute {quoted(name)}"
                self._add(("xml-unknown-attribute", text), element)

    def _lastmod(self, element: Element, url: str) -> CheckedLastmod:
        date = check_lastmod(element.text, self._run.now)
        if date.problem is not None:
            self._add(date.problem, element, url)
        elif self._listed.newest is None or (date.earliest or 0) > (self._listed.newest.earliest or 0):
            self._listed.newest = date
        return date

    def _add(self, problem: Problem, where: Element | None = None, url: str = "") -> None:
        """Report a problem of a URL, or else of the document."""
        line, column = (where.line, where.column) if where is not None else (0, 0)
        self._run.report(problem, url or self._listed.url, self._listed.url, line, column)


def check_index_date(run: Run, read: ListedDocument, latest: float | None) -> None:
    """Compare the dates of a document that was read with the last moment that its date in an index may mean."""
    if latest is not None and read.newest is not None and (read.newest.earliest or 0) > latest + _SLACK_SECONDS:
        text = f"the index has an older date for this sitemap than {read.newest.text}, which is in it"
        run.report(("lastmod-index-older", text), read.url)


def _wrong_element(name: str) -> Problem:
    """What is wrong with an element of the sitemap namespace that does not belong where it is."""
    if name in _CORE_ELEMENTS:
        return "xml-misplaced-element", f"the element {name} does not belong here"
    if name.lower() in _CORE_ELEMENTS:
        return "xml-unknown-element", f"the element {quoted(name)} is written {name.lower()}"
    return "xml-unknown-element", f"the protocol has no element {quoted(name)}"
