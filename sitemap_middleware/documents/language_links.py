"""Links the pages of a sitemap to their versions in other languages.

Versions may be in several parts, which are rendered at different times. So a page that has versions is rendered with a
mark, a comment; from all parts, documents are made with links in place of the marks, to those versions that are listed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from html import unescape
from typing import Final, NamedTuple

from ..listing.candidates import decode_path
from ..protocol.language_codes import X_DEFAULT
from ..util import in_pieces
from .xml import HYPHEN, LINK_BYTES, MARKED, MAX_BYTES, Document, entries_of, urlset

LINKED: Final = "linked/"
"""How the names of documents with links in place of marks begin, in the store."""

_PIECE_PAGES: Final = 100
_PAGE: Final = re.compile(r"<loc>([^<]+)</loc>(?:.*(<!--(\S+) (.*) -->))?", re.DOTALL)
"""A page, and its mark if it has one, as `render_url` writes them."""
_GIVEN: Final = "="
"""The first word of a mark if the versions are given; else it is the group of the version."""
_END: Final = "</url>\n"


class LanguageSets(NamedTuple):
    """Which versions pages have, by what is listed in all documents."""

    groups: Mapping[str, Mapping[str, str]]
    """The URLs of versions by language, for each group."""
    left_out: Mapping[str, frozenset[str]]
    """The codes for which URLs are named and may not be, by their keys."""
    room: float
    """Bytes that the links of a page may have, so that no document gets too large."""

    def links(self, loc: str, kind: str, words: list[str]) -> str:
        """The links of a page, itself among them, by its mark; none if it has no other versions."""
        if kind == _GIVEN:
            pairs = list(_pairs(words))
            own = {code.lower() for code, url in pairs if url == loc}
            given: dict[str, tuple[str, str]] = {}
            for code, url in pairs:
                lower = code.lower()
                if url == loc or (lower not in own and lower not in self.left_out.get(_key(url), ())):
                    given.setdefault(lower, (code, url))
            return _links(given.values()) if any(url != loc for _, url in given.values()) else ""
        versions = self.groups.get(kind, {})
        if versions.get(words[0]) != loc or not versions.keys() - {X_DEFAULT, words[0]}:
            return ""
        text = _links(sorted(versions.items()))
        return text if len(text) <= self.room else ""


def _links(versions: Iterable[tuple[str, str]]) -> str:
    return "".join(f'<xhtml:link rel="alternate" hreflang="{code}" href="{url}"/>' for code, url in versions)


def _pairs(words: list[str]) -> Iterable[tuple[str, str]]:
    """The codes and URLs in the mark of a page whose versions are given."""
    return zip(words[::2], words[1::2], strict=True)


def _key(url: str) -> str:
    """What URLs that are written in different ways, or differ in the query, have in common."""
    return decode_path(url.partition("?")[0])


def _marked(document: Document) -> Iterator[tuple[str, str, str, str, list[str]]]:
    """Each page of a document that has its XML: its text, loc, mark, and the first and the other words of that.

    What is not there is empty.
    """
    for page in in_pieces(entries_of(document).split(_END), _PIECE_PAGES):
        loc, mark, kind, rest = found.groups("") if (found := _PAGE.search(page)) else ("", "", "", "")
        yield page, loc, mark, kind, rest.replace(HYPHEN, "-").split(" ")


def language_sets(
    documents: Callable[[], Iterable[Document]], x_default: str | None, may_be_named: Callable[[str, str], bool]
) -> LanguageSets:
    """The versions of all pages in the documents, which have their XML and are read as often as needed.

    Of two in one language the one counts whose mark has the lower rank. `x_default` is the language, in lower case, of
    the version for all others. `may_be_named` takes the code and the URL, decoded and without its query, of one that is
    not listed.
    """
    ranked: dict[str, dict[str, tuple[int, str]]] = {}
    defaults: dict[str, str] = {}
    named: dict[str, set[str]] = {}
    room = float(MAX_BYTES)
    for document in documents():
        size, has_groups = document.size, False
        for _, loc, _, kind, words in _marked(document):
            if kind == _GIVEN:
                size += LINK_BYTES * len(words) // 2
                for code, url in _pairs(words):
                    if url != loc:
                        named.setdefault(_key(url), set()).add(code.lower())
            elif kind:
                code, rank, default = words
                versions, has_groups = ranked.setdefault(kind, {}), True
                versions[code] = min((int(rank), loc), versions.get(code, (int(rank), loc)))
                if default:
                    defaults[kind] = default
                    named.setdefault(_key(default), set()).add(X_DEFAULT)
        if has_groups:
            room = min(room, (MAX_BYTES - size) / document.entries)
    for document in documents() if named else ():
        for _, loc, *_ in _marked(document):
            named.pop(_key(loc), None)
    left_out = {
        url: frozenset(code for code in codes if not may_be_named(code, unescape(url))) for url, codes in named.items()
    }
    groups: dict[str, dict[str, str]] = {}
    for group, versions in ranked.items():
        groups[group] = urls = {code: loc for code, (_, loc) in versions.items()}
        default = defaults.get(group) or next((loc for code, loc in urls.items() if code.lower() == x_default), "")
        if default and X_DEFAULT not in left_out.get(_key(default), ()):
            urls[X_DEFAULT] = default
    return LanguageSets(groups, left_out, room)


def linked(document: Document, sets: LanguageSets, known: Mapping[str, Document]) -> Document:
    """A document, which has its XML, with links in place of its marks.

    Without its XML, if it is one of those that are `known` by their name.
    """
    pages = (page.replace(mark, sets.links(loc, kind, words)) for page, loc, mark, kind, words in _marked(document))
    text = _END.join(pages)
    made = urlset(LINKED + document.name.removeprefix(MARKED), text, document.entries, document.lastmod or "")
    before = known.get(made.name)
    return before if before is not None and before.etag == made.etag else made
