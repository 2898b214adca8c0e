"""The rules of evidence: what all that was seen of a page allows us to say.

Pure functions; the time is always handed in, as POSIX seconds. `merge_if_changed` merges an observation into a page;
`verdict` tells whether the page is listed, and `lastmod` when it changed, each time a sitemap is built.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Final

from ..dates import CLOCK_SKEW_SECONDS, timestamp_of_w3c
from ..history import History, Run, add_sighting, is_unchanged_by, significant, without_future
from ..models import Page, UnconfirmedAnswer
from ..observations import HtmlFacts, Observation
from .confirmation import add_answer, confirmed_contradiction, is_unchanged, since
from .generated_dates import becomes_credible, is_credible
from .verdict import INDEXABLE_TYPES

_CONCLUSIVE_STATUSES: Final = frozenset({300, 301, 302, 303, 307, 308, 401, 402, 403, 404, 405, 410, 451})
"""Statuses but 2xx that say something of the page, whoever asks for it."""

_GONE_STATUSES: Final = frozenset({404, 410})
"""Statuses by which a page tells everyone that it is not there."""

REFRESH_SECONDS: Final = 60 * 60
"""Seconds for which an unchanged page's last sight need not be written again."""

_HtmlState = tuple[int, bool, str | None, str | None, str, int | None, str, History, History]
"""What is known of a page's HTML, in the order in which `Page` keeps it, from `read_at` to `statements`."""

_UNREAD_HTML: Final[_HtmlState] = (0, False, None, None, "", None, "", (), ())

_observation_fields: Final = itemgetter(slice(Observation._fields.index("at"), Observation._fields.index("reading")))
_page_fields: Final = itemgetter(slice(Page._fields.index("last_seen"), Page._fields.index("moments")))
"""What an observation says of its page, from when it was made on, and what a page keeps of it in the same order."""
_html_fields: Final = itemgetter(slice(Page._fields.index("read_at"), Page._fields.index("learned")))

_make: Final = tuple.__new__  # of a named tuple: in half the time that calling its class takes


def is_conclusive(status: int) -> bool:
    """Whether an answer of this status says something of the page whoever asks for it.

    The other 4xx (400, 406, 422 and their like) come of the one request, which any
    stranger can write so that it gets one: they count only where nothing better was
    ever seen, as of a route that lacks a query it needs.
    """
    return 200 <= status < 300 or status in _CONCLUSIVE_STATUSES


def merge(page: Page | None, seen: Observation) -> Page:
    """What is known of a page once this is known too, in whatever order it comes to be known.

    The latest evidence decides; of two of one second, the one that forbids more.
    Its HTML, which is not read each time, has a latest reading of its own.
    """
    if page is None:
        return _first_page(seen)
    at, modified, reading = seen.at, seen.modified, seen.reading
    first_seen, moments, html, contrary = min(page.first_seen, at), page.moments, _html_fields(page), page.contrary
    if modified is not None:
        moments = add_sighting(moments, modified, at)
    if reading is not None:
        html = _merge_html(html, reading, at)
    if doubtful := _needs_confirmation(seen):
        contrary = add_answer(contrary, UnconfirmedAnswer(at, seen.status, seen.visitor))
    if _is_decisive(seen, page, doubtful=doubtful):
        if not doubtful:
            contrary = since(contrary, at)
        said, rest = (seen.path, seen.route, first_seen, *_observation_fields(seen)), (seen.learned, doubtful, contrary)
    else:
        if contrary and not page.doubtful:
            contrary = since(contrary, page.last_seen)
        said, rest = (page.path, page.route, first_seen, *_page_fields(page)), (page.learned, page.doubtful, contrary)
    return _make(Page, (*said, moments, *html, *rest))


def _needs_confirmation(seen: Observation) -> bool:
    """Whether what was answered may have to do with the visitor alone.

    What a page tells everyone, 404, 410 and any HTML among it, counts at once. So
    does what our own requests are answered, and whatever keeps a stranger out of a
    learned page: no such page may be listed by mistake.
    """
    if seen.probed or seen.status in _GONE_STATUSES or not is_conclusive(seen.status):
        return False
    if seen.status == 200 and seen.media_type in INDEXABLE_TYPES:
        return False
    return not (seen.learned and seen.forbids)


def _is_good(page: Page) -> bool:
    """Whether the latest evidence is that of a page, whoever asks."""
    return page.status == 200 and not page.doubtful and page.media_type in INDEXABLE_TYPES


