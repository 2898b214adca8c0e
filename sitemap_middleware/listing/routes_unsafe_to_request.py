"""Recognises, by the names of path and view, routes that are unsafe to request or are not pages.

Four kinds of routes are neither requested nor listed before a visit: actions, which may change something; APIs,
health checks and the like, which are for machines; errors and the ends of flows; and paths that are internal by
convention. The position of a word
matters: `/cache/clear` is an action, `/clear-skies` a page.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import Final

from .action_verbs import NESTED_ACTIONS, is_action, is_action_pair, unspaced_action, without_diacritics

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
"""The words of a name in snake_case, kebab-case or camelCase."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_STRONG_ACTIONS: Final = _words(
    "ack acknowledge cleanup deactivate delete demote destroy disconnect dismiss erase gc impersonate increment "
    "invalidate kill killall logoff logout migrate purge prune reboot reindex reload remove rename requeue resend "
    "reset restart retry revoke rollback shutdown signoff signout terminate toggle truncate unfollow unlike unlink "
    "unpublish unsubscribe vacuum webhook webhooks wipe abmelden ausloggen deconnexion loeschen supprimer eliminar "
    "borrar"
)
"""Words that are an action if they are the first or the last word of a name."""

_SEGMENT_ACTIONS: Final = _words(
    "activate approve backup cancel checkout clear confirm cron crons debug disable downvote drop enable exec "
    "execute export flush follow generate import like pay publish rebuild refresh regenerate reject restore run "
    "send stop submit switch sync test trigger upload upvote vote"
)
"""Words that are an action if they are a whole segment, or the first word of a snake_case or camelCase name."""

_NESTED_ACTIONS: Final = _words("add callback create install print start subscribe update upgrade")
"""The same, except for a path of one segment, which is a page: /start, /install, /subscribe."""

_ACTION_ROOTS: Final = _words("cron crons job task webhook webhooks hooks")
"""Segments below which everything is an action."""

_ARTICLE_ROOTS: Final = _words(
    "about academy article articles blog doc docs documentation faq guide guides handbook help kb learn manual "
    "news reference support tutorial tutorials wiki "
    "actualites aide aiuto ajuda anleitung ayuda guia guida handbuch hilfe hjalp magazin magazine noticias pomoc "
    "ratgeber"
)
"""Segments below which paths are articles, even if they are named like actions."""

_TOPIC_ROOTS: Final = _words("features industries integrations platform solutions use-cases")
"""Segments below which a verb that is also a noun names a product or topic: /solutions/compute."""

_TITLE_WORDS: Final = _words(
    "how why what when where who which can should is are best top "
    "wie warum was comment pourquoi como porque come perche hoe waarom jak hur hvordan miten nasil как почему як"
)
"""First words of titles."""

_ACTION_OBJECTS: Final = _words(
    "account accounts all backup cache caches cart cookies data database db email emails everything feed file "
    "files history index indexes job jobs log logs mail mails message messages newsletter notification "
    "notifications now order orders password queue queues server session sessions settings task tasks token "
    "tokens user users worker workers"
)
"""Objects of programs. A verb in kebab-case is an action if one of them follows."""

_PAGE_WORDS: Final = _words("form guide home index info list page view")
"""Last words in the names of views that show a page: `start_page`."""

_ACTION_PHRASES: Final = re.compile(
    r"(?<![a-z])(?:(?:log|sign)[-_ ]?(?:me[-_ ])?(?:out|off)|gc|add[-_]to[-_](?:cart|basket|bag|wishlist|favou?rites)"
    r"|clean[-_]up|tear[-_]down|shut[-_]down|cerrar[-_]sesion|opt[-_]out|power[-_]?off"
    r"|(?:turn|switch)[-_](?:on|off)|forget[-_]me(?![-_]not)|mark[-_](?:[a-z]+[-_])*(?:un)?(?:read|seen)"
    r"|git[-_](?:pull|push|fetch)|accept[-_](?:terms|cookies|all)|encerrar[-_]sessao|terminar[-_]sessao"
    r"|se[-_]deconnecter|fermer[-_](?:la[-_])?session|cerrar[-_]cuenta)(?![a-z])",
    re.IGNORECASE,
)
"""Actions of several words."""

_API_ROOTS: Final = _words(
    "ajax ajax-api api apis graphiql graphql grpc json json-rpc jsonrpc odata openapi rest rpc soap socket.io "
    "swagger swagger-ui sse trpc webhook webhooks websocket websockets ws xmlrpc xml-rpc"
)
"""First segments of paths for programs; so is a version, as in /v1/users."""

_VERSION: Final = re.compile(r"v\d+(\.\d+)*(alpha\d*|beta\d*)?", re.IGNORECASE)

