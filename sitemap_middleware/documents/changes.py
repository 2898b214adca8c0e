"""Changes: what a new rendering of a part shows that the one before did not.

Deployments and template changes do not change a lastmod, so they are not recorded. Neither are the first rendering of a
part, and differences that a changed setting or a lost store may have caused. A recorded change may be outdated: callers
check each URL by `may_be_told` before they publish it.
Pure functions; every time is passed in, as POSIX seconds by the store's clock.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import Final, Literal, NamedTuple

from ..evidence.dates import SECONDS_PER_DAY, w3c_from_timestamp
from ..evidence.observations import HTML_TYPES
from ..evidence.page_verdict import is_gone, page_verdict
from ..http.urls import with_entities
from ..listing.candidates import SiteSnapshot, decode_path
from ..listing.evaluated_urls import end_of, first_good_at
from ..listing.policy import ListingPolicy
from ..models import Page, Site
from .xml import Document, compressed

KEPT_SECONDS: Final = 30 * SECONDS_PER_DAY
"""How long a change is kept."""

MAX_CHANGES: Final = 10_000
"""Changes that are kept of a part: the latest. More at once are a new setting or an import, and tell of nothing."""

LEARNING_SECONDS: Final = 7 * SECONDS_PER_DAY
"""How long pages that nobody enumerates may come into a new part without being new: so may be the store."""

QUIET_SECONDS: Final = SECONDS_PER_DAY
"""How long nothing is new after more changes at once than are kept: they may come back in batches."""

MIN_SETTLE_SECONDS: Final = 10 * 60
"""Seconds for which a new lastmod must stay the same before the change counts, and until the part is rendered again. So
pages that change all the time are never announced, and a series of quick edits once."""

MAX_FEED_ENTRIES: Final = 100

ATOM_TYPE: Final = "application/atom+xml"

PageLookup = Callable[[Collection[str]], Mapping[str, Page | None]]
"""Of these locs, those that the settings and robots.txt let be listed, each with its page if that was observed."""

PublicLocs = Callable[[Site, Mapping[str, float | None], bool], Collection[str]]
"""Of these locs, those that everyone may hear of now, by robots.txt and the page as they were read after a time, if one
is given; and of those that are gone, if that is wanted. Raises `StoreError`."""


class Change(NamedTuple):
    """What happened to one URL last."""

    loc: str
    kind: Literal["listed", "changed", "gone", "left"]
    """New in the sitemap; with a later lastmod; known to be deleted or noindex; or no longer listed, nobody knows why:
    if it comes back, that is no news."""
    at: int
    """When it was found."""
    lastmod: str | None = None

    @property
    def happened_by(self) -> int:
        """The time by which the change had happened, in POSIX seconds: a later request gets the changed page."""
        return min(self.at, end_of(self.lastmod)) if self.kind == "changed" and self.lastmod else self.at


_ORDER: Final = attrgetter("at", "loc")


class KnownChanges(NamedTuple):
    """The changes of a part."""

    since: int
    """When the part was first rendered."""
    by_loc: Mapping[str, Change]
    """Those that are listed or changed are entries of the part as it is."""
    quiet_until: int = 0
    """Until when nothing is new."""

    def encoded(self) -> bytes:
        """The stored form."""
        return json.dumps([self.since, [*self.by_loc.values()], self.quiet_until]).encode()

    def without_entries(self) -> KnownChanges:
        """What is left if it is not known which entries the part had before."""
        absent = {loc: change for loc, change in self.by_loc.items() if change.kind in ("gone", "left")}
        return self._replace(by_loc=absent)


def decoded(record: bytes | None, now: int) -> KnownChanges:
    """The changes in a record; none since now if there is no record, or it cannot be read."""
    with suppress(ValueError, TypeError):
        since, rows, quiet_until = json.loads(record or b"")
        changes = [Change(str(loc), kind, int(at), lastmod) for loc, kind, at, lastmod in rows]
        return KnownChanges(int(since), {change.loc: change for change in changes}, int(quiet_until))
    return KnownChanges(now, {})


def page_lookup(policy: ListingPolicy, snapshot: SiteSnapshot) -> PageLookup:
    """Looks up what is known of locs of a site."""
    site = snapshot.site

    def may_be_listed(loc: str, path: str) -> bool:
        route = snapshot.table.find_route(site, decode_path(path))
        return route is not None and not policy.exclusion(route, decode_path(path)) and snapshot.rules.allows(loc)

    def look_up(locs: Collection[str]) -> Mapping[str, Page | None]:
        paths = {loc: loc.removeprefix(site.base_url) for loc in locs}
        allowed = {loc: path for loc, path in paths.items() if may_be_listed(loc, path)}
        pages = snapshot.find_pages([*allowed.values()]) if allowed else {}
        return {loc: pages.get(path) for loc, path in allowed.items()}

    return look_up


def compared(
    known: KnownChanges,
    earlier: Mapping[str, str | None],
    later: Mapping[str, str | None],
    look_up: PageLookup,
    *,
    rendered_at: float,
    now: int,
    is_enumerated: bool,
    has_new_settings: bool,
) -> KnownChanges:
    """The changes of a part, given its locs and their lastmods as they were before and as they are now.

    Args:
        known: the changes so far.
        earlier: the entries of the rendering before, without documents that stayed the same.
        later: those of this one.
        look_up: looks up pages.
        rendered_at: when the part was rendered before.
        now: when it is rendered now.
        is_enumerated: whether the app names its pages, so that it had all from the beginning.
        has_new_settings: whether the settings are others than before, so that nothing is new or changed.
    """
    changes = {loc: change for loc, change in known.by_loc.items() if now - change.at < KEPT_SECONDS}
    new, vanished = later.keys() - earlier.keys(), earlier.keys() - later.keys()
    moved = {loc for loc in later.keys() & earlier.keys() if _is_later(later[loc], earlier[loc], rendered_at)}
    quiet_until = known.quiet_until if known.quiet_until - now <= QUIET_SECONDS else 0
    if len(new) + len(vanished) + len(moved) > MAX_CHANGES:
        quiet_until = now + QUIET_SECONDS
        new &= changes.keys()
        vanished = (vanished & changes.keys()) | {*sorted(vanished)[:MAX_CHANGES]}
        moved = set()
    if has_new_settings:
        moved = set()
    absent = {loc: change for loc, change in changes.items() if change.kind in ("gone", "left") and loc not in new}
    pages = look_up([*new, *vanished, *absent]) if new or vanished or absent else {}
    for loc in vanished | absent.keys():
        before, page = absent.get(loc), pages.get(loc)
        if page is not None and is_gone(page):
            kind: Literal["gone", "left"] = "gone"
        elif before is not None and before.kind == "gone" and loc in pages and not is_good(page):
            kind = "gone"  # the store keeps the page for a day only
        else:
            kind = "left"
        if before is None or before.kind != kind:
            changes[loc] = Change(loc, kind, now)
    for loc in new:
        before, page = changes.pop(loc, None), pages.get(loc)
        is_old = page is not None and first_good_at(page) < rendered_at - SECONDS_PER_DAY
        if not is_enumerated:
            is_old = is_old or now - known.since < LEARNING_SECONDS or _is_before(later[loc], rendered_at)
        if (before.kind == "gone" if before else not is_old) and not (has_new_settings or now < quiet_until):
            changes[loc] = Change(loc, "listed", now, later[loc])
    for loc in moved:
        if loc not in changes or changes[loc].lastmod != later[loc]:
            changes[loc] = Change(loc, "changed", now, later[loc])
    latest = sorted(changes.values(), key=_ORDER)[-MAX_CHANGES:]
    return KnownChanges(known.since, {change.loc: change for change in latest}, quiet_until)


def is_good(page: Page | None) -> bool:
    """Whether a page that was gone is known not to be."""
    return page is not None and not is_gone(page)


def _is_later(lastmod: str | None, before: str | None, rendered_at: float) -> bool:
    """Whether a date is later than the one before, and than the rendering before, but for a day: old dates come to be
    known, and are corrected, without a change of the page.
    """
    if lastmod is None or lastmod == before or _is_before(lastmod, rendered_at):
        return False
    return before is None or end_of(lastmod) > end_of(before)


def _is_before(lastmod: str | None, rendered_at: float) -> bool:
    return lastmod is not None and end_of(lastmod) < rendered_at - SECONDS_PER_DAY


def may_be_told(page: Page | None, media_types: Collection[str], now: int, *, since: float | None, gone: bool) -> bool:
    """Whether everyone may hear of a page that the settings and robots.txt let be listed, as it is now.

    Only what was seen after `since` counts, if that is given; else a page of which nothing is known may be told. If it
    is gone, that is as `gone` says.
    """
    if page is None:
        return since is None
    if since is not None and page.last_seen <= since:
        return False
    if is_gone(page):  # a path that the app only names may never have been a page
        return gone and (since is None or bool(page.content_history or page.last_modified_history))
    is_unread = page.media_type in HTML_TYPES and not (page.read_at or page.unread_reason)  # it may say noindex
    return page_verdict(page, media_types, now).listed and not (page.unconfirmed_at or is_unread)


def settled(parts: Iterable[KnownChanges], max_age: int, now: int) -> list[Change]:
    """The changes of all parts that count now, the latest of each URL, the oldest first."""
    changes = sorted((change for part in parts for change in part.by_loc.values()), key=_ORDER)
    pause = max(MIN_SETTLE_SECONDS, 2 * max_age)
    latest = {change.loc: change for change in changes if change.kind != "left" and now - change.at < KEPT_SECONDS}
    return [change for change in latest.values() if now - change.at >= (pause if change.kind == "changed" else 0)]


# The feed of the latest changes, in Atom (RFC 4287). Search engines accept feeds as sitemaps of recent changes.


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
