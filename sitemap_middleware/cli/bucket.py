"""Puts the sitemap into an object store, so that a reader at any moment finds all documents that the index names.

The documents of an index are put under names that are never used again, with a digest of the content, and the index
last. A document that no index names any more is kept for a day: readers and caches may have the index before.
"""

from __future__ import annotations

import gzip
import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from html import unescape
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

import obstore
from obstore.exceptions import BaseError
from obstore.store import from_url

from ..documents.xml import etag_of
from ..http.urls import quote_path, with_entities
from .sitemap_files import LOC
from .terminal import CommandError

KEEP_SECONDS: Final = 24 * 60 * 60
"""Seconds for which a document is kept that no index names any more."""

SCHEMES: Final = {
    "s3": "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION (elsewhere than at AWS also AWS_ENDPOINT_URL)",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_NAME, and AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_KEY",
    "file": "",
}
"""The environment variables that name the account, by the scheme of the URL."""

_RETRY: Final[Any] = {"max_retries": 4, "retry_timeout": timedelta(seconds=30)}
"""Without credentials, the drivers ask an address that only the cloud's own machines reach: that must end soon."""


class ObjectChange(NamedTuple):
    """An object that was put or deleted."""

    action: str
    name: str
    size: int
    """Bytes that were put."""


class Bucket:
    """The place that a URL names: a bucket, or a folder of it."""

    def __init__(self, url: str) -> None:
        """Raises `CommandError` if the URL names no such place."""
        parts = urlsplit(url)
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise CommandError("--to takes a URL without credentials and parameters: set environment variables instead")
        if parts.scheme not in SCHEMES or bool(parts.netloc) == (parts.scheme == "file"):
            raise CommandError(f"--to={url!r} is not s3://BUCKET/FOLDER, gs://…, az://CONTAINER/… or file:///FOLDER")
        self._url = url.rstrip("/")
        self._scheme = parts.scheme
        local = {"mkdir": True} if parts.scheme == "file" else {"retry_config": _RETRY}
        with self._reporting("opened"):
            self._store = from_url(url, **local)

    def names(self, folder: str) -> set[str]:
        """The names of the objects in a folder."""
        with self._reporting("listed", folder):
            return {item["path"] for item in obstore.list_with_delimiter(self._store, folder or None)["objects"]}

    def get(self, name: str) -> bytes:
        """The content of an object; empty if there is none."""
        with self._reporting("read", name), suppress(FileNotFoundError):
            return bytes(obstore.get(self._store, name).bytes())
        return b""

    def put(self, name: str, content: bytes, media_type: str, cache_control: str) -> None:
        """Put an object; readers see the earlier one, or all of this."""
        attributes = {"Content-Type": media_type, "Cache-Control": cache_control}
        with self._reporting("put", name):
            obstore.put(self._store, name, content, attributes=None if self._scheme == "file" else attributes)

    def delete(self, names: list[str]) -> None:
        """Delete objects; it is no error if one is missing."""
        with self._reporting("deleted", ", ".join(names)), suppress(FileNotFoundError):
            obstore.delete(self._store, names)

    @contextmanager
    def _reporting(self, action: str, name: str = "") -> Iterator[None]:
        """Raise what the driver raises as `CommandError`, which names the object and how to mend it."""
        try:
            yield
        except (BaseError, OSError, ValueError) as error:
            text = str(error)
            reason = text.partition("\n")[0][:400]
            if "404 Not Found" in text:
                reason = "the bucket does not exist: create it, or correct the URL"
            elif re.search(r"169\.254|[Tt]oken|[Cc]redential|Account must|40[13] ", reason):
                needed = f"{SCHEMES[self._scheme]} must name an account that may list, get, put and delete objects"
                reason = f"{needed} ({reason})"
            raise CommandError(f"{self._url}/{name} cannot be {action}: {reason}") from error


def publish(
    documents: Mapping[str, bytes],
    bucket: Bucket,
    *,
    site_url: str,
    public_url: str,
    now: int,
    max_age: int,
) -> list[ObjectChange]:
    """Put the documents of a sitemap, gzipped, by their decoded paths, the sitemap itself last; return the changes.

    The index names documents below `site_url`; readers find the bucket at `public_url`, and may cache the sitemap
    itself for `max_age` seconds.

    Raises `CommandError`. Readers then find the earlier sitemap, with all its documents.
    """
    *parts, root = (path.lstrip("/") for path in documents)
    stem = root.removesuffix(".xml")
    own_name = re.compile(rf"{re.escape(stem)}\.[^/.]+\.[0-9a-f]{{16}}-[0-9]+\.xml\.gz")
    existing = {name for name in bucket.names(posixpath.dirname(root)) if own_name.fullmatch(name)}
    before = bucket.get(root)
    named = {posixpath.basename(unquote(unescape(loc.decode(errors="replace")))) for loc in LOC.findall(before)}
    live = {name for name in existing if posixpath.basename(name) in named}

    changes: list[ObjectChange] = []

    def put(name: str, content: bytes, media_type: str, cache_control: str) -> None:
        bucket.put(name, content, media_type, cache_control)
        changes.append(ObjectChange("put", name, len(content)))

    names: dict[str, str] = {}
    for part in parts:
        gzipped = documents[f"/{part}"]
        own = part.removesuffix(".xml").removeprefix(f"{stem}-").replace(".", "_")
        immutable = f"{stem}.{own}.{etag_of(gzip.decompress(gzipped))[:16]}-"
        # Only what the index names now is used again: another run may be about to delete what it does not name.
        name = next((name for name in live if name.startswith(immutable)), None)
        if name is None:
            name = f"{immutable}{now}.xml.gz"
            put(name, gzipped, "application/gzip", "public, max-age=31536000, immutable")
        names[part] = name

    record = f"{stem}-unused.json"
    recorded = bucket.get(record)
    since: dict[str, int] = {}
    with suppress(ValueError, TypeError):  # what cannot be read is unused from now on
        since = {name: int(at) for name, at in dict(json.loads(recorded)).items()}
    since |= dict.fromkeys(live, now)
    unused = {name: min(now, since.get(name, now)) for name in sorted(existing.difference(names.values()))}
    expired = [name for name, at in unused.items() if at <= now - KEEP_SECONDS]
    kept = json.dumps({name: at for name, at in unused.items() if name not in expired}).encode()
    if kept != (recorded or b"{}"):  # before the index: a run that is killed leaves no document that goes too soon
        put(record, kept, "application/json", "no-store")

    sitemap = gzip.decompress(documents[f"/{root}"])
    for part, name in names.items():
        sitemap = sitemap.replace(_loc(site_url, part), _loc(public_url, name))
    if sitemap != before:
        put(root, sitemap, "application/xml", f"public, max-age={max_age}")
    if expired:
        bucket.delete(expired)
    return [*changes, *(ObjectChange("deleted", name, 0) for name in expired)]


def _loc(url: str, name: str) -> bytes:
    return b"<loc>%b</loc>" % with_entities(f"{url}{quote_path(f'/{name}')}").encode()