_OPERATIONS_ROOTS: Final = _words(
    "actuator alive debug-toolbar health heartbeat metrics ping prometheus ready server-info server-status "
    "stats.json status up version"
)
"""First segments of paths for the operators of the site. Below /status or /version there may be pages."""

_OPERATIONS_ONLY_ROOTS: Final = _words("actuator debug-toolbar")
"""First segments below which every path is for the operators of the site."""

_HEALTH_CHECK_SEGMENTS: Final = _words(
    "health-check healthcheck health_check healthz livez liveness readyz readiness startupz server-status phpinfo"
)
"""Segments that show a health check, or another path for operators, at any position."""

_HEALTH_CHECK_LEAVES: Final = _words("alive check db health heartbeat live ok ping ready startup")
"""Last segments of health checks if the first segment is for programs: /api/health, /_ah/health, /health/live."""

_HEALTH_CHECK_VIEWS: Final = _words(
    "healthcheck healthchecks healthz livez liveness livenessprobe readyz readiness readinessprobe startupz"
)
"""Names of views of health checks, without separators between words."""

_MACHINE_ROOTS: Final = _words("health internal ops system")
"""First segments of paths for the operators of the site, as those of `_API_ROOTS` are for programs."""

_OPERATIONS_PARENTS: Final = _words(
    "admin app backend common core infra internal main misc monitor monitoring ops probe probes server service site "
    "sys system util utils web"
)
"""Segments below which one of `_NESTED_HEALTH_CHECK_LEAVES` is a health check: /misc/ping, /server/metrics."""

_NESTED_HEALTH_CHECK_LEAVES: Final = _words("alive health heartbeat metrics ping prometheus up uptime")

_ERROR_NAMES: Final = re.compile(
    r"[45]\d\d|(?:server|internalserver|sentry)?errors?|(?:debug|test)?sentry(?:debug|test)?|(?:error|exception|fail|raise)"
    r"(?:test)?|(?:raise|throw|trigger|test|force|cause)(?:an?)?(?:error|exception)|divisionbyzero|zerodivision"
)
"""Last segments that show an error, or cause one to test how it is reported: /500, /sentry-debug."""

_FLOW_ENDS: Final = _words("closed done inactive posted sent submitted")
"""Last words of the paths that a form leads to: /contact/sent, /accounts/login_link_sent."""

_MAX_FLOW_WORDS: Final = 3
"""Words of such a segment, at most. A longer one is a title."""

_FILE_NAME: Final = re.compile(r"\.(?:aspx?|html?|json|php|txt)$")


@lru_cache(maxsize=20_000)
def operations_reason(path: str, endpoint: str) -> str | None:
    """Why a route is for the operators of the site, even if it answers with HTML; None if its names do not say so.

    A health check is polled day and night, often by a client that looks like a crawler, and "ok" is HTML in many
    frameworks. So a visit does not show that it is a page.

    Args:
        path: decoded, without parameters.
        endpoint: what the framework calls the view.
    """
    shown = _segments(path)
    if (segment := _operations_segment(shown)) is not None:
        return f"{segment!r} in its path is that of a health check or of operations"
    name = endpoint.rpartition(".")[2]
    if "".join(_WORD.findall(name)).lower() in _HEALTH_CHECK_VIEWS:
        return f"{name!r} is the name of a health check"
    return None


def _operations_segment(shown: list[str]) -> str | None:
    """The segment of a path that shows a health check, or another path for operators."""
    segments = [_FILE_NAME.sub("", segment.lower().strip("_.")) for segment in shown]
    for segment, bare in zip(shown, segments, strict=True):
        if not _HEALTH_CHECK_SEGMENTS.isdisjoint((bare, segment.lower())):
            return segment
    if not segments:
        return None
    first, last = segments[0], segments[-1]
    if first in _OPERATIONS_ONLY_ROOTS:
        return shown[0]
    if len(segments) == 1:
        return None if _OPERATIONS_ROOTS.isdisjoint((first, shown[0].lower())) else shown[0]
    machines = shown[0][0] in "._" or first == "-" or first in _API_ROOTS or first in _MACHINE_ROOTS
    if machines and last in _HEALTH_CHECK_LEAVES:
        return shown[-1]
    return shown[-1] if segments[-2] in _OPERATIONS_PARENTS and last in _NESTED_HEALTH_CHECK_LEAVES else None


