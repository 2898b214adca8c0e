"""The XML of Sitemap 0.9."""

from __future__ import annotations

from typing import Final, cast

from ..models import UrlColumns

_HEAD: Final = b'<?xml version="1.0" encoding="UTF-8"?>\n'
_NAMESPACE: Final = b'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
URLSET_FRAME: Final = (_HEAD + b"<urlset " + _NAMESPACE + b">\n", b"</urlset>\n")
"""The bytes before and after the entries of a document."""
INDEX_FRAME: Final = (_HEAD + b"<sitemapindex " + _NAMESPACE + b">\n", b"</sitemapindex>\n")
"""The same for an index."""
_START: Final = "<url><loc>"
_ENTITIES: Final = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("'", "&apos;"), ('"', "&quot;"))


def priority_text(priority: float) -> str:
    """A priority as text: "0.8", "1.0", "0.25"."""
    return str(round(float(priority), 2))


def render_urls(entries: UrlColumns) -> str:
    """A `<url>` for each entry, one a line, its children in the order that the schema fixes."""
    locs, lastmods, changefreqs, priorities = entries
    joined = "\n".join(locs)  # URLs contain no line breaks
    if (escaped := _escaped(joined)) != joined:
        locs = escaped.split("\n")
    changefreq_tags = {word: "" if word is None else f"<changefreq>{word}</changefreq>" for word in set(changefreqs)}
    priority_tags = {
        number: "" if number is None else f"<priority>{priority_text(number)}</priority>" for number in set(priorities)
    }
    if len(changefreq_tags) == 1 and None not in lastmods:  # the common case, in two thirds of the time
        (word_tag,) = changefreq_tags.values()
        ends = {number: f"</lastmod>{word_tag}{tag}</url>\n{_START}" for number, tag in priority_tags.items()}
        pieces = ["</loc><lastmod>"] * (4 * len(locs))
        pieces[0::4] = locs
        pieces[2::4] = cast("list[str]", lastmods)
        pieces[3::4] = [ends[priority] for priority in priorities]
        return f"{_START}{''.join(pieces)}".removesuffix(_START)
    return "".join(
        [
            f"{_START}{loc}</loc>{'' if lastmod is None else f'<lastmod>{lastmod}</lastmod>'}"
            f"{changefreq_tags[changefreq]}{priority_tags[priority]}</url>\n"
            for loc, lastmod, changefreq, priority in zip(locs, lastmods, changefreqs, priorities, strict=True)
        ]
    )


def render_sitemap(loc: str, lastmod: str | None) -> bytes:
    """The `<sitemap>` of one document in an index."""
    lastmod_tag = f"<lastmod>{lastmod}</lastmod>" if lastmod else ""
    return f"<sitemap><loc>{_escaped(loc)}</loc>{lastmod_tag}</sitemap>\n".encode("ascii")


def _escaped(text: str) -> str:
    """Text with entities. Importing `xml.sax` for this would take longer than all of this module."""
    for character, entity in _ENTITIES:
        if character in text:  # `replace` alone would take three times as long to find none
            text = text.replace(character, entity)
    return text
