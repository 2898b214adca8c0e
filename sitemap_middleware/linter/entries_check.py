"""Checks the entries of a document, one by one, as the XML reader finds them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .checks.changefreq_and_priority import check_changefreq, check_priority
from .checks.child_element_names import check_fields, wrong_element
from .checks.extensions import check_extensions
from .checks.hreflang import LINK, check_own_version, read_versions
from .checks.lastmod import CheckedLastmod, check_lastmod
from .checks.loc import CheckedLoc, check_loc, page_keys
from .checks.news import MAX_ARTICLES
from .checks.sitemap_location import Locations
from .message import Finding, Place
from .message_collector import quoted
from .rules import Rule, fetch, lastmod, news, size_and_index, xml
from .run_context import Run
from .sitemap_element_names import (
    ATOM,
    NEWS,
    OLD_SITEMAPS,
    SITEMAP,
    SITEMAP_FIELDS,
    URL_FIELDS,
    Kind,
    local_name,
    namespace,
)
from .temporary_url_database import Addition, DocumentRow
from .xml_reader import Element, Unreadable

MAX_ENTRIES: Final = 50_000
"""URLs of a sitemap, and sitemaps of an index."""
MAX_CHILDREN: Final = 100_000
"""Children of the root, with those that are no entries."""

_SLACK_SECONDS: Final = 24 * 3600
"""How much older than its sitemap's newest date a date in an index may be."""
_ADDITIONS: Final[dict[Addition, tuple[Rule, str]]] = {
    Addition.ITSELF: (size_and_index.SELF, "the index names itself"),
    Addition.ANCESTOR: (size_and_index.LOOP, "the document leads to this index"),
    Addition.REPEATED: (size_and_index.DUPLICATE, "the document is named a second time"),
}