@lru_cache(maxsize=20_000)
def unsafe_reason(path: str, endpoint: str) -> str | None:
    """Why a route is not taken for a page before a visit shows that it is one; None if its names do not say so.

    Args:
        path: decoded, without parameters.
        endpoint: what the framework calls the view.
    """
    segments = _segments(path)
    for segment in segments:
        if segment[0] in "._" or segment == "-":
            return f"{segment!r} in its path is internal by convention"
    first = segments[0].lower() if segments else ""
    if first in _API_ROOTS or (len(segments) > 1 and _VERSION.fullmatch(first)):
        return f"{segments[0]!r} in its path is that of an API"
    for before, segment in pairwise(segments):
        if before.lower() == "api" and _VERSION.fullmatch(segment):
            return f"{before!r} in its path is that of an API"
    if first == "health" and len(segments) > 1:
        return f"{segments[0]!r} in its path is that of a health check or of operations"
    if operators := operations_reason(path, endpoint):
        return operators
    if action := _action_in_path(segments) or _unsafe_view_name(endpoint):
        return f"{action!r} is the name of an action"
    return _end_reason(segments)


def _segments(path: str) -> list[str]:
    return [segment for segment in path.split("/") if segment]


def _end_reason(segments: list[str]) -> str | None:
    """Why the last segment of a path shows an error, or the end of a flow."""
    if not segments or any(segment.lower() in _ARTICLE_ROOTS for segment in segments[:-1]):
        return None
    last = segments[-1]
    words = _lower_words(last)
    if _ERROR_NAMES.fullmatch("".join(words)):
        return f"{last!r} is the name of an error"
    if len(segments) > 1 and words and words[-1] in _FLOW_ENDS and len(words) <= _MAX_FLOW_WORDS:
        return f"{last!r} is the end of a flow"
    return None


def _action_in_path(segments: list[str]) -> str | None:
    texts = False
    for number, segment in enumerate(segments):
        text = without_diacritics(segment)
        words = _lower_words(text)
        if not texts and unspaced_action(text.casefold()):
            return segment
        if not words or words[0] in _TITLE_WORDS:
            continue
        last = number + 1 == len(segments)
        if phrase := _ACTION_PHRASES.search(text):
            return str(phrase[0]) if text == segment else segment
        if words[0] in _ACTION_ROOTS and len(words) == 1 and not last and not texts:
            return segment
        if found := _is_action_segment(words, segment, alone=number == 0 and last, texts=texts):
            return found if text == segment else segment
        if last and not texts and _ends_with_action(segments[:-1], words):
            return segment
        texts = texts or segment.lower() in _ARTICLE_ROOTS
    return None


def _ends_with_action(before: list[str], words: list[str]) -> bool:
    """Whether a path ends with an action: its last segment alone, or its last two together."""
    if not before:
        return is_action(words) or words == ["open"]  # /jobs/open is a page
    if before[-1].lower() in _TOPIC_ROOTS:
        return False
    if len(words) == 1 and words[0] in NESTED_ACTIONS:
        return True
    return is_action(words) or is_action(_lower_words(without_diacritics(before[-1])) + words)


def _lower_words(text: str) -> list[str]:
    """The words of a text without diacritics, in small letters."""
    return [word.casefold() for word in _WORD.findall(text)]


def _is_action_segment(words: list[str], segment: str, *, alone: bool, texts: bool) -> str | None:
    first, many = words[0], len(words) > 1
    if not texts and (first in _STRONG_ACTIONS or (words[-1] in _STRONG_ACTIONS and len(words) < 4)):
        return first if first in _STRONG_ACTIONS else words[-1]
    if first not in _SEGMENT_ACTIONS and first not in _NESTED_ACTIONS:
        return _joined_verb(first) if not many and not texts else None
    if many:
        coded = "-" not in segment or words[1] in _ACTION_OBJECTS
        return first if coded and not texts else None
    return None if texts or (alone and first in _NESTED_ACTIONS) else first


def _joined_verb(word: str) -> str | None:
    """The verb of a word such as `clearcache`."""
    for length in range(3, len(word) - 1):
        if word[length:] in _ACTION_OBJECTS and (word[:length] in _STRONG_ACTIONS or word[:length] in _SEGMENT_ACTIONS):
            return word[:length]
    return None


def _unsafe_view_name(endpoint: str) -> str | None:
    """The action that a view is named by. A single word often names a page, unless it is a strong one."""
    name = endpoint.rpartition(".")[2]
    words: list[str] = [word.lower() for word in _WORD.findall(name)]
    if not words or words[0] in _TITLE_WORDS:
        return None
    if phrase := _ACTION_PHRASES.search(name):
        return str(phrase[0])
    if words[-1] in ("view", "handler", "endpoint", "route", "controller", "api", "get") and len(words) > 1:
        words.pop()
    if words[0] in _STRONG_ACTIONS or words[-1] in _STRONG_ACTIONS:
        return words[0] if words[0] in _STRONG_ACTIONS else words[-1]
    if is_action_pair(words):
        return name
    if len(words) > 1 and words[0] in _SEGMENT_ACTIONS | _NESTED_ACTIONS and words[-1] not in _PAGE_WORDS:
        return words[0]
    return None
