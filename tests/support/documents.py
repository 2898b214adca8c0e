"""Parse and validate documents, with a parser and schemas that are not the package's."""

from __future__ import annotations

import datetime as dt
from functools import cache
from pathlib import Path

from lxml import etree

NS = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
OWN = Path(__file__).parent.parent / "schemas"


@cache
def schema(name: str) -> etree.XMLSchema:
    """The schema of a document: that of sitemaps.org in fewer words, and stricter."""
    return etree.XMLSchema(etree.parse(str(OWN / f"{name}.xsd")))


def parsed(body: bytes) -> etree._Element:
    """A document's root, after its schema has accepted it."""
    root = etree.fromstring(body, etree.XMLParser(resolve_entities=False, no_network=True))
    schema(etree.QName(root).localname).assertValid(root)
    return root


def locs(body: bytes) -> list[str]:
    return [element.text or "" for element in parsed(body).iter(f"{NS}loc")]


def entries(body: bytes) -> dict[str, dict[str, str]]:
    result: dict[str, dict[str, str]] = {}
    for url in parsed(body):
        entry = {etree.QName(child).localname: child.text or "" for child in url}
        result[entry.pop("loc")] = entry
    return result


def lastmod(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)
