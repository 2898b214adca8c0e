"""Checks the entries of a document, one by one, as they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final

from .database import DocumentRow
from .extensions import MAX_ARTICLES, NEWS, check_extensions
from .findings import Finding, Place, quoted
from .hints import CheckedLastmod, check_changefreq, check_lastmod, check_priority
from .hreflang import LINK, check_own_version, read_versions
from .run import Run
from .urls import CheckedLoc, Locations, check_loc, page_keys
from .xml_reader import Element, Unreadable

MAX_ENTRIES: Final = 50_000
"""URLs of a sitemap, and sitemaps of an index."""
MAX_CHILDREN: Final = 100_000
"""Children of the root, with those that are no entries."""

SITEMAP: Final = "http://www.sitemaps.org/schemas/sitemap/0.9"
_OLD_SITEMAPS: Final = (
    "http://www.google.com/schemas/sitemap/0.84",
    "https://www.google.com/schemas/sitemap/0.84",
)
_ATOM_FEED: Final = "http://www.w3.org/2005/Atom feed"
_URL_FIELDS: Final = ("loc", "lastmod", "changefreq", "priority")
"""The children of `url`, in the order of the schema."""
_SITEMAP_FIELDS: Final = ("loc", "lastmod")
"""The children of `sitemap`, in the order of the schema."""
_CORE_ELEMENTS: Final = frozenset({"urlset", "sitemapindex", "url", "sitemap", *_URL_FIELDS})

_SLACK_SECONDS: Final = 24 * 3600
"""How much older than its sitemap's newest date a date in an index may be."""
_WRONGLY_NAMED: Final = {
    "index-itself": "the index names itself",
    "index-loop": "the document leads to this index",
    "index-duplicate": "the document is named a second time",
}
"""What is wrong with a document that an index names, by the codes of `UrlDatabase.add_document`."""


class Kind(StrEnum):
    """What a document is."""

    URLSET = "sitemap"
    INDEX = "index"
    FEED = "feed"
    """RSS or Atom: search engines take it as a sitemap of recent changes."""
    TEXT = "text"
    """A URL in each line."""