def needs_probe(before: Page | None, page: Page) -> bool:
    """Whether a page that was good has just answered something else that a request of our own can settle."""
    if before is None or not _is_good(before):
        return False
    if not _is_good(page):
        return page.learned and page.status not in _GONE_STATUSES
    return bool(page.contrary) and not is_unchanged(before.contrary, page.contrary)


def _first_page(seen: Observation) -> Page:
    """What is known of a page of which this is all: spelled out, for each page of a site that grows passes here."""
    (
        path, route, at, status, media_type, noindex, private, obstacle, expires, canonical, modified,
        reading, learned, *_,
    ) = seen  # fmt: skip
    moments: History = () if modified is None else (_make(Run, (modified, at, at)),)
    html = _UNREAD_HTML if reading is None else _merge_html(_UNREAD_HTML, reading, at)
    doubtful = _needs_confirmation(seen)
    contrary = (UnconfirmedAnswer(at, status, seen.visitor),) if doubtful else ()
    page = (
        path, route, at, at, status, media_type, noindex, private, obstacle, expires, canonical, modified, moments,
        *html, learned, doubtful, contrary,
    )  # fmt: skip
    return _make(Page, page)


def merge_if_changed(page: Page | None, seen: Observation) -> Page:
    """As `merge`, but the very same object where there is no news worth writing down."""
    if page is not None and not _is_ahead(page, seen) and _is_repeat(page, seen):
        return page
    return written(page, joined_now(page, seen))


def joined_now(page: Page | None, seen: Observation) -> Page:
    """As `merge`, but evidence that is later than now loses to this observation."""
    if page is not None and _is_ahead(page, seen):
        page = _without_future(page, seen)
    return merge(page, seen)


def written(page: Page | None, new: Page) -> Page:
    """The page that a store keeps: the new one if it has news, else the very same object as before.

    All observations of a batch are joined first: one that says nothing new may still outrank another of its second.
    """
    return new if page is None or _is_significant_change(page, new) else page


def _is_ahead(page: Page, seen: Observation) -> bool:
    """Whether a page has evidence from a clock that was ahead when it was made."""
    latest = max(page.last_seen, page.read_at, page.contrary[-1].at if page.contrary else 0)
    return 0 < seen.merged_at < latest - CLOCK_SKEW_SECONDS


def _without_future(page: Page, seen: Observation) -> Page:
    """A page without the evidence that is later than now: a clock was ahead when it was made.

    What such evidence said stays until something else is seen, but it loses to this observation.
    """
    now = seen.merged_at
    return page._replace(
        first_seen=min(page.first_seen, seen.at),
        last_seen=min(page.last_seen, seen.at - 1) if page.last_seen > now + CLOCK_SKEW_SECONDS else page.last_seen,
        moments=without_future(page.moments, now),
        read_at=min(page.read_at, seen.at - 1) if page.read_at > now + CLOCK_SKEW_SECONDS else page.read_at,
        contents=without_future(page.contents, now),
        statements=without_future(page.statements, now),
        contrary=tuple(one for one in page.contrary if one.at <= now),
    )


def _is_repeat(page: Page, seen: Observation) -> bool:
    """Whether this is no news, by a short look: it says what is known already. If in doubt, `_is_significant_change` decides."""  # noqa: E501
    at, modified, reading = seen.at, seen.modified, seen.reading
    return (
        page.first_seen <= at < page.last_seen + REFRESH_SECONDS
        and seen.status == page.status
        and modified == page.modified
        and (modified is None or _is_known_date(page.moments, modified, at))
        and seen.canonical == page.canonical
        and seen.media_type == page.media_type
        and seen.noindex == page.noindex
        and seen.private == page.private
        and seen.obstacle == page.obstacle
        and seen.expires == page.expires
        and seen.route == page.route
        and seen.learned == page.learned
        and not (page.doubtful and not _needs_confirmation(seen))
        and not (_is_good(page) and (page.contrary or _needs_confirmation(seen)))
        and (
            reading is None
            or (
                at < page.read_at + REFRESH_SECONDS
                and (reading.digest is None or is_unchanged_by(page.contents, reading.digest, at))
                and _html_state(reading) == _html_fields(page)[1:-2]
                and (not reading.stated or _is_known_date(page.statements, timestamp_of_w3c(reading.stated), at))
            )
        )
    )


def _is_known_date(dates: History, value: int, at: int) -> bool:
    """Whether a date, seen once more now, says nothing new of its page."""
    return is_unchanged_by(dates, value, at) and not becomes_credible(dates[-1], at)


