"""Finds the page that a line of a log is about, and its site. Paths are normalized as those of live requests are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote_to_bytes

from ..bounded_cache import BoundedCache
from ..models import Site
from ..urls import is_same_site_host, loc_of, normal_host, quote_path
from .log_formats_as_sql import LogFormat

_MAX_CACHED_TARGETS: Final = 20_000
_URL: Final = re.compile(r"(https?)://(?:[^/?#]*@)?([^/?#]*)(.*)", re.IGNORECASE | re.DOTALL)
_BACKSLASH: Final = re.compile(rb"\\(?:x([0-9A-Fa-f]{2})|(.))", re.DOTALL)
_CONTROL_ESCAPES: Final = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"b": b"\b", b"v": b"\v", b"f": b"\f"}
_ESCAPED_PERCENT: Final = re.compile(r"%25([0-9A-Fa-f]{2})")

Page = tuple[Site, str]
"""A site, and the decoded path of one of its pages, below the root path."""


class OtherHost(ValueError):
    """The request was for a host that is none of the sites'."""


class PageFinder:
    """Finds the pages that lines are about."""

    def __init__(self, sites: Sequence[Site], *, any_host: bool) -> None:
        """Use the sites whose pages count.

        Args:
            sites: of one host, or of several.
            any_host: whether the hosts in the log are ignored: all its lines are about the first site.
        """
        self._sites = sites
        self._any_host = any_host
        self._cache = BoundedCache[tuple[str, str, str], Page | ValueError](_MAX_CACHED_TARGETS)

    def find(self, log_format: LogFormat, host: str, target: str) -> Page:
        """The page of a requested host and target, which are as the log has them.

        Raises:
            OtherHost: it is of another site.
            ValueError: no URL leads to this path, or the log does not show it.
        """
        key = log_format.escapes, host, target
        found = self._cache.get(key)
        if found is None:
            try:
                found = self._find(log_format.escapes, host, target)
            except ValueError as error:
                found = error
            self._cache.put(key, found)
        if isinstance(found, ValueError):
            raise found
        return found

    def _find(self, escapes: str, host: str, target: str) -> Page:
        scheme = "http"
        if url := _URL.fullmatch(target):  # a request through a proxy, or a log that keeps whole URLs
            scheme, host, target = url[1].lower(), url[2], url[3] or "/"
        path = _decoded_path(target, escapes)
        for site in self._sites_of(host, scheme):
            root = unquote_to_bytes(site.root).decode()
            if f"{path}/".startswith(f"{root}/"):
                below = path[len(root) :] or "/"
                quoted = quote_path(below)
                if quoted is None or loc_of(site, quoted) is None:
                    raise ValueError("no loc can be written")
                return site, below
        raise OtherHost

    def _sites_of(self, host: str, scheme: str) -> list[Site]:
        """The sites of a host, those with the longest root path first."""
        if self._any_host or not host:
            return list(self._sites[:1]) if self._any_host or len(self._sites) == 1 else []
        normal = normal_host(host, scheme)
        named = [site for site in self._sites if normal is not None and is_same_site_host(normal, site.host)]
        return sorted(named, key=lambda site: len(site.root), reverse=True)


def _decoded_path(target: str, escapes: str) -> str:
    """The decoded path of a target. Raises `ValueError` if the target does not show it."""
    if escapes == "plus" and "+" in target:
        raise ValueError("a plus sign may stand for a space")
    if escapes == "percent":
        target = _ESCAPED_PERCENT.sub(r"%\1", target)
    raw = target.encode()
    if escapes == "backslash" and b"\\" in raw:
        raw = _BACKSLASH.sub(_unescaped, raw)
    path = unquote_to_bytes(raw.removesuffix(b"?")).decode()
    if not path.startswith("/") or b"#" in raw or b"?" in raw.removesuffix(b"?"):
        raise ValueError("it is no path")
    return path


def _unescaped(match: re.Match[bytes]) -> bytes:
    if match[1]:
        return bytes.fromhex(match[1].decode())
    return _CONTROL_ESCAPES.get(match[2], match[2])
