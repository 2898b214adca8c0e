"""Checks the `<image:image>` elements of an entry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ..message import Finding
from ..message_collector import quoted
from ..rules import image as rules
from ..rules import loc as loc_rules
from ..sitemap_element_names import IMAGE, local_name
from ..xml_reader import Element
from .loc import CheckedLoc, check_loc

MAX_IMAGES: Final = 1_000
_OUTDATED: Final = frozenset({"caption", "title", "geo_location", "license"})


def check_images(elements: Sequence[Element], _page: CheckedLoc, _now: float) -> Iterator[tuple[Finding, Element]]:
    """Check the images of an entry."""
    images = [element for element in elements if local_name(element.name) == "image"]
    for element in elements:
        if local_name(element.name) != "image":
            yield (rules.UNKNOWN, f"there is no element {quoted(local_name(element.name))} in an entry"), element
    if len(images) > MAX_IMAGES:
        yield (rules.TOO_MANY, f"the page has {len(images):,} images"), images[0]
    known = set[str]()
    for image in images:
        loc = None
        for child in image.children:
            name = local_name(child.name)
            if child.name == f"{IMAGE} loc":
                loc = loc or child
            elif name in _OUTDATED:
                yield (rules.OUTDATED, f"{name} is no longer read"), child
            else:
                yield (rules.UNKNOWN, f"there is no element {quoted(name)} of an image"), child
        if loc is None or not loc.text.strip():
            yield (rules.LOC_MISSING, "the image has no URL"), image
            continue
        checked = check_loc(loc.text, is_page=False)
        if not checked.host:
            yield (rules.LOC_INVALID, f"{quoted(checked.url)} is not an absolute URL"), loc
        elif any(rule is loc_rules.DOUBLE_ESCAPED for rule, _ in checked.findings):
            yield (rules.DOUBLE_ESCAPED, f"{quoted(checked.url)} is escaped twice"), loc
        if checked.url in known:
            yield (rules.DUPLICATE, f"{quoted(checked.url)} is listed twice"), loc
        known.add(checked.url)
