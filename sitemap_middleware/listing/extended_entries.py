"""Extends entries by what is said of their images, videos, news and versions in other languages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import reduce
from itertools import islice
from typing import Final
from urllib.parse import unquote, urlsplit

from ..evidence.dates import timestamp_of
from ..evidence.images_and_versions import images_of, versions_of
from ..http.urls import absolute_url
from ..models import Page, Route, SitemapUrl
from ..options.table import Options
from ..protocol.extensions import NEWS_SECONDS, Extensions, News, Video, merge_extensions
from ..protocol.language_codes import X_DEFAULT, hreflang_fault
from ..util import WarnOnce
from .candidates import SiteSnapshot, decode_path
from .policy import EvaluationContext, ListingPolicy

NO_SOURCES: Final[Mapping[str, str]] = {}


def extended(
    url: SitemapUrl, snapshot: SiteSnapshot, by: Mapping[str, Extensions | None], route: Route, warn_once: WarnOnce
) -> tuple[SitemapUrl, Mapping[str, str]]:
    """An entry with what is said `by` each source, the first of which counts, and who says what."""
    said, base = reduce(merge_extensions, by.values()) or Extensions(), f"{snapshot.site.base_url}/"
    alternates = _alternates(url.loc, base, said.alternates or ())
    if said.alternates and not alternates:
        warn_once(
            f"alternates of {route.endpoint}",
            "%s has no alternates: they do not name the page itself; add its own language and URL",
            url.loc,
        )
    url = url._replace(
        images=tuple(dict.fromkeys(filter(None, (absolute_url(base, image) for image in said.images or ())))),
        videos=tuple(_videos(url.loc, base, said.videos or (), snapshot.now)),
        news=said.news if said.news is not None and _is_news(said.news, snapshot.now) else None,
        alternates=alternates,
    )
    sources = {
        name: next(source for source, given in by.items() if given and getattr(given, name) is not None)
        for name in Extensions._fields
        if getattr(url, name)
    }
    return url, sources


def shown_extensions(
    context: EvaluationContext,
    page: Page,
    options: Options,
    policy: ListingPolicy,
    listed_page: Callable[[str], Page | None],
) -> Extensions | None:
    """What the HTML of a page says, as far as the options ask for it; None if that is nothing.

    An image is left out if it is the site's, excluded, forbidden by robots.txt, or known to be refused. Of versions
    only pairs count of which each names the other; `listed_page` finds a page by its percent-encoded path if it is
    listed.
    """
    snapshot, common = context.snapshot, context.site_signals.signals.common_images
    site = snapshot.site
    paths = {image: image.partition("?")[0].removeprefix(site.root) for image in images_of(page) if options.images}
    known = snapshot.find_pages(paths.values()) if paths else {}

    def may_be_listed(image: str) -> bool:
        path, seen = decode_path(paths[image]), known.get(paths[image])
        table = snapshot.table
        route = table.find_route(site, path) or table.matching_route(site, path) or Route(path, "")
        is_refused = image in common or policy.exclusion(route, path) is not None or (seen and seen.status != 200)
        return not is_refused and snapshot.rules.allows(f"{site.scheme}://{site.host}{image}")

    allowed = filter(may_be_listed, paths)
    versions, own_path = versions_of(page) if options.alternates else [], site.root + page.path
    own = [(code, path) for code, path in versions if path == own_path]
    others = []
    for code, path in versions:
        if path != own_path and path.startswith(f"{site.root}/"):
            other = listed_page(path.removeprefix(site.root))
            back = [version for version in versions_of(other) if version[1] == own_path] if other is not None else []
            if back:
                others.append((code, path))
                own = own or back[:1]  # if a page does not name itself, another one says what language it has
    alternates = (*own, *others) if others else None
    found = Extensions(tuple(islice(allowed, options.images)) or None, alternates=alternates)
    return found if any(found) else None


def describe_extensions(url: SitemapUrl, sources: Mapping[str, str]) -> tuple[str, ...]:
    """What an entry says beyond the protocol, for people, and who says so."""
    texts = {
        "images": f"{len(url.images)}",
        "videos": ", ".join(video.title for video in url.videos),
        "news": url.news.title if url.news else "",
        "alternates": ", ".join(code for code, _ in url.alternates) or (url.version.code if url.version else ""),
    }
    return tuple(f"{name}: {texts[name]} ({source})" for name, source in sources.items())


def _videos(loc: str, base: str, videos: Iterable[Video], now: int) -> Iterator[Video]:
    """Those videos that may be listed: none has expired, or is played by the page itself."""
    for video in videos:
        given = (video.thumbnail_loc, video.content_loc, video.player_loc)
        thumbnail, content, player = (url and absolute_url(base, url) for url in given)
        expires = video.expiration_date
        has_expired = isinstance(expires, date) and timestamp_of(expires) <= now
        if thumbnail and (content or player) and loc not in (content, player) and not has_expired:
            yield replace(video, thumbnail_loc=thumbnail, content_loc=content, player_loc=player)


def _is_news(news: News, now: int) -> bool:
    assert isinstance(news.publication_date, date)  # it was checked
    return 0 <= now - int(timestamp_of(news.publication_date)) < NEWS_SECONDS


def _alternates(loc: str, base: str, given: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The versions of a page, itself among them; none if it is not, and its language is not known.

    Its language is then the first part of its path, if that is a code; else it is the page for all other languages.
    """
    urls = [(code, absolute_url(base, url)) for code, url in given]
    versions = [(code, loc if unquote(url) == unquote(loc) else url) for code, url in urls if url is not None]
    if all(url != loc for _, url in versions):
        used = {code.lower() for code, _ in versions}
        first = urlsplit(loc).path.split("/")[1].lower()
        free = [code for code in (first, X_DEFAULT) if code not in used and hreflang_fault(code) is None]
        if not versions or not free:
            return ()
        versions.append((free[0], loc))
    return tuple(versions)
