"""Answers that need confirmation before they delist a good page.

A redirect by language or device, a 403 for one User-Agent, another media type: one such answer may concern one visitor
only. The middleware asks the page itself, and that answer counts at once. Where it cannot ask, with `verify=False` or
on one thread, the page stays until such an answer comes again, at least a minute later, with no good one in between.

Of each kind, the first answer is kept. A page that is not good has nothing to protect: there the latest answer decides.
"""

from __future__ import annotations

import re
from typing import Final

from .observations import Observation

_CONCLUSIVE_STATUSES: Final = frozenset({300, 301, 302, 303, 307, 308, 401, 402, 403, 404, 405, 410, 451})
"""Statuses other than 2xx that describe the page rather than the request."""

_GONE_STATUSES: Final = frozenset({404, 410})
"""Statuses that tell every visitor that the page does not exist."""

CONFIRMATION_SECONDS: Final = 60
"""Time after which the same kind of answer confirms an earlier one."""

_SIGN_IN_URL: Final = re.compile(
    r"""
    (?<![a-z])(?:log|sign)[-_]?(?:in|on|up)(?![a-z])
    | (?<![a-z])(?:auth|oauth2?|sso|oidc|saml2?|idp|cas|accounts?|sessions?|authenticat\w*|authoriz\w*|identity|register
        |registration|password|passwd|2fa|mfa|otp|captcha|denied|forbidden|paywall|subscribe)(?![a-z])
    | [?&](?:next|redirect\w*|return\w*|continue|goto|dest\w*|back\w*|url|from|service|target)=
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Part of a redirect's target that shows a login page, or that carries the page to return to after the login."""


def is_conclusive(status: int) -> bool:
    """Whether a status describes the page whatever the request was.

    Any request can be written so that it gets another 4xx (400, 406, 422 ...). These count only while nothing better
    is known, as for a route that needs a query.
    """
    return 200 <= status < 300 or status in _CONCLUSIVE_STATUSES


def needs_confirmation(observation: Observation) -> bool:
    """Whether an answer may concern this visitor only, such as a redirect by language or a 403 for one User-Agent.

    404, 410 and any HTML are the same for everyone, and count at once if the request was usual. So does the answer to a
    probe, which has no language, device or account, and a learned page that denies access: it may be private.
    """
    if observation.is_probe or not is_conclusive(observation.status):
        return False
    if observation.is_unusual and not may_be_listed(observation):
        return not (observation.learned and observation.denies_access)
    if observation.status in _GONE_STATUSES:
        return False
    if observation.status == 200 and observation.media_type in observation.listed_types:
        return False
    return not (observation.learned and observation.denies_access)


def may_be_listed(observation: Observation) -> bool:
    """Whether an answer, as far as it was read, lets its page be listed."""
    html = observation.html
    return (
        observation.status == 200
        and observation.media_type in observation.listed_types
        and not observation.refusal
        and observation.expires_at is None
        and (html is None or not (html.refusal or html.expires_at is not None))
    )


def is_refused_by_html(observation: Observation) -> bool:
    """Whether an answer does not let its page be listed, and nothing but its HTML says so."""
    return not may_be_listed(observation) and may_be_listed(observation._replace(html=None))


def denies_access(status: int, loc: str, target: str | None) -> bool:
    """Whether an answer keeps anonymous visitors out: a refusal, or a redirect to a login page.

    Args:
        status: of the answer.
        loc: the URL of the requested page. Words such as "account" in it do not count: `/account` may redirect to
            `/account/`.
        target: the answer's Location, if any.
    """
    if 300 <= status < 400:
        return not _sign_in_words(target or "") <= _sign_in_words(loc)
    return status in {401, 402, 403, 407, 511}


def _sign_in_words(url: str) -> set[str]:
    return {match[0].lower() for match in _SIGN_IN_URL.finditer(url)}


def answer_kind(status: int) -> int:
    """The kind of an answer, by its cause: another media type (2), a redirect (3), a refusal (4), or 405."""
    return 405 if status == 405 else status // 100