def _is_significant_change(page: Page, new: Page) -> bool:
    """Whether something is to be written down: anything but that the page was seen, or read, a little later.

    That it was seen later is news if its Last-Modified, or the date that it states, becomes credible by it.
    A response is folded first, and its body, where it was sampled, after it. What
    comes late does not move these moments: it may show that two values were there
    at one time, and is all written down.
    """
    return (
        new.last_seen - page.last_seen >= REFRESH_SECONDS
        or new.read_at - page.read_at >= REFRESH_SECONDS
        or new.last_seen < page.last_seen
        or new.read_at < page.read_at
        or new.first_seen != page.first_seen
        or new.doubtful is not page.doubtful
        or _differ(page.contents, new.contents, late=new.read_at == page.read_at)
        or _differ(page.statements, new.statements, late=new.read_at == page.read_at)
        or _differ(page.moments, new.moments, late=new.last_seen == page.last_seen)
        or _rank(new) != _rank(page)
        or _has_new_contradiction(page, new)
        or _html_fields(new)[1:-2] != _html_fields(page)[1:-2]
        or _date_credibility(new) != _date_credibility(page)
    )


def _date_credibility(page: Page) -> tuple[bool, bool]:
    """Whether the Last-Modified of a page, and the date that it states, are dates rather than clocks."""
    stated = page.stated is not None and is_credible(page.statements, timestamp_of_w3c(page.stated))
    return page.modified is not None and is_credible(page.moments, page.modified), stated


def _has_new_contradiction(page: Page, new: Page) -> bool:
    """Whether answers that wait for confirmation are to be written down: while they may still delist the page."""
    if not _is_good(new) or (confirmed_contradiction(page) and confirmed_contradiction(new)):
        return False
    return not is_unchanged(page.contrary, new.contrary)


def _differ(before: History, history: History, *, late: bool) -> bool:
    return history != before if late else significant(history) != significant(before)


def _merge_html(html: _HtmlState, reading: HtmlFacts, at: int) -> _HtmlState:
    """What is known of a page's HTML with one more reading: the latest, and every content and stated date.

    A reading that did not reach the head counts only as long as there is no other.
    """
    read_at, contents, statements = html[0], html[-2], html[-1]
    if not reading.head:
        return html if read_at else (0, False, None, None, "", None, max(html[6], reading.unread), (), ())
    if reading.digest is not None:
        contents = add_sighting(contents, reading.digest, at)
    if reading.stated:
        statements = add_sighting(statements, timestamp_of_w3c(reading.stated), at)
    if at < read_at:
        return (*html[:-2], contents, statements)
    found = _html_state(reading)
    if at == read_at:
        found = max(html[1:-2], found, key=_html_rank)
    return (at, *found, contents, statements)


def _html_state(reading: HtmlFacts) -> tuple[bool, str | None, str | None, str, int | None, str]:
    """What a reading says but for its content and the history of its dates, as a page keeps it."""
    return (
        reading.noindex,
        reading.canonical or None,
        reading.stated or None,
        reading.obstacle,
        reading.expires,
        reading.unread,
    )


def _html_rank(facts: tuple[bool, str | None, str | None, str, int | None, str]) -> tuple[object, ...]:
    """The order of readings of one second: what forbids more, then what all workers order alike."""
    noindex, canonical, stated, obstacle, expires, unread = facts
    return noindex, obstacle, canonical or "", _expiry_rank(expires), stated or "", unread


def _expiry_rank(expires: int | None) -> tuple[bool, int]:
    """Greater for what expires sooner."""
    return expires is not None, -(expires or 0)


def _is_decisive(seen: Observation, page: Page, *, doubtful: bool) -> bool:
    """Whether an observation is later evidence, or of the same second and greater, than what decided until now."""
    if seen.status != page.status and (settled := is_conclusive(seen.status)) is not is_conclusive(page.status):
        return settled
    if doubtful is not page.doubtful:
        return page.doubtful
    if seen.at != page.last_seen:
        return seen.at > page.last_seen
    return _rank(seen) > _rank(page)


def _rank(evidence: Observation | Page) -> tuple[object, ...]:
    """The order of evidence of one second: what forbids more, then what all workers order alike."""
    return (
        evidence.status != 200,
        evidence.noindex,
        evidence.private,
        evidence.obstacle,
        evidence.canonical or "",
        _expiry_rank(evidence.expires),
        evidence.media_type not in INDEXABLE_TYPES,
        evidence.status,
        evidence.media_type,
        evidence.modified or 0,
        evidence.route,
        evidence.learned,
    )
