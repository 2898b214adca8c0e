"""Parse and validate documents, with a parser and schemas that are not the package's."""

from __future__ import annotations

import datetime as dt
from functools import cache
from pathlib import Path

from lxml import etree

NS = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
OWN = Path(__file__).parent.parent / "schemas"
OFFICIAL = Path(__file__).parent.parent.parent.parent / "shared" / "xsd"


@cache
def schemas(name: str) -> tuple[etree.XMLSchema, ...]:
    """The project's schema of a document, and the official one if it is available."""
    files = [OWN / f"{name}.xsd"]
    official = OFFICIAL / {"urlset": "sitemap.xsd", "sitemapindex": "siteindex.xsd"}[name]
    if official.exists():
        files.append(official)
    return tuple(etree.XMLSchema(etree.parse(str(file))) for file in files)


def parsed(body: bytes) -> etree._Element:
    """A document's root, after every schema has accepted it."""
    root = etree.fromstring(body, etree.XMLParser(resolve_entities=False, no_network=True))
    for schema in schemas(etree.QName(root).localname):
        schema.assertValid(root)
    return root


def locs(body: bytes) -> list[str]:
    return [element.text or "" for element in parsed(body).iter(f"{NS}loc")]


def entries(body: bytes) -> dict[str, dict[str, str]]:
    """Each loc with what else its entry says."""
    result: dict[str, dict[str, str]] = {}
    for url in parsed(body):
        entry = {etree.QName(child).localname: child.text or "" for child in url}
        result[entry.pop("loc")] = entry
    return result


def lastmod(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)
