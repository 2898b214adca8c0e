"""Contrary answers: what a good page answered that may have to do with the visitor alone.

A redirect by language or device, a 403 for one User-Agent, another media type: one
such answer says nothing of the page. It is kept until a good answer follows, and
counts once it is confirmed:

- by ourselves: the answer to a request of our own counts at once, and never gets here;
- by another visitor, who got the same kind of answer a minute or more before or after;
- by time: the same kind of answer an hour or more later.

In each case no good answer may lie in between. Visitors are told apart by their
User-Agent; for redirects by their language, if they state one, since all visitors
of one language are redirected alike. The minute is there because one stranger can
send many User-Agents at once; it leaves the prober time to ask, and other visitors
time to get a good answer. A stranger who comes back after a minute with another
User-Agent can delist a page for as long as nobody else visits it, if `verify` is off.

What is kept is a set, so that the order in which answers come to be known does not
matter: of each kind, visitor and minute the latest answer.
"""

from __future__ import annotations

import re
from itertools import combinations
from typing import Final

from ..models import Page, UnconfirmedAnswer

MIN_SECONDS_BETWEEN_VISITORS: Final = 60
"""Seconds between the answers to two visitors that confirm each other."""

CONFIRMATION_SECONDS: Final = 60 * 60
"""Seconds after which the same kind of answer confirms the earlier one, whoever asked."""

MAX_ANSWERS: Final = 12
"""Answers kept of one page. If there are more, those in the middle are let go."""

_KEPT_EARLIEST: Final = 2
"""Of these, the earliest that are kept."""


_SIGN_IN_URL: Final = re.compile(
    r"""
    (?<![a-z])(?:log|sign)[-_]?(?:in|on|up)(?![a-z])
    | (?<![a-z])(?:auth|oauth2?|sso|oidc|saml2?|idp|cas|accounts?|sessions?|authenticat\w*|authoriz\w*|identity|register
        |registration|password|passwd|2fa|mfa|otp|captcha|denied|forbidden|paywall|subscribe)(?![a-z])
    | [?&](?:next|redirect\w*|return\w*|continue|goto|dest\w*|back\w*|url|from|service|target)=
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""In the target of a redirect: it sends a stranger away to sign in, or remembers where the visitor wanted to go."""


def denies_access(status: int, loc: str, target: str | None) -> bool:
    """Whether an answer keeps a stranger out: a refusal, or a redirect to a page for signing in.

    Args:
        status: of the answer.
        loc: the page that was asked for.
        target: the Location of the answer, if there is one.
    """
    if 300 <= status < 400:
        return not _words(target or "") <= _words(loc)
    return status in {401, 402, 403, 407, 511}


def _words(url: str) -> set[str]:
    return {found[0].lower() for found in _SIGN_IN_URL.finditer(url)}


def answer_kind(status: int) -> int:
    """The kind of an answer, by its cause: a media type (2), a redirect (3), a refusal (4), or 405."""
    return 405 if status == 405 else status // 100


def add_answer(contrary: tuple[UnconfirmedAnswer, ...], one: UnconfirmedAnswer) -> tuple[UnconfirmedAnswer, ...]:
    """With one more answer, in the order of time."""
    latest = {_answer_slot(other): other for other in contrary}
    latest[_answer_slot(one)] = max(one, latest.get(_answer_slot(one), one))
    kept = sorted(latest.values())
    return tuple(
        kept if len(kept) <= MAX_ANSWERS else kept[:_KEPT_EARLIEST] + kept[len(kept) - MAX_ANSWERS + _KEPT_EARLIEST :]
    )


def since(contrary: tuple[UnconfirmedAnswer, ...], at: int) -> tuple[UnconfirmedAnswer, ...]:
    """Those that are not earlier than the answer which counts: that one has settled the others."""
    return tuple(one for one in contrary if one.at >= at)


def confirmed_answer(contrary: tuple[UnconfirmedAnswer, ...]) -> UnconfirmedAnswer | None:
    """The latest answer that is confirmed by an earlier one; None if none is."""
    pairs = ((earlier, later) for earlier, later in combinations(contrary, 2) if _confirms(earlier, later))
    return max((later for _, later in pairs), default=None)


def is_unchanged(before: tuple[UnconfirmedAnswer, ...], now: tuple[UnconfirmedAnswer, ...]) -> bool:
    """Whether two sets say the same, but for the second in which an answer came."""
    return {_answer_slot(one) for one in before} == {_answer_slot(one) for one in now}


def _answer_slot(one: UnconfirmedAnswer) -> tuple[int, int, int]:
    return answer_kind(one.status), one.visitor, one.at // MIN_SECONDS_BETWEEN_VISITORS


def _confirms(earlier: UnconfirmedAnswer, later: UnconfirmedAnswer) -> bool:
    apart = later.at - earlier.at
    return answer_kind(earlier.status) == answer_kind(later.status) and (
        apart >= CONFIRMATION_SECONDS or (apart >= MIN_SECONDS_BETWEEN_VISITORS and earlier.visitor != later.visitor)
    )


def confirmed_contradiction(page: Page) -> UnconfirmedAnswer | None:
    """The confirmed answer that keeps a page out which was good before; None if there is none."""
    return None if page.doubtful or not page.contrary else confirmed_answer(page.contrary)
