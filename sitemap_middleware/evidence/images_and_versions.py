"""What a page shows besides its text, if options ask for it: its own images, and links to it in other languages.

Each is a fact, as text: an image is its path and query ("/static/oven.jpg"), a version of the page the code of its
language and its path ("de /de/about"). Only what is on the page's own site counts. A page keeps the facts of its
latest reading. One that the reading before did not have is marked by "?", and does not count yet.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from itertools import accumulate, islice
from typing import Any, Final, NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from ..http.site_urls import own_reference
from ..models import Page, Site
from ..protocol.language_codes import hreflang_fault
from .content_digest import things, types_of

MAX_VERSIONS: Final = 100
"""Versions that are read of a page."""

MAX_SHOWN_BYTES: Final = 8_000
"""Of all facts of a page. Its readers may have written them."""

COMMON_PAGES: Final = 2
COMMON_SHARE: Final = 0.1
"""An image on more than so many pages and this share of those of the site or of a route is the site's: a logo, an icon.
The few pages are those that show it on a small site besides its own: the first page, an archive."""

_MAX_ELEMENTS: Final = 500
_MAX_SRCSET_CHARS: Final = 10_000
_META_IMAGES: Final = "meta[property='og:image'][content], meta[property='og:image:url'][content]"
_CONTENT: Final = "main, [role=main], article"
_OTHER_PARTS: Final = frozenset(
    {"nav", "aside", "footer", "template", "dialog", "navigation", "complementary", "contentinfo", "banner"}
)
"""Elements, by tag or role, whose images are not those of the content that they are in."""
_PICTURE: Final = re.compile(r"\.(?:avif|gif|jpe?g|png|svg|tiff?|webp)(?:\?|$)", re.IGNORECASE)
_VERSIONS: Final = "head > link[rel~=alternate i][hreflang][href]"
_UNSHOWN: Final = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|(?<![\w-])(?:width|height)\s*:\s*(?:0(?![\d.])|[0-2](?:\.\d+)?px)",
    re.IGNORECASE,
)
_TINY: Final = re.compile(r"\s*[0-2](?:\.\d+)?\s*(?:px)?\s*")
_DESCRIPTOR: Final = re.compile(r"(\s[\d.]{1,10}[wx]),")
_SIZE: Final = re.compile(
    r"(?:[-_](0|\d{2,4})x(0|\d{2,4})|[-_](\d{3,4})w|@([2-4])x)(?=\.[a-z]{3,4}(?:\?|$))"
    r"|(?<=[?&])(?:w|h|width|height|size|q|quality|dpr)=(\d{1,5})(?:&|$)",
    re.IGNORECASE,
)
"""What tells the sizes of one picture apart, in its URL."""
_NO_PICTURES_OF_PAGES: Final = frozenset({"Organization", "WebSite", "BreadcrumbList", "Person"})
_MAX_THINGS: Final = 200


class Wanted(NamedTuple):
    """Which facts options ask for."""

    images: int = 0
    """At most so many of a page."""
    alternates: bool = False


NOTHING: Final = Wanted()


def image_references(tree: LexborHTMLParser, data: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """The images that a page names in its metadata and shows in its content, and what each is a link to, if anything.

    `data` is its JSON-LD. The content of a page that marks none is what is in no part of another kind.
    """
    for meta in tree.css(_META_IMAGES)[:_MAX_ELEMENTS]:
        yield meta.attributes["content"] or "", ""
    yield from ((image, "") for image in _images_of_things(data))
    images: dict[int, LexborNode] = {}
    marked = tree.css(_CONTENT)
    others = _OTHER_PARTS if marked else _OTHER_PARTS | {"header", "noscript"}  # the latter for trackers
    for content in marked or tree.css("body"):
        images |= {image.mem_id: image for image in content.css("img")[:_MAX_ELEMENTS]}
        if len(images) >= _MAX_ELEMENTS:
            break
    for image in images.values():
        if not _is_unshown(image) and (link := _link_around(image, others)) is not None:
            yield _source(image), link


def version_references(tree: LexborHTMLParser) -> Iterator[tuple[str, str]]:
    """The versions of a page in other languages that it names: codes and URLs."""
    for link in tree.css(_VERSIONS)[:MAX_VERSIONS]:
        code = (link.attributes["hreflang"] or "").strip().replace("_", "-")
        if hreflang_fault(code) is None:
            yield code, link.attributes["href"] or ""


def facts(
    images: Iterable[tuple[str, str]], versions: Iterable[tuple[str, str]], site: Site, loc: str, wanted: Wanted
) -> str:
    """The facts of a reading, one in a line, by what the page at `loc` refers to."""
    page = own_reference(site, loc, "")  # where an image without a source leads
    own = (own_reference(site, loc, image) for image, link in images if not _is_of_another_page(site, loc, link))
    shown = _one_of_each_picture(image for image in own if image and image != page)[: wanted.images]
    paths: dict[str, str] = {}  # of two URLs for one language the first one counts
    for code, url in versions:
        path = own_reference(site, loc, url)
        if path and "?" not in path:
            paths.setdefault(code.lower(), f"{code} {path}")
    found = [*shown, *paths.values()]
    sizes = accumulate(len("?") + len(fact) + len("\n") for fact in found)
    return "\n".join(fact for fact, size in zip(found, sizes, strict=True) if size <= MAX_SHOWN_BYTES)


def agreed(known: str, latest: str) -> str:
    """The facts of the latest reading, with a mark at those that are not among the known ones."""
    before = {fact.removeprefix("?") for fact in known.split("\n")}
    return "\n".join(fact if fact in before else f"?{fact}" for fact in latest.split("\n") if fact)


def images_of(page: Page) -> list[str]:
    """The images that count, as paths with their queries."""
    return [fact for fact in page.shown.split("\n") if fact.startswith("/")] if page.shown else []


def versions_of(page: Page) -> list[tuple[str, str]]:
    """The versions that count: codes and paths."""
    found = (fact.partition(" ") for fact in page.shown.split("\n") if page.shown)
    return [(code, path) for code, _, path in found if path and not code.startswith(("/", "?"))]


def common_images(pages: Iterable[Page]) -> frozenset[str]:
    """The images that belong to the site or to one of its routes, rather than to single pages."""
    counts: dict[str, Counter[str]] = {}
    totals = Counter[str]()
    for page in pages:
        for group in {"", page.route}:
            totals[group] += 1
            counts.setdefault(group, Counter()).update(images_of(page))
    return frozenset(
        image
        for group, shown in counts.items()
        for image, count in shown.items()
        if count > COMMON_PAGES + COMMON_SHARE * totals[group]
    )


def _link_around(image: LexborNode, others: AbstractSet[str]) -> str | None:
    """What an image is a link to, or nothing; None in a part that is hidden or leads elsewhere.

    The parser's own `:is` misses some of these.
    """
    link = ""
    element = image.parent
    while element is not None:
        attributes = element.attributes
        if not others.isdisjoint((element.tag, attributes.get("role"))) or "hidden" in attributes:
            return None
        if _UNSHOWN.search(attributes.get("style") or ""):
            return None
        if element.tag == "a":
            link = (attributes.get("href") or "").strip()
        element = element.parent
    return link


def _is_of_another_page(site: Site, loc: str, link: str) -> bool:
    """Whether an image only leads to another page of the site: a logo, a preview. A larger size of it is no page."""
    target = own_reference(site, loc, link) if link else None
    return target is not None and target != own_reference(site, loc, "") and not _PICTURE.search(target)


def _is_unshown(image: LexborNode) -> bool:
    """Whether an image counts visits, keeps a place, or waits for a script to show it."""
    if _UNSHOWN.search(image.attributes.get("style") or ""):
        return True
    return any(_TINY.fullmatch(image.attributes.get(name) or "") for name in ("width", "height"))


def _source(image: LexborNode) -> str:
    """The URL of an image, or of that which takes its place once it is seen."""
    attributes = image.attributes
    for name in ("data-src", "src"):
        source = (attributes.get(name) or "").strip()
        if source and not source.startswith("data:"):
            return source
    srcset = (attributes.get("srcset") or attributes.get("data-srcset") or "").strip()
    candidates = re.split(r",\s+", _DESCRIPTOR.sub(r"\1, ", srcset[:_MAX_SRCSET_CHARS]))
    return max(candidates, key=_width).strip().partition(" ")[0]


def _width(candidate: str) -> float:
    match = re.search(r"\s(\d{1,6}(?:\.\d{1,3})?)[wx],?$", candidate)
    return float(match[1]) if match else 0.0


def _images_of_things(data: Iterable[Any]) -> Iterator[str]:
    """The images that JSON-LD gives of the page and of what it is about."""
    described = [*islice(things(data), _MAX_THINGS)]
    by_id = {str(thing["@id"]): thing for thing in described if "@id" in thing}
    for thing in described:
        if _NO_PICTURES_OF_PAGES.isdisjoint(types_of(thing)):
            for name in ("image", "primaryImageOfPage"):
                given = thing.get(name)
                for image in (given if isinstance(given, list) else [given])[:_MAX_ELEMENTS]:
                    found = by_id.get(str(image.get("@id")), image) if isinstance(image, dict) else {"url": image}
                    url = found.get("url") or found.get("contentUrl")
                    if isinstance(url, str):
                        yield url


def _one_of_each_picture(urls: Iterable[str]) -> list[str]:
    """The URLs, but of several sizes of one picture only the largest; one that names no size is the picture itself."""
    best: dict[str, tuple[float, str]] = {}
    for url in urls:
        sizes = [int(size) for found in _SIZE.finditer(url) for size in found.groups() if size]
        key, size = _SIZE.sub("", url).rstrip("?&"), float(max(sizes, default=1 << 20))
        if key not in best or size > best[key][0]:
            best[key] = size, url
    return [url for _, url in best.values()]