class Entries:
    """Takes the entries of a document, in their order.

    Args:
        run: what the documents of one run share.
        document: the document, which messages name.
        location: the URL that it is served at, if it is known.
    """

    def __init__(self, run: Run, document: DocumentRow, location: str | None) -> None:
        self._run = run
        self._document = document
        self._location = location
        self._locations = Locations(location, is_index=False)
        self.kind: Kind | None = None
        self.namespaces: dict[str, str] = {}
        """The namespaces that the document declares, by prefix."""
        self._prefix = f"{SITEMAP} "
        self._entries = self._children = self._articles = 0
        self._newest: float | None = None
        self._newest_text = ""
        self._links: list[dict[str, str]] = []
        """The attributes of the links that were read last."""
        self._versions = read_versions(self._links)
        self._wrong_namespaces = set[str]()
        self._is_loop = False
        """Whether the document is an index that leads back to one that leads to it."""

    def begin(self, kind: Kind) -> None:
        """Say what the document is."""
        self.kind = kind
        if kind is Kind.INDEX:
            self._locations = Locations(self._location, is_index=True)

    def root(self, element: Element) -> None:
        """Take the root element. Raises `Unreadable` if the document is no sitemap."""
        space, name = element.namespace, element.local_name
        if element.name in ("rss", _ATOM_FEED):
            self.begin(Kind.FEED)
            return
        if name == "html":
            raise Unreadable(("fetch-html", "the document is an HTML page"), element.line, element.column)
        if name not in ("urlset", "sitemapindex"):
            text = f"the root element is {quoted(name)}, and not urlset or sitemapindex"
            raise Unreadable(("xml-root", text), element.line, element.column)
        self.begin(Kind.INDEX if name == "sitemapindex" else Kind.URLSET)
        self._prefix = f"{space} " if space else ""
        if not space:
            self._add(("xml-namespace-missing", f"{name} has no namespace"), "", element)
        elif space != SITEMAP:
            code = "xml-namespace-old" if space in _OLD_SITEMAPS else "xml-namespace-wrong"
            self._add((code, f"the namespace is {quoted(space)}"), "", element)

    def entry(self, element: Element) -> None:
        """Take a child of the root. Raises `Unreadable` if there are too many."""
        self._children += 1
        if self._children > MAX_CHILDREN:
            text = f"the root has more than {MAX_CHILDREN:,} children; the rest was not read"
            raise Unreadable(("xml-too-complex", text), element.line, element.column)
        if self.kind is Kind.FEED:
            self._feed_entry(element)
        elif self.kind is Kind.URLSET and element.name == f"{self._prefix}url":
            self._url(element)
        elif self.kind is Kind.INDEX and element.name == f"{self._prefix}sitemap":
            self._sitemap(element)
        elif element.namespace in (self._prefix.strip(), ""):
            self._add(_wrong_element(element.local_name), "", element)

    def line(self, text: str, number: int) -> None:
        """Take a line of a text document."""
        self._count(number)
        self._page(check_loc(text), Element("", {}, number, 1))

    def close(self) -> None:
        """Report what all entries together show."""
        what = "sitemaps" if self.kind is Kind.INDEX else "URLs"
        # All articles may have gone from a sitemap of news.
        may_be_empty = self.kind is Kind.FEED or any("sitemap-news" in space for space in self.namespaces.values())
        if not self._entries and not may_be_empty:
            self._add(("document-empty", f"the document lists no {what}"))
        if self.kind is Kind.INDEX and self._document.depth and not self._is_loop:
            self._add(("index-nested", "an index names this index"))
        if self._articles > MAX_ARTICLES:
            self._add(("news-too-many", f"the document has {self._articles:,} articles"))
        for group in self._locations.findings():
            self._run.report.add(group.finding, group.first, Place(self._document.url, group.line, group.column))
        latest = self._document.index_latest
        if latest is not None and self._newest is not None and self._newest > latest + _SLACK_SECONDS:
            text = f"the index has an older date for this sitemap than {self._newest_text}, which is in it"
            self._add(("lastmod-index-older", text))

    def _count(self, line: int) -> None:
        """Count an entry."""
        self._entries += 1
        if self._entries > MAX_ENTRIES:
            is_index = self.kind is Kind.INDEX
            code, what = ("index-too-many-sitemaps", "sitemaps") if is_index else ("document-too-many-urls", "URLs")
            text = f"the document lists more than {MAX_ENTRIES:,} {what}; the rest was not read"
            raise Unreadable((code, text), line)

    def _url(self, element: Element) -> None:
        self._count(element.line)
        fields, extensions = self._fields(element, _URL_FIELDS)
        checked = check_loc(fields["loc"].text if "loc" in fields else "")
        url = checked.url
        written = fields.get("lastmod")
        versions = self._extensions(extensions, checked) if extensions else []
        is_extended = len(extensions) > len(versions)
        date_text = written.text if written is not None else ""
        self._page(checked, fields.get("loc", element), is_extended=is_extended, date=date_text, versions=versions)
        if written is not None:
            date = self._lastmod(written, url)
            if date.finding is None:
                self._run.facts.add_lastmod(date)
        for name, check in (("changefreq", check_changefreq), ("priority", check_priority)):
            if name in fields:
                if (finding := check(fields[name].text)) is not None:
                    self._add(finding, url, fields[name])
                self._run.facts.add_value(name, fields[name].text)

    def _extensions(self, elements: list[Element], page: CheckedLoc) -> Sequence[tuple[str, str]]:
        """Check the extensions of an entry. Return the versions in other languages that it names, with their codes."""
        links = [element for element in elements if element.name == LINK]
        if len(links) < len(elements):
            self._articles += any(element.name == f"{NEWS} news" for element in elements)
            for finding, element in check_extensions(elements, page, self._run.now):
                if finding[0].endswith("-namespace"):
                    if finding[0] in self._wrong_namespaces:
                        continue  # one mistake, in one line of the document
                    self._wrong_namespaces.add(finding[0])
                self._add(finding, page.url, element)
        attributes = [link.attributes for link in links]
        if attributes != self._links:  # the pages of a cluster often follow each other, and name the same versions
            self._links, self._versions = attributes, read_versions(attributes)
        versions = self._versions
        for finding, position in versions.findings:
            self._add(finding, page.url, links[position])
        if (own := check_own_version(versions, page)) is not None:
            self._add(own, page.url, links[versions.first])
        return versions.named

    def _page(
        self,
        checked: CheckedLoc,
        where: Element,
        *,
        is_extended: bool = False,
        date: str = "",
        versions: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Report what is wrong with a URL of a page, and add the URL to the database with its date as written."""
        for finding in checked.findings:
            self._add(finding, checked.url, where)
        if checked.host:
            self._locations.add(checked, where.line, where.column)
            key, page = page_keys(checked)
            self._run.documents.add_url(
                checked.url,
                key=key,
                page=page,
                document=self._document.id,
                line=where.line,
                is_extended=is_extended,
                lastmod=date.strip(),
                versions=versions,
            )
        self._run.facts.add_url(checked)

    def _sitemap(self, element: Element) -> None:
        self._count(element.line)
        fields, _ = self._fields(element, _SITEMAP_FIELDS)
        where = fields.get("loc", element)
        checked = check_loc(where.text if "loc" in fields else "", is_page=False)
        for finding in checked.findings:
            self._add(finding, checked.url, where)
        date = self._lastmod(fields["lastmod"], checked.url) if "lastmod" in fields else None
        if not checked.host:
            return
        self._locations.add(checked, where.line, where.column)
        latest = date.latest if date and date.finding is None else None
        child = checked.url.partition("#")[0]
        code = self._run.documents.add_document(child, self._document, latest)
        if code is not None:
            self._is_loop = self._is_loop or code == "index-loop"
            self._add((code, _WRONGLY_NAMED[code]), child, where)

    def _feed_entry(self, element: Element) -> None:
        """Take an `entry` of Atom, or the `channel` of RSS with its items."""
        for item in (element, *element.children):
            for child in item.children if item.local_name in ("entry", "item") else ():
                if child.local_name == "link" and child.attributes.get("rel", "alternate") == "alternate":
                    self._entries += 1
                    self._page(check_loc(child.attributes.get("href", child.text)), child)

    def _fields(self, element: Element, allowed: tuple[str, ...]) -> tuple[dict[str, Element], list[Element]]:
        """Return the elements of an entry by name, the first of each, and those of extensions. Check their order."""
        fields, names, extensions = dict[str, Element](), list[str](), list[Element]()
        for child in element.children:
            name = child.name.removeprefix(self._prefix) if child.name.startswith(self._prefix) else ""
            if name and " " not in name:
                names.append(name)
                fields.setdefault(name, child)
                if child.attributes or child.children:
                    self._leaf(child)
            elif child.namespace:
                extensions.append(child)
            else:
                self._add(_wrong_element(child.name), "", child)
        for finding in _check_names(names, allowed):
            self._add(finding, "", element)
        if element.attributes:
            self._leaf(element)
        if element.text and not element.text.isspace():
            text = f"{quoted(element.text.strip()[:100])} belongs to no element"
            self._add(("xml-stray-text", text), "", element)
        return fields, extensions

    def _leaf(self, element: Element) -> None:
        """Report attributes of an element of the protocol, and what is inside a value."""
        for name in element.attributes:
            if " " not in name:
                text = f"{element.local_name} has the attribute {quoted(name)}"
                self._add(("xml-unknown-attribute", text), "", element)
        if element.local_name in _URL_FIELDS:
            for child in element.children:
                self._add(_wrong_element(child.local_name), "", child)

    def _lastmod(self, element: Element, url: str) -> CheckedLastmod:
        date = check_lastmod(element.text, self._run.now)
        if date.finding is not None:
            self._add(date.finding, url, element)
        elif date.earliest is not None and (self._newest is None or date.earliest > self._newest):
            self._newest, self._newest_text = date.earliest, date.text
        return date

    def _add(self, finding: Finding, url: str = "", where: Element | None = None) -> None:
        """Report a finding about a URL, or else about the document."""
        line, column = (where.line, where.column) if where is not None else (0, 0)
        self._run.report.add(finding, url or self._document.url, Place(self._document.url, line, column))


def _check_names(names: list[str], allowed: tuple[str, ...]) -> Iterator[Finding]:
    """Check the names of the elements in an entry.

    Args:
        names: the elements of the sitemap namespace, in the order of the document.
        allowed: those that the protocol has here, in its order.
    """
    different = [*dict.fromkeys(names)]
    known = [name for name in different if name in allowed]
    if known != sorted(known, key=allowed.index):
        yield "xml-element-order", f"the order is {', '.join(known)}"
    for name in different:
        if name not in allowed:
            yield _wrong_element(name)
        elif names.count(name) > 1:
            yield "xml-repeated-element", f"the entry has {names.count(name)} elements {name}"


def _wrong_element(name: str) -> Finding:
    """What is wrong with an element of the sitemap namespace that does not belong where it is."""
    if name in _CORE_ELEMENTS:
        return "xml-misplaced-element", f"the element {name} does not belong here"
    if name.lower() in _CORE_ELEMENTS:
        return "xml-unknown-element", f"the element {quoted(name)} is written {name.lower()}"
    return "xml-unknown-element", f"the protocol has no element {quoted(name)}"
