"""Recognises, by the names of path and view, routes that are unsafe to request or are not pages.

Four kinds of routes are neither requested nor listed before a visit: actions, which may change something; APIs,
health checks and the like, which are for machines; errors and the ends of flows; and paths that are internal by
convention. The position of a word matters: `/cache/clear` is an action, `/clear-skies` a page.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Final
from unicodedata import normalize

_UNDECOMPOSED_LETTERS: Final = str.maketrans(
    {"ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "đ": "d", "Đ": "D", "ı": "i", "æ": "ae", "Æ": "AE", "œ": "oe", "ß": "ss"}
)
_ACCENTS: Final = re.compile("[\u0300-\u036f]+")
"""Not all combining marks: those of Hindi and Japanese are letters."""


def _without_diacritics(text: str) -> str:
    """A text without diacritics, in its own case, so that words in camelCase can still be told apart."""
    if text.isascii():
        return text
    return normalize("NFC", _ACCENTS.sub("", normalize("NFKD", text.translate(_UNDECOMPOSED_LETTERS))))


def _word_set(texts: Iterable[str]) -> frozenset[str]:
    """The words of a table, as they are compared: without diacritics, in small letters."""
    return frozenset(_without_diacritics(" ".join(texts)).casefold().split())


_TABLES: Final = tomllib.loads(Path(__file__).with_name("action_words.toml").read_text("utf-8"))
_WORDS: Final = {name: _word_set([text]) for name, text in _TABLES["words"].items()}
_ACTIONS: Final = _word_set(_TABLES["actions"].values())
_ACTION_PAIRS: Final = [(_word_set([pair["verbs"]]), _word_set([pair["objects"]])) for pair in _TABLES["pairs"]]

_MAX_UNSPACED_CHARS: Final = 12
"""Maximum length of a segment that is searched for a verb without separators. A longer segment counts as a title."""
_MAX_FLOW_WORDS: Final = 3
"""Words of a segment that shows the end of a flow, at most. A longer one is a title."""

_TITLE_PATTERN: Final = re.compile("如何|怎么|怎樣|方法|仕方|やり方|とは|指南|教程|방법|안내|كيف|कैसे")
"""Words that show a title of a text in these languages: "how to", "method", "guide"."""
_ACTION_PHRASES: Final = re.compile(
    r"(?<![a-z])(?:(?:log|sign)[-_ ]?(?:me[-_ ])?(?:out|off)|gc|add[-_]to[-_](?:cart|basket|bag|wishlist|favou?rites)"
    r"|clean[-_]up|tear[-_]down|shut[-_]down|cerrar[-_]sesion|opt[-_]out|power[-_]?off"
    r"|(?:turn|switch)[-_](?:on|off)|forget[-_]me(?![-_]not)|mark[-_](?:[a-z]+[-_])*(?:un)?(?:read|seen)"
    r"|git[-_](?:pull|push|fetch)|accept[-_](?:terms|cookies|all)|encerrar[-_]sessao|terminar[-_]sessao"
    r"|se[-_]deconnecter|fermer[-_](?:la[-_])?session|cerrar[-_]cuenta)(?![a-z])",
    re.IGNORECASE,
)
"""Actions of several words."""
_VERSION: Final = re.compile(r"v\d+(\.\d+)*(alpha\d*|beta\d*)?", re.IGNORECASE)
_ERROR_NAMES: Final = re.compile(
    r"[45]\d\d|(?:server|internalserver|sentry)?errors?|(?:debug|test)?sentry(?:debug|test)?|(?:error|exception|fail|raise)"
    r"(?:test)?|(?:raise|throw|trigger|test|force|cause|simulate)(?:an?)?(?:error|exception|[45]\d\d)"
    r"|boom|oops|throw|dividebyzero|divisionbyzero|zerodivision"
)
"""Last segments that show an error, or cause one to test how it is reported: /500, /sentry-debug."""
_FILE_NAME: Final = re.compile(r"\.(?:aspx?|html?|json|php|txt)$")
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
"""The words of a name in snake_case, kebab-case or camelCase."""
_SEPARATORS: Final = re.compile(r"[\s\-_.~+]+")
_JOINED_ACTIONS: Final = frozenset(_SEPARATORS.sub("", action) for action in _ACTIONS)
_UNSPACED_ACTIONS: Final = sorted(_SEPARATORS.sub("", action) for action in _WORDS["unspaced_actions"])


@lru_cache(maxsize=20_000)
def operations_reason(path: str, endpoint: str) -> str | None:
    """Why a route is for the operators of the site, even if it answers with HTML; None if its names do not say so.

    A health check is polled day and night, often by a client that looks like a crawler, and "ok" is HTML in many
    frameworks. So a visit does not show that it is a page. The path is decoded, the endpoint the framework's name for
    the view.
    """
    if (segment := _operations_segment(_segments(path))) is not None:
        return f"{segment!r} in its path is that of a health check or of operations"
    name = endpoint.rpartition(".")[2]
    if "".join(_WORD.findall(name)).lower() in _WORDS["health_check_views"]:
        return f"{name!r} is the name of a health check"
    return None


def _operations_segment(shown: list[str]) -> str | None:
    """The segment of a path that shows a health check, or another path for operators."""
    segments = [_FILE_NAME.sub("", segment.lower().strip("_.")) for segment in shown]
    for segment, bare in zip(shown, segments, strict=True):
        if not _WORDS["health_check_segments"].isdisjoint((bare, segment.lower())):
            return segment
    if not segments:
        return None
    first, last = segments[0], segments[-1]
    if first in _WORDS["operations_only_roots"]:
        return shown[0]
    if len(segments) == 1:
        return None if _WORDS["operations_roots"].isdisjoint((first, shown[0].lower())) else shown[0]
    for_machines = (
        shown[0][0] in "._" or first == "-" or first in _WORDS["api_roots"] or first in _WORDS["machine_roots"]
    )
    is_check = (for_machines and last in _WORDS["health_check_leaves"]) or (
        segments[-2] in _WORDS["operations_parents"] and last in _WORDS["nested_health_check_leaves"]
    )
    return shown[-1] if is_check else None


@lru_cache(maxsize=20_000)
def unsafe_reason(path: str, endpoint: str) -> str | None:
    """Why a route is not taken for a page before a visit shows that it is one; None if its names do not say so."""
    segments = _segments(path)
    for segment in segments:
        if segment[0] in "._" or segment == "-":
            return f"{segment!r} in its path is internal by convention"
    first = segments[0].lower() if segments else ""
    if first in _WORDS["api_roots"] or (len(segments) > 1 and _VERSION.fullmatch(first)):
        return f"{segments[0]!r} in its path is that of an API"
    for before, segment in pairwise(segments):
        if before.lower() == "api" and _VERSION.fullmatch(segment):
            return f"{before!r} in its path is that of an API"
    if first == "health" and len(segments) > 1:
        return f"{segments[0]!r} in its path is that of a health check or of operations"
    if operators := operations_reason(path, endpoint):
        return operators
    if action := _action_in_path(segments) or _action_in_view_name(endpoint.rpartition(".")[2]):
        return f"{action!r} is the name of an action"
    return _end_reason(segments)


def _segments(path: str) -> list[str]:
    return [segment for segment in path.split("/") if segment]


def _words(text: str) -> list[str]:
    """The words of a text without diacritics, in small letters."""
    return [word.casefold() for word in _WORD.findall(text)]


def _end_reason(segments: list[str]) -> str | None:
    """Why the last segment of a path shows an error, or the end of a flow."""
    if not segments or any(segment.lower() in _WORDS["article_roots"] for segment in segments[:-1]):
        return None
    last = segments[-1]
    words = _words(_FILE_NAME.sub("", last))
    if _ERROR_NAMES.fullmatch("".join(words)):
        return f"{last!r} is the name of an error"
    is_end = 0 < len(words) <= _MAX_FLOW_WORDS and words[-1] in _WORDS["flow_ends"]
    is_end = is_end and (len(segments) > 1 or words[-1] == "sent")
    if is_end or "".join(words) in _WORDS["flow_end_names"]:
        return f"{last!r} is the end of a flow"
    return None


def _action_in_path(segments: list[str]) -> str | None:
    """The action that a path names: a word if a segment without diacritics has it, else the segment."""
    is_article = False
    for number, segment in enumerate(segments):
        text = _without_diacritics(segment)
        words = _words(text)
        if not is_article and _has_unspaced_action(text.casefold()):
            return segment
        if not words or words[0] in _WORDS["title_words"]:
            continue
        is_last = number + 1 == len(segments)
        if phrase := _ACTION_PHRASES.search(text):
            return phrase[0] if text == segment else segment
        if words[0] in _WORDS["action_roots"] and len(words) == 1 and not is_last and not is_article:
            return segment
        if found := _action_in_segment(words, segment, is_alone=number == 0 and is_last, is_article=is_article):
            return found if text == segment else segment
        if is_last and not is_article and _ends_with_action(segments[:-1], words):
            return segment
        is_article = is_article or segment.lower() in _WORDS["article_roots"]
    return None


def _action_in_segment(words: list[str], segment: str, *, is_alone: bool, is_article: bool) -> str | None:
    """The word by which a segment is an action wherever it stands."""
    first, last, has_one_word = words[0], words[-1], len(words) == 1
    if not is_article and first in _WORDS["strong_actions"]:
        return first
    if not is_article and last in _WORDS["strong_actions"] and len(words) < 4:
        return last
    if first not in _WORDS["segment_actions"] | _WORDS["deep_actions"]:
        return _joined_verb(first) if has_one_word and not is_article else None
    if is_article or (has_one_word and is_alone and first in _WORDS["deep_actions"]):
        return None
    is_title = not has_one_word and "-" in segment and words[1] not in _WORDS["program_objects"]
    return None if is_title else first


def _joined_verb(word: str) -> str | None:
    """The verb of a word such as `clearcache`."""
    for length in range(3, len(word) - 1):
        if (
            word[length:] in _WORDS["program_objects"]
            and word[:length] in _WORDS["strong_actions"] | _WORDS["segment_actions"]
        ):
            return word[:length]
    return None


def _ends_with_action(before: list[str], words: list[str]) -> bool:
    """Whether a path ends with an action: its last segment alone, or its last two together."""
    if not before:
        return _is_action(words) or words == ["open"]  # /jobs/open is a page
    if before[-1].lower() in _WORDS["topic_roots"]:
        return False
    if len(words) == 1 and words[0] in _WORDS["last_actions"]:
        return True
    return _is_action(words) or _is_action(_words(_without_diacritics(before[-1])) + words)


def _is_action(words: list[str]) -> bool:
    """Whether the words of a segment name an action: a verb, or a verb and its object."""
    joined = "".join(words)
    if len(words) == 1 or joined in _JOINED_ACTIONS:
        return joined in _JOINED_ACTIONS or joined in _WORDS["whole_actions"]
    others = [word for word in words if word not in _WORDS["filler_words"]]
    verbs = [word for word in others if word in _ACTIONS]
    if verbs and len(others) > 1 and all(word in _WORDS["action_objects"] or word in verbs for word in others):
        return others[0] in verbs or (others[-1] in verbs and others[-1] not in _WORDS["noun_verbs"])
    return _is_action_pair(others)


def _is_action_pair(words: list[str]) -> bool:
    """Whether words are a verb and its object, in either order, and nothing else."""
    if len(words) < 2:
        return False
    first, last = words[0], words[-1]
    return any(
        (first in verbs and objects.issuperset(words[1:]))
        or (last in verbs and last not in _WORDS["noun_verbs"] and objects.issuperset(words[:-1]))
        for verbs, objects in _ACTION_PAIRS
    )


def _has_unspaced_action(segment: str) -> bool:
    """Whether a segment in a script without spaces contains the verb of an action. Expects small letters."""
    joined = _SEPARATORS.sub("", segment)
    if segment.isascii() or len(joined) > _MAX_UNSPACED_CHARS or _TITLE_PATTERN.search(joined):
        return False
    return any(verb in joined for verb in _UNSPACED_ACTIONS)


def _action_in_view_name(name: str) -> str | None:
    """The action that a view is named by. A single word often names a page, unless it is a strong one."""
    words: list[str] = [word.lower() for word in _WORD.findall(name)]
    if not words or words[0] in _WORDS["title_words"]:
        return None
    if phrase := _ACTION_PHRASES.search(name):
        return phrase[0]
    if words[-1] in _WORDS["view_suffixes"] and len(words) > 1:
        words.pop()
    for word in (words[0], words[-1]):
        if word in _WORDS["strong_actions"]:
            return word
    if _is_action_pair(words):
        return name
    is_page = len(words) == 1 or words[-1] in _WORDS["page_words"]
    return None if is_page or words[0] not in _WORDS["segment_actions"] | _WORDS["deep_actions"] else words[0]