class DocumentContent:
    """Takes the entries of a document, in their order."""

    def __init__(self, run: Run, document: DocumentRow, location: str | None) -> None:
        self._run = run
        self._report = run.report
        self._document = document
        self._location = location
        self._locations = Locations(location, is_index=False)
        self.kind: Kind | None = None
        self.namespaces: dict[str, str] = {}
        self._prefix = f"{SITEMAP} "
        self._names_without_prefix: dict[str, str] = {}
        self._entries = self._children = 0
        self._newest: float | None = None
        self._newest_text = ""
        self._articles = 0
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
        space, name = namespace(element.name), local_name(element.name)
        if element.name in ("rss", f"{ATOM} feed"):
            self.begin(Kind.FEED)
            return
        if name == "html":
            raise Unreadable(fetch.HTML, "the document is an HTML page", element.line, element.column)
        if name not in ("urlset", "sitemapindex"):
            text = f"the root element is {quoted(name)}, and not urlset or sitemapindex"
            raise Unreadable(xml.ROOT, text, element.line, element.column)
        self.begin(Kind.INDEX if name == "sitemapindex" else Kind.URLSET)
        self._prefix = f"{space} " if space else ""
        if not space:
            self._add((xml.NAMESPACE_MISSING, f"{name} has no namespace"), self._document.url, element)
        elif space in OLD_SITEMAPS:
            self._add((xml.NAMESPACE_OLD, f"the namespace is {quoted(space)}"), self._document.url, element)
        elif space != SITEMAP:
            self._add((xml.NAMESPACE_WRONG, f"the namespace is {quoted(space)}"), self._document.url, element)

    def entry(self, element: Element) -> None:
        """Take a child of the root. Raises `Unreadable` if there are too many."""
        self._children += 1
        if self._children > MAX_CHILDREN:
            text = f"the root has more than {MAX_CHILDREN:,} children; the rest was not read"
            raise Unreadable(xml.TOO_COMPLEX, text, element.line, element.column)
        if self.kind is Kind.FEED:
            self._feed_entry(element)
        elif self.kind is Kind.URLSET and element.name == f"{self._prefix}url":
            self._url(element)
        elif self.kind is Kind.INDEX and element.name == f"{self._prefix}sitemap":
            self._sitemap(element)
        elif namespace(element.name) in (self._prefix.strip(), ""):
            self._add(wrong_element(local_name(element.name)), self._document.url, element)

    def line(self, text: str, number: int) -> None:
        """Take a line of a text document."""
        self._count(number)
        self._page(check_loc(text), Element("", {}, number, 1))

    def close(self) -> None:
        """Report what all entries together show."""
        what = "sitemaps" if self.kind is Kind.INDEX else "URLs"
        if not self._entries and self.kind is not Kind.FEED and not self._may_be_empty:
            self._add((size_and_index.EMPTY, f"the document lists no {what}"), self._document.url)
        if self.kind is Kind.INDEX and self._document.depth and not self._is_loop:
            self._add((size_and_index.NESTED, "an index names this index"), self._document.url)
        if self._articles > MAX_ARTICLES:
            self._add((news.TOO_MANY, f"the document has {self._articles:,} articles"), self._document.url)
        for found in self._locations.findings():
            place = Place(self._document.url, found.line, found.column)
            self._report.add(found.rule, found.url, found.text, place)
        latest = self._document.index_latest
        if latest is not None and self._newest is not None and self._newest > latest + _SLACK_SECONDS:
            text = f"the index has an older date for this sitemap than {self._newest_text}, which is in it"
            self._add((lastmod.INDEX_OLDER, text), self._document.url)

    @property
    def _may_be_empty(self) -> bool:
        """Whether it is a sitemap of news, from which all articles may have gone."""
        return any("sitemap-news" in space for space in self.namespaces.values())

    def _count(self, line: int) -> None:
        """Count an entry."""
        self._entries += 1
        if self._entries > MAX_ENTRIES:
            rule, what = size_and_index.TOO_MANY_URLS, "URLs"
            if self.kind is Kind.INDEX:
                rule, what = size_and_index.TOO_MANY_SITEMAPS, "sitemaps"
            raise Unreadable(
                rule, f"the document lists more than {MAX_ENTRIES:,} {what}; the rest was not read", line, 0
            )

    def _url(self, element: Element) -> None:
        self._count(element.line)
        fields, extensions = self._fields(element, URL_FIELDS)
        text = fields["loc"].text if "loc" in fields else ""
        checked = check_loc(text)
        where = fields.get("loc", element)
        url = checked.url or self._document.url
        written = fields.get("lastmod")
        versions = self._extensions(extensions, checked, url) if extensions else []
        is_extended = len(extensions) > len(versions)
        self._page(checked, where, is_extended=is_extended, date=written.text if written else "", versions=versions)
        if written is not None:
            date = self._lastmod(written, url)
            if date.finding is None:
                self._run.facts.add_lastmod(date)
        if "changefreq" in fields:
            self._hint(check_changefreq(fields["changefreq"].text), fields["changefreq"], url)
            self._run.facts.add_changefreq(fields["changefreq"].text)
        if "priority" in fields:
            self._hint(check_priority(fields["priority"].text), fields["priority"], url)
            self._run.facts.add_priority(fields["priority"].text)

    def _extensions(self, elements: list[Element], page: CheckedLoc, url: str) -> Sequence[tuple[str, str]]:
        """Check the extensions of an entry. Return the versions in other languages that it names, with their codes."""
        links = [element for element in elements if element.name == LINK]
        if len(links) < len(elements):
            self._other_extensions(elements, page, url)
        attributes = [link.attributes for link in links]
        if attributes != self._links:  # the pages of a cluster often follow each other, and name the same versions
            self._links, self._versions = attributes, read_versions(attributes)
        versions = self._versions
        for finding, position in versions.findings:
            self._add(finding, url, links[position])
        if (own := check_own_version(versions, page)) is not None:
            self._add(own, url, links[versions.first])
        return versions.named

    def _other_extensions(self, elements: list[Element], page: CheckedLoc, url: str) -> None:
        self._articles += any(element.name == f"{NEWS} news" for element in elements)
        for finding, element in check_extensions(elements, page, self._run.now):
            rule = finding[0]
            if rule.code.endswith("-namespace"):
                if rule.code in self._wrong_namespaces:
                    continue  # one mistake, in one line of the document
                self._wrong_namespaces.add(rule.code)
            self._add(finding, url, element)

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
            self._add(finding, checked.url or self._document.url, where)
        if checked.host:
            self._locations.add(checked, where.line, where.column)
            key, page = page_keys(checked)
            self._run.documents.add_url(
                checked.url,
                key=key,
                page=page,
                document=self._document.id,
                line=where.line,
                extended=is_extended,
                lastmod=date.strip(),
                versions=versions,
            )
        self._run.facts.add_url(checked)

    def _sitemap(self, element: Element) -> None:
        self._count(element.line)
        fields, _ = self._fields(element, SITEMAP_FIELDS)
        where = fields.get("loc", element)
        checked = check_loc(where.text if "loc" in fields else "", is_page=False)
        url = checked.url or self._document.url
        for finding in checked.findings:
            self._add(finding, url, where)
        date = self._lastmod(fields["lastmod"], url) if "lastmod" in fields else None
        if not checked.host:
            return
        self._locations.add(checked, where.line, where.column)
        latest = date.latest if date and date.finding is None else None
        child = url.partition("#")[0]
        addition = self._run.documents.add_document(child, self._document, latest, where.line)
        if addition is not Addition.NEW:
            self._is_loop = self._is_loop or addition is Addition.ANCESTOR
            self._add(_ADDITIONS[addition], child, where)

    def _feed_entry(self, element: Element) -> None:
        """Take an `entry` of Atom, or the `channel` of RSS with its items."""
        for item in (element, *element.children):
            for child in item.children if local_name(item.name) in ("entry", "item") else ():
                if local_name(child.name) == "link" and child.attributes.get("rel", "alternate") == "alternate":
                    self._entries += 1
                    self._page(check_loc(child.attributes.get("href", child.text)), child)

    def _fields(self, element: Element, allowed: tuple[str, ...]) -> tuple[dict[str, Element], list[Element]]:
        """Return the elements of an entry by name, the first of each, and those of extensions. Check their order."""
        fields, names, extensions = dict[str, Element](), list[str](), list[Element]()
        known_names = self._names_without_prefix
        for child in element.children:
            name = known_names.get(child.name)
            if name is None:
                name = known_names[child.name] = self._without_prefix(child.name)
            if name:
                names.append(name)
                fields.setdefault(name, child)
                if child.attributes or child.children:
                    self._leaf(child)
            elif " " in child.name:
                extensions.append(child)
            else:
                self._add(wrong_element(child.name), self._document.url, child)
        for finding in check_fields((*names,), allowed):
            self._add(finding, self._document.url, element)
        if element.attributes:
            self._leaf(element)
        if element.text and not element.text.isspace():
            finding = xml.STRAY_TEXT, f"{quoted(element.text.strip()[:100])} belongs to no element"
            self._add(finding, self._document.url, element)
        return fields, extensions

    def _without_prefix(self, name: str) -> str:
        """The name of an element without the prefix of the protocol; an empty string for other elements."""
        bare = name.removeprefix(self._prefix)
        return bare if name.startswith(self._prefix) and " " not in bare else ""

    def _leaf(self, element: Element) -> None:
        """Report attributes of an element of the protocol, and what is inside a value."""
        for name in element.attributes:
            if " " not in name:
                finding = xml.UNKNOWN_ATTRIBUTE, f"{local_name(element.name)} has the attribute {quoted(name)}"
                self._add(finding, self._document.url, element)
        if local_name(element.name) in URL_FIELDS:
            for child in element.children:
                self._add(wrong_element(local_name(child.name)), self._document.url, child)

    def _lastmod(self, element: Element, url: str) -> CheckedLastmod:
        date = check_lastmod(element.text, self._run.now)
        if date.finding is not None:
            self._add(date.finding, url, element)
        elif date.earliest is not None and (self._newest is None or date.earliest > self._newest):
            self._newest, self._newest_text = date.earliest, date.text
        return date

    def _hint(self, finding: Finding | None, element: Element, url: str) -> None:
        if finding is not None:
            self._add(finding, url, element)

    def _add(self, finding: Finding, url: str, where: Element | None = None) -> None:
        rule, text = finding
        line, column = (where.line, where.column) if where is not None else (0, 0)
        self._report.add(rule, url, text, Place(self._document.url, line, column))
