"""Recognises, by the names of path and view, routes that are unsafe to request or are not pages.

Four kinds of routes are neither requested nor listed before a visit: actions, which may change something; APIs,
health checks and the like, which are for machines; errors and the ends of flows; and paths that are internal by
convention. The position of a word matters: `/cache/clear` is an action, `/clear-skies` a page.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import Final

from . import action_words as known
from .action_words import without_diacritics

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
"""The words of a name in snake_case, kebab-case or camelCase."""

_SEPARATORS: Final = re.compile(r"[\s\-_.~+]+")
_JOINED_ACTIONS: Final = frozenset(_SEPARATORS.sub("", action) for action in known.ACTIONS)
_UNSPACED_ACTIONS: Final = sorted(_SEPARATORS.sub("", action) for action in known.UNSPACED_ACTIONS)


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
    if "".join(_WORD.findall(name)).lower() in known.HEALTH_CHECK_VIEWS:
        return f"{name!r} is the name of a health check"
    return None


def _operations_segment(shown: list[str]) -> str | None:
    """The segment of a path that shows a health check, or another path for operators."""
    segments = [known.FILE_NAME.sub("", segment.lower().strip("_.")) for segment in shown]
    for segment, bare in zip(shown, segments, strict=True):
        if not known.HEALTH_CHECK_SEGMENTS.isdisjoint((bare, segment.lower())):
            return segment
    if not segments:
        return None
    first, last = segments[0], segments[-1]
    if first in known.OPERATIONS_ONLY_ROOTS:
        return shown[0]
    if len(segments) == 1:
        return None if known.OPERATIONS_ROOTS.isdisjoint((first, shown[0].lower())) else shown[0]
    for_machines = shown[0][0] in "._" or first == "-" or first in known.API_ROOTS or first in known.MACHINE_ROOTS
    is_check = (for_machines and last in known.HEALTH_CHECK_LEAVES) or (
        segments[-2] in known.OPERATIONS_PARENTS and last in known.NESTED_HEALTH_CHECK_LEAVES
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
    if first in known.API_ROOTS or (len(segments) > 1 and known.VERSION.fullmatch(first)):
        return f"{segments[0]!r} in its path is that of an API"
    for before, segment in pairwise(segments):
        if before.lower() == "api" and known.VERSION.fullmatch(segment):
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
    if not segments or any(segment.lower() in known.ARTICLE_ROOTS for segment in segments[:-1]):
        return None
    last = segments[-1]
    words = _words(last)
    if known.ERROR_NAMES.fullmatch("".join(words)):
        return f"{last!r} is the name of an error"
    if len(segments) > 1 and words and words[-1] in known.FLOW_ENDS and len(words) <= known.MAX_FLOW_WORDS:
        return f"{last!r} is the end of a flow"
    return None


def _action_in_path(segments: list[str]) -> str | None:
    """The action that a path names: a word if a segment without diacritics has it, else the segment."""
    is_article = False
    for number, segment in enumerate(segments):
        text = without_diacritics(segment)
        words = _words(text)
        if not is_article and _has_unspaced_action(text.casefold()):
            return segment
        if not words or words[0] in known.TITLE_WORDS:
            continue
        is_last = number + 1 == len(segments)
        if phrase := known.ACTION_PHRASES.search(text):
            return phrase[0] if text == segment else segment
        if words[0] in known.ACTION_ROOTS and len(words) == 1 and not is_last and not is_article:
            return segment
        if found := _action_in_segment(words, segment, is_alone=number == 0 and is_last, is_article=is_article):
            return found if text == segment else segment
        if is_last and not is_article and _ends_with_action(segments[:-1], words):
            return segment
        is_article = is_article or segment.lower() in known.ARTICLE_ROOTS
    return None


def _action_in_segment(words: list[str], segment: str, *, is_alone: bool, is_article: bool) -> str | None:
    """The word by which a segment is an action wherever it stands."""
    first, last, has_one_word = words[0], words[-1], len(words) == 1
    if not is_article and first in known.STRONG_ACTIONS:
        return first
    if not is_article and last in known.STRONG_ACTIONS and len(words) < 4:
        return last
    if first not in known.SEGMENT_ACTIONS | known.DEEP_ACTIONS:
        return _joined_verb(first) if has_one_word and not is_article else None
    if is_article or (has_one_word and is_alone and first in known.DEEP_ACTIONS):
        return None
    is_title = not has_one_word and "-" in segment and words[1] not in known.PROGRAM_OBJECTS
    return None if is_title else first


def _joined_verb(word: str) -> str | None:
    """The verb of a word such as `clearcache`."""
    for length in range(3, len(word) - 1):
        if word[length:] in known.PROGRAM_OBJECTS and word[:length] in known.STRONG_ACTIONS | known.SEGMENT_ACTIONS:
            return word[:length]
    return None


def _ends_with_action(before: list[str], words: list[str]) -> bool:
    """Whether a path ends with an action: its last segment alone, or its last two together."""
    if not before:
        return _is_action(words) or words == ["open"]  # /jobs/open is a page
    if before[-1].lower() in known.TOPIC_ROOTS:
        return False
    if len(words) == 1 and words[0] in known.LAST_ACTIONS:
        return True
    return _is_action(words) or _is_action(_words(without_diacritics(before[-1])) + words)


def _is_action(words: list[str]) -> bool:
    """Whether the words of a segment name an action: a verb, or a verb and its object."""
    joined = "".join(words)
    if len(words) == 1 or joined in _JOINED_ACTIONS:
        return joined in _JOINED_ACTIONS or joined in known.WHOLE_ACTIONS
    others = [word for word in words if word not in known.FILLER_WORDS]
    verbs = [word for word in others if word in known.ACTIONS]
    if verbs and len(others) > 1 and all(word in known.ACTION_OBJECTS or word in verbs for word in others):
        return others[0] in verbs or (others[-1] in verbs and others[-1] not in known.NOUN_VERBS)
    return _is_action_pair(others)


def _is_action_pair(words: list[str]) -> bool:
    """Whether words are a verb and its object, in either order, and nothing else."""
    if len(words) < 2:
        return False
    first, last = words[0], words[-1]
    return any(
        (first in verbs and objects.issuperset(words[1:]))
        or (last in verbs and last not in known.NOUN_VERBS and objects.issuperset(words[:-1]))
        for verbs, objects in known.ACTION_PAIRS
    )


def _has_unspaced_action(segment: str) -> bool:
    """Whether a segment in a script without spaces contains the verb of an action. Expects small letters."""
    joined = _SEPARATORS.sub("", segment)
    if segment.isascii() or len(joined) > known.MAX_UNSPACED_CHARS or known.TITLE_PATTERN.search(joined):
        return False
    return any(verb in joined for verb in _UNSPACED_ACTIONS)


def _action_in_view_name(name: str) -> str | None:
    """The action that a view is named by. A single word often names a page, unless it is a strong one."""
    words: list[str] = [word.lower() for word in _WORD.findall(name)]
    if not words or words[0] in known.TITLE_WORDS:
        return None
    if phrase := known.ACTION_PHRASES.search(name):
        return phrase[0]
    if words[-1] in known.VIEW_SUFFIXES and len(words) > 1:
        words.pop()
    for word in (words[0], words[-1]):
        if word in known.STRONG_ACTIONS:
            return word
    if _is_action_pair(words):
        return name
    is_page = len(words) == 1 or words[-1] in known.PAGE_WORDS
    return None if is_page or words[0] not in known.SEGMENT_ACTIONS | known.DEEP_ACTIONS else words[0]
