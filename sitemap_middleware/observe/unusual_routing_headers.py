"""Decides what the answers to requests with unusual routing headers, or an unusual Host, prove.

A proxy states by headers such as X-Forwarded-Prefix or X-Original-URL where a request
came from, and an app, or a ProxyFix inside this middleware, may believe them. So a
stranger who sends one of them can be answered 404 for a page that exists. A foreign
Host can have the same effect, even one that adds `www.` or a port to the site's own,
and a proxy may rewrite Host as well. Therefore:

- A header is usual if nine of ten answers with a page went to requests that carried
  it, and this value is the one of at least half of them. If no value is that frequent,
  every value is usual.
- So is a name of the site's own host, such as one with `www.`, under which the app has
  answered with a page.
- With usual headers, all answers count. A proxy sends its headers with every request.
- With unusual ones, an answer that would delist a page needs confirmation, and new
  content does not count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Final
from urllib.parse import unquote, urlsplit

from ..bounded_cache import BoundedCache
from ..evidence.delisting_confirmation import may_be_listed
from ..evidence.observations import Observation
from ..evidence.page_verdict import is_listable
from ..http.captured_response import CapturedResponse
from ..http.header_rules import HOST_HEADERS
from ..models import Page, StoreKey

MAX_SITES: Final = 128
MAX_COUNTED_ANSWERS: Final = 1000
"""Answers after which all counts are halved, so that the later ones count more."""

MIN_USUAL_SHARE: Final = 0.9
"""Share of the answers whose requests must carry a header for it to be usual. A proxy sends it with practically all."""

MAX_HEADERS: Final = 16
"""Headers of one request that are counted."""

MAX_VALUE_CHARS: Final = 200

HOST: Final = "host"
"""The name under which a Host is counted that is not literally the site's."""

_UNCOUNTED_PARAMETER: Final = re.compile(r"(?:for|by)\s*=|$")
"""Parameters of Forwarded that differ between visitors."""

_PATH_NAME: Final = re.compile(r"(?:ur[il]|path|prefix|script-name|root|info)$")
"""Headers by which an app may answer with another page."""

_URL_NAME: Final = re.compile(r"ur[il]$|path$")

_Field = tuple[str, str]


class UsualHeaders:
    """Counts the routing headers of the answers that were pages."""

    def __init__(self) -> None:
        self._counts = BoundedCache[StoreKey, Counter[str | _Field]](MAX_SITES)
        """Answers by header, and by header and value, for each site; the name "" counts all of them."""
        self._last_paths = BoundedCache[StoreKey, str](MAX_SITES)
        """The page of the last counted answer."""

    def record(self, response: CapturedResponse) -> None:
        """Count the headers of a request that was answered with a page.

        Of several requests for one page in a row, only the first counts: repeating one does not make a header usual.
        """
        site = response.site.store_key
        if self._last_paths.get(site) == response.path:
            return
        self._last_paths.put(site, response.path)
        counts = self._counts.get(site) or Counter()
        self._counts.put(site, counts)
        fields = _normal_fields(response)
        counts.update(["", *{name for name, _ in fields}, *fields])
        if counts[""] >= MAX_COUNTED_ANSWERS:
            for key in list(counts):
                counts[key] //= 2
                if not counts[key]:
                    del counts[key]

    def has_counted(self, site: StoreKey) -> bool:
        """Whether any answer of a site was counted."""
        return self._counts.get(site) is not None

    def unusual_names(self, response: CapturedResponse) -> list[str]:
        """The names of the routing headers of a request that are unusual."""
        counts = self._counts.get(response.site.store_key) or Counter()
        fields = _normal_fields(response)
        if not response.is_foreign_host:  # the app serves the site under this name of its host, if it served one page
            fields = [field for field in fields if field[0] != HOST or not counts[field]]
        return [field[0] for field in fields if not _is_usual(counts, field)]


def _is_usual(counts: Counter[str | _Field], field: _Field) -> bool:
    name, _ = field
    if counts[name] <= MIN_USUAL_SHARE * counts[""]:
        return False
    half = counts[""] / 2
    values = (count for key, count in counts.items() if isinstance(key, tuple) and key[0] == name)
    return counts[field] > half or max(values, default=0) <= half


def _normal_fields(response: CapturedResponse) -> list[_Field]:
    """The routing headers and another Host, without what differs between requests although the proxy is the same.

    The host that a header names is left out if it is the site's or the Host.
    """
    _, host = _as_text((HOST, response.host))
    known_hosts = {response.site.host, host}
    default_port = ":80" if response.site.scheme == "http" else ":443"
    fields = {
        (name, _normal_value(name, value, response.path, known_hosts))
        for name, value in map(_as_text, response.routing_headers)
        if name not in HOST_HEADERS or value.lower().removesuffix(default_port) not in known_hosts
    }
    if response.has_other_host:
        fields.add((HOST, host[:MAX_VALUE_CHARS]))
    return sorted(field for field in fields if field != ("forwarded", ""))[:MAX_HEADERS]


def _as_text(field: tuple[str | bytes, str | bytes]) -> _Field:
    """Name and value of a header of either protocol, the name in lower case."""
    name, value = (text.decode("latin-1") if isinstance(text, bytes) else text for text in field)
    return name.removeprefix("HTTP_").replace("_", "-").lower(), value.strip()


def _normal_value(name: str, value: str, path: str, known_hosts: AbstractSet[str]) -> str:
    if name == "forwarded":
        uncounted = {parameter for host in known_hosts for parameter in (f"host={host}", f'host="{host}"')}
        parts = (part.strip().lower() for part in re.split("[;,]", value))
        value = ";".join(
            sorted({part for part in parts if part not in uncounted and not _UNCOUNTED_PARAMETER.match(part)})
        )
    elif _URL_NAME.search(name):
        # A proxy repeats the requested path, perhaps below a prefix.
        stated = re.split("[?#]", value)[0] if value.startswith("/") else _path_of(value)
        stated = unquote(stated)
        if stated.endswith(path):
            value = f"{stated.removesuffix(path)}(path)"
    return value[:MAX_VALUE_CHARS]


def _path_of(url: str) -> str:
    try:
        return urlsplit(url).path
    except ValueError:
        return url


def doubtful_evidence(observation: Observation, page: Page | None, names: Iterable[str]) -> Observation | None:
    """What the answer to a request with unusual headers proves of a page; None if nothing.

    Args:
        observation: what the answer says.
        page: what is known about its page.
        names: of the unusual headers.
    """
    if page is None or page.media_type not in observation.listed_types or not is_listable(page):
        may_be_another_page = any(map(_PATH_NAME.search, names))
        return None if may_be_another_page or not may_be_listed(observation) else observation
    html = observation.html
    if html is not None:
        if not may_be_listed(observation):
            html = None
        elif not any(run.value == html.digest for run in page.content_history):
            html = html._replace(digest=None, stated_date=None)
    return observation._replace(html=html, is_unusual=True)
