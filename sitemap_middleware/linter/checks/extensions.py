"""Checks the extensions of an entry: their namespaces, and the rest by `image`, `video`, `news` and `hreflang`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Final

from ..message import Finding
from ..message_collector import quoted
from ..rules import hreflang, image, news, video
from ..sitemap_element_names import IMAGE, NEWS, VIDEO, XHTML, local_name, namespace
from ..xml_reader import Element
from .image import check_images
from .loc import CheckedLoc
from .news import check_news
from .video import check_videos

Located = tuple[Finding, Element]
"""What is wrong, and with which element."""

_CHECKS: Final[dict[str, Callable[[Sequence[Element], CheckedLoc, float], Iterator[Located]]]] = {
    IMAGE: check_images,
    VIDEO: check_videos,
    NEWS: check_news,
}
_NAMES: Final = {"sitemap-image": image.NAMESPACE, "sitemap-video": video.NAMESPACE, "sitemap-news": news.NAMESPACE}
"""What other namespaces contain that are meant to be those of extensions."""


def check_extensions(elements: Sequence[Element], page: CheckedLoc, now: float) -> Iterator[Located]:
    """Check the elements of an entry that are not of the protocol itself, but those of other languages.

    Args:
        elements: the elements.
        page: the URL of the entry.
        now: the moment, in POSIX seconds.
    """
    for space, group in groupby(sorted(elements, key=_namespace), _namespace):
        of_space = [*group]
        if space in _CHECKS:
            yield from _CHECKS[space](of_space, page, now)
        elif space != XHTML and (wrong := _wrong_namespace(of_space[0])) is not None:
            yield wrong, of_space[0]


def _namespace(element: Element) -> str:
    return namespace(element.name)


def _wrong_namespace(element: Element) -> Finding | None:
    """What is wrong with the namespace of an element; None if it may be an extension that is not known here."""
    space = namespace(element.name)
    if local_name(element.name) == "link" and "hreflang" in element.attributes:
        return hreflang.NAMESPACE, f"the namespace is {quoted(space)}"
    for name, rule in _NAMES.items():
        if name in space:
            return rule, f"the namespace is {quoted(space)}"
    return None
