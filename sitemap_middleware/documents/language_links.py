"""Links the pages of a sitemap to their versions in other languages.

Versions may be in several parts, which are rendered at different times. So a part is rendered with a mark at each page
that is a version, and kept under another name; from all parts, the documents that are sent are made, with links to the
versions that are listed in place of the marks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from ..protocol.language_codes import X_DEFAULT
from ..util import in_pieces
from .xml import MAX_BYTES, Document, entries_of, urlset

MARKED: Final = "marked/"
"""How the names of documents with marks begin."""

_PIECE_PAGES: Final = 100
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
        pages = map(_PAGE.search, in_pieces(entries_of(document).split(_END), _PIECE_PAGES))
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
    marked = entries_of(document).split(_END)
    text = _END.join(_linked(page, groups) for page in in_pieces(marked, _PIECE_PAGES))
    if len(text.encode()) > MAX_BYTES:  # then it has no links
        text = _END.join(_linked(page, {}) for page in marked)
    made = urlset(document.name.removeprefix(MARKED), text, document.entries, document.lastmod or "")
    before = known.get(made.name)
    return before if before is not None and before.etag == made.etag else made


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
