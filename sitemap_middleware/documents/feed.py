"""The feed of the latest changes, in Atom (RFC 4287). Search engines accept feeds as sitemaps of recent changes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from ..evidence.dates import w3c_from_timestamp
from ..http.urls import with_entities
from ..models import Site
from .changes import Change
from .xml import Document, compressed

MAX_FEED_ENTRIES: Final = 100

ATOM_TYPE: Final = "application/atom+xml"


def atom(site: Site, path: str, latest: Sequence[Change], since: int) -> Document:
    """The feed of a site at a path, given its changes, the latest first, and since when its sitemap is what it is."""
    modified = max((change.at for change in latest), default=since)
    base, own = with_entities(site.base_url), with_entities(site.base_url + path)
    head = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n'
        f"<id>{own}</id><title>Changes of {base}</title><updated>{w3c_from_timestamp(modified)}</updated>\n"
        f'<author><name>{base}</name></author><link rel="self" href="{own}"/><link href="{base}/"/>\n'
    )
    xml = "".join([head, *map(_entry, latest), "</feed>\n"])
    return compressed("", xml, len(latest), "")._replace(since=sys.maxsize)  # entries that are withdrawn have no date


def _entry(change: Change) -> str:
    loc, lastmod = with_entities(change.loc), change.lastmod
    updated = lastmod if lastmod and "T" in lastmod else w3c_from_timestamp(change.at)  # Atom has no dates without time
    return (
        f'<entry><id>{loc}</id><title>{loc}</title><updated>{updated}</updated><link href="{loc}"/>'
        f'<category term="{change.kind}"/></entry>\n'
    )
