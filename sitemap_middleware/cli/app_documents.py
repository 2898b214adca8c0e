"""Fetches the documents of an app's sitemap from the app, all of one moment, for the commands that write them."""

from __future__ import annotations

import gzip
import re
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from html import unescape
from typing import Final
from urllib.parse import unquote

from ..adapters.running_app import Fetch
from ..exceptions import SitemapError
from ..http.messages import GENERATING_HEADER
from ..models import Site

RETRY_SECONDS: Final = 1.0

MAX_ROUNDS: Final = 5
"""Times that all documents are requested, at most, because the index has changed meanwhile."""

LOC: Final = re.compile(rb"<loc>([^<]*)</loc>")


def fetch_documents(
    fetch: Fetch,
    site: Site,
    path: str,
    on_progress: Callable[[int, int | None], None],
    pause: Callable[[float], None] = time.sleep,
) -> dict[str, bytes]:
    """Return the documents of a sitemap, gzipped, by their decoded paths below the site's root; itself last.

    They are fetched until the index has not changed meanwhile. Those that the app is generating are waited for.

    Raises `SitemapError` if the app does not serve the sitemap, or not all of its documents.
    """
    read = partial(_read, fetch, site.base_url, pause)
    sitemap = read(path)
    for _ in range(MAX_ROUNDS):
        names = document_paths(gzip.decompress(sitemap), site)
        documents: dict[str, bytes] = {}
        for count, name in enumerate(names):
            on_progress(count, len(names) + 1)
            with suppress(_DocumentMissing):  # an error only if the sitemap still names it when it is fetched again
                documents[name] = read(name)
        earlier, sitemap = sitemap, read(path)
        if gzip.decompress(sitemap) == gzip.decompress(earlier):
            break
    for name in document_paths(gzip.decompress(sitemap), site):
        if name not in documents:
            raise SitemapError(f"the app answered 404 for {name}, which its {path} names")
    return {**documents, path: sitemap}


def _read(fetch: Fetch, base_url: str, pause: Callable[[float], None], path: str) -> bytes:
    """Fetch a document, gzipped; wait while the app is generating it."""
    response = fetch(path, "gzip")
    while response.status == 503 and GENERATING_HEADER[1] in dict(response.headers).values():
        pause(RETRY_SECONDS)
        response = fetch(path, "gzip")
    if response.status != 200:
        error_class = _DocumentMissing if response.status == 404 else SitemapError
        reason = response.body.decode("utf-8", "replace").strip()
        raise error_class(f"the app answered {response.status} for {path}: {reason}")
    if dict(response.headers).get("content-encoding") != "gzip":
        raise SitemapError(f"the app has a route for {path}, so SitemapMiddleware does not serve it")
    first_loc = LOC.search(gzip.decompress(response.body))
    if first_loc and not first_loc[1].startswith(f"{base_url}/".encode()):
        raise SitemapError(
            f"{path} lists {first_loc[1].decode('utf-8', 'replace')}, which is not a page of {base_url}:"
            " give the site's own --base-url and --root-path"
        )
    return response.body


def document_paths(body: bytes, site: Site) -> list[str]:
    """The decoded paths of the documents that an index names; none if it is a plain sitemap."""
    locs = LOC.findall(body) if b"<sitemapindex" in body else []
    return [unquote(unescape(loc.decode(errors="replace")).removeprefix(site.base_url)) for loc in locs]


class _DocumentMissing(SitemapError):
    """The app answered 404."""
