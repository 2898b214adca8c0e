"""Links the pages of a sitemap to their versions in other languages.

Versions may be in several parts, which are rendered at different times. So a part is rendered with a mark at each page
that is a version, and kept under another name; from all parts, the documents that are sent are made, with links to the
versions that are listed in place of the marks.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Mapping
from typing import Final

from ..protocol.extensions import NAMESPACES
from ..protocol.language_codes import X_DEFAULT
from ..util import in_pieces
from .xml import MAX_BYTES, Document, etag_of

MARKED: Final = "marked/"
"""How the names of documents with marks begin."""

_PIECE_PAGES: Final = 100
_NAMESPACE: Final = f' xmlns:xhtml="{NAMESPACES["xhtml"]}"'
_PAGE: Final = re.compile(r"<loc>([^<]+)</loc>.*(<!--([0-9a-f]{20}) (\S+) (\S*)-->)", re.DOTALL)
"""A page with its mark, as `render_url` writes them."""
_END: Final = "</url>\n"

Versions = Mapping[str, Mapping[str, str]]
"""The URLs of versions by language, for each group."""


def listed_versions(documents: Iterable[Document], x_default: str | None) -> Versions:
    """The versions in all documents, which have their XML. Of two in one language one counts.

    `x_default` is the language, in lower case, of the version for all others.
    """
    groups: dict[str, dict[str, str]] = {}
    for document in documents:
        pages = map(_PAGE.search, in_pieces(_pages(document), _PIECE_PAGES))
        for loc, _, group, code, default in (page.groups() for page in pages if page is not None):
            versions = groups.setdefault(group, {})
            versions[code] = min(loc, versions.get(code, loc))
            if default or code.lower() == x_default:
                versions[X_DEFAULT] = default or versions[code]
    return groups


def linked(document: Document, groups: Versions, known: Mapping[str, Document]) -> Document:
    """A document, which has its XML, with links in place of its marks.

    Without its XML, if it is one of those that are `known` by their name.
    """
    marked = _pages(document)
    pages = [_linked(page, groups) for page in in_pieces(marked, _PIECE_PAGES)]
    if sum(map(len, pages)) > MAX_BYTES:  # then it has no links
        pages = [_linked(page, {}) for page in marked]
    xml = _declared(_END.join(pages)).encode()
    name, etag = document.name.removeprefix(MARKED), etag_of(xml)
    if (before := known.get(name)) is not None and before.etag == etag:
        return before
    gzipped = gzip.compress(xml, 6, mtime=0)
    return document._replace(name=name, etag=etag, size=len(xml), gzipped_size=len(gzipped), gzipped=gzipped)


def _pages(document: Document) -> list[str]:
    """What is between the ends of pages in a document. Texts of a page may have line breaks."""
    return gzip.decompress(document.gzipped).decode().split(_END)


def _linked(page: str, groups: Versions) -> str:
    """A page of a document with links to its versions, itself among them, if there are others."""
    found = _PAGE.search(page)
    if found is None:
        return page
    loc, mark, group, code, _ = found.groups()
    versions, links = groups.get(group, {}), ""
    if versions.get(code) == loc and len(versions.keys() - {X_DEFAULT}) > 1:
        links = "".join(
            f'<xhtml:link rel="alternate" hreflang="{code}" href="{url}"/>' for code, url in sorted(versions.items())
        )
    return page.replace(mark, links)


def _declared(text: str) -> str:
    """A document with the namespace of its links, if it has any."""
    if "<xhtml:link " not in text or _NAMESPACE in text:
        return text
    end = text.index(">", text.index("<urlset "))
    return f"{text[:end]}{_NAMESPACE}{text[end:]}"
