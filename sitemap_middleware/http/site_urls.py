"""URLs of a site: its base URL, the locs of its pages, and which URLs in a page are its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urljoin, urlsplit

from ..exceptions import OptionError
from ..models import Site
from .urls import (
    CONTROL_CHARACTERS,
    DEFAULT_PORTS,
    LOC_LENGTH_REASON,
    SAFE_PATH_CHARS,
    UNREACHABLE_REASON,
    absolute_url,
    ascii_host,
    has_loc_length,
    is_loopback,
    is_same_site_host,
    normal_host,
    normalize_path,
    quote_path,
    resolved_url,
)

_CAMPAIGN_PARAMETER: Final = re.compile(r"utm_|(?:gclid|fbclid|msclkid|dclid)$")


def parse_base_url(base_url: object, place: str) -> Site:
    """Parse a base_url. An internationalised host is converted to ASCII (RFC 5891); a path becomes the root path."""
    fix = 'give scheme and host alone, such as "https://example.com"'
    if not isinstance(base_url, str):
        raise OptionError(f"{place}={base_url!r} is not a string; {fix}")
    shown = f"***@{base_url.rpartition('@')[2]}" if "@" in base_url else base_url

    def refuse(reason: str) -> OptionError:
        return OptionError(f"{place}={shown!r} {reason}; {fix}")

    if CONTROL_CHARACTERS.search(base_url) or base_url != base_url.strip() or "\\" in base_url:
        raise refuse("contains a character that is not allowed in URLs")
    try:
        parts = urlsplit(base_url)
        netloc, host, _ = parts.netloc, parts.hostname, parts.port
    except ValueError as error:
        raise refuse(f"is not a URL ({error})") from None
    if parts.scheme not in DEFAULT_PORTS:
        raise refuse("does not begin with http:// or https://")
    if "@" in netloc:
        raise refuse("contains a user name or password, which the sitemap would publish")
    if "?" in base_url or "#" in base_url:
        raise refuse("contains a query or a fragment")
    if not host:
        raise refuse("has no host")
    normal = normal_host(ascii_host(netloc), parts.scheme)
    if normal is None:
        raise refuse(f"has an invalid host, {netloc!r}")
    return Site(parts.scheme, normal, quote(parts.path.rstrip("/"), safe=SAFE_PATH_CHARS + "%"), is_loopback(normal))


def loc_of(site: Site, path: str) -> str | None:
    """The loc of a percent-encoded path; None if it would be too long, as it is written in XML, or too short."""
    loc = site.base_url + path
    return loc if has_loc_length(loc) else None


def resolve_loc(site: Site, given: str) -> tuple[str, str]:
    """The path below the site's root, and the loc, of a page that the developer names.

    It is named by its URL, or by its path as in a link: from the root of the host, percent-encoded or not. The path
    returned is percent-encoded; it is the loc itself if the page is not below the site's root.

    Raises:
        ValueError: it is not a page of this host.
    """
    origin = f"{site.scheme}://{site.host}"
    fix = f'give a path such as "/about", or a URL of {origin}'
    if not given.startswith(("/", "http://", "https://")):
        raise ValueError(f"{given!r} is neither a path nor a URL; {fix}")
    if CONTROL_CHARACTERS.search(given):
        raise ValueError(f"{given!r} contains a character that is not allowed in URLs; {fix}")
    try:
        names_host = given.startswith("/") or bool(urlsplit(given).netloc)
        parts = urlsplit(urljoin(f"{origin}/", given))
        host = normal_host(ascii_host(parts.netloc), parts.scheme)
    except ValueError as error:
        raise ValueError(f"{given!r} is not a URL ({error}); {fix}") from None
    if not names_host:
        raise ValueError(f"{given!r} is a URL without a host; {fix}")
    if host != site.host or parts.scheme != site.scheme:
        raise ValueError(f"{given!r} is on another host; a sitemap lists pages of its own host only, so {fix}")
    path = quote_path(unquote(parts.path or "/"))
    if path is None or parts.query:
        raise ValueError(f"{given!r}: {'it has a query string' if parts.query else UNREACHABLE_REASON}")
    loc = f"{origin}{path}"
    if not has_loc_length(loc):
        raise ValueError(f"{given!r:.40}: {LOC_LENGTH_REASON}")
    if not f"{path}/".startswith(f"{site.root}/"):
        return loc, loc
    return path.removeprefix(site.root) or "/", loc


def is_same_page(site: Site, loc: str, reference: str, request_host: str = "") -> bool:
    """Whether a URL in a page, such as its canonical link, is the URL of the page itself.

    The path must be equal, and the host that of the site or of the request. Ignored
    are scheme, port, a leading `www.`, differences of percent-encoding, fragments, campaign
    parameters and a missing root path. A trailing slash and any other query count. On a
    development machine hosts are not compared, since pages name their public host.
    """
    resolved = resolved_url(loc, reference)
    if resolved is None:
        return False
    other, host = resolved
    path = normalize_path(urlsplit(loc).path)
    names = (name for name, _ in parse_qsl(other.query, keep_blank_values=True))
    if normalize_path(other.path) not in (path, path.removeprefix(site.root) or "/") or not all(
        map(_CAMPAIGN_PARAMETER.match, names)
    ):
        return False
    if site.loopback or is_same_site_host(host, site.host):
        return True
    requested = normal_host(request_host, other.scheme)
    return requested is not None and is_same_site_host(host, requested)


def own_reference(site: Site, loc: str, reference: str) -> str | None:
    """The encoded path and query of a URL in the page at `loc`; None if its host or port is another.

    Behind a proxy, apps often write http in the URLs of a site that has https.
    """
    _, _, rest = (absolute_url(loc, reference) or "").partition("://")
    return rest.removeprefix(site.host) if rest.startswith(f"{site.host}/") else None


def redirect_target(site: Site, path: str, target: str) -> str | None:
    """The decoded path of a redirect's target; None if it leaves the site or has a query."""
    resolved = resolved_url(f"{site.base_url}{quote(path)}", target)
    if resolved is None or resolved[0].query or not is_same_site_host(resolved[1], site.host):
        return None
    return unquote(resolved[0].path) or "/"


def own_paths(site: Site, loc: str, links: Iterable[str], request_host: str) -> Iterator[str]:
    """The percent-encoded paths of those links in the page at `loc` that stay on its site."""
    for link in links:
        if link[:1] == "/" != link[1:2]:
            yield link.partition("#")[0].partition("?")[0]
        elif resolved := resolved_url(loc, link):
            host = resolved[1]
            if is_same_site_host(host, site.host) or host == normal_host(request_host, resolved[0].scheme):
                yield resolved[0].path
