"""Removes ages from a text: "3 weeks ago", "vor 3 Wochen", "3 days left". They change without an edit.

A number with a unit of time is an age only beside a word that says so: "3 weeks of training" is content. A short form
such as "3w" is an age only if it is all of an element's text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from .digest_cost_limit import WorkBudget
from .relative_time_words import LANGUAGES

_DIGIT: Final = r"[0-9０-９一二两兩三四五六七八九十数數几幾半몇한두세네]"
_UNSPACED_AGE: Final = re.compile(
    # Chinese and Japanese
    r"(?:大约|大約|约|約|超过|超過|将近|將近|近|およそ|ほぼ|还剩|還剩|剩余|剩餘|还有|還有|残り|あと){0,2}+ ?"
    rf"{_DIGIT}{{1,6}}+ ?"
    r"(?:秒钟|秒鐘|秒間|秒|分钟|分鐘|分間|分|小时|小時|時間|天|日間|日|星期|週間|周|週|个月|個月|か月|ヶ月|カ月|ヵ月|箇月|ケ月|月|年間|年)"
    r" ?(?:以前|之前|前|以后|以後|之后|之後|后|後|以内|内)"
    rf"|(?:还剩|還剩|剩余|剩餘|还有|還有|残り|あと) ?{_DIGIT}{{1,6}}+ ?"
    r"(?:秒|分|小时|小時|時間|天|日|周|週間|个月|個月|か月|ヶ月|年)"
    r"|片刻[后後]|刚刚|剛剛|刚才|剛才|たった今|ただ今|今すぐ|すぐに|昨日|昨天|前天|前日|今日|今天|明日|明天"
    r"|(?:先|上|去|昨|来|下)(?:个|個)?(?:星期|週|周|月|年)"
    # Korean
    rf"|(?:약 ?)?{_DIGIT}{{1,6}}+ ?(?:초|분|시간|일|주일|주|개월|달|년) ?(?:전|후|뒤|남음|남았습니다)"
    r"|하루 ?(?:전|후)|지금|곧|내년|방금(?: 전)?|어제|그제|오늘|내일|지난 ?(?:주|달|해)|작년"
    # Thai
    r"|(?:ใน(?:อีก)? ?)?(?:[0-9]{1,6}+ ?)?(?:วินาที|นาที|ชั่วโมง|ชม\.|วัน|สัปดาห์|เดือน|ปี) ?ที่ ?(?:ผ่านมา|แล้ว)"
    r"|ใน(?:อีก)? ?(?:[0-9]{1,6}+ ?)?(?:วินาที|นาที|ชั่วโมง|ชม\.|วัน|สัปดาห์|เดือน|ปี)"
    r"|[0-9]{1,6}+ ?(?:วินาที|นาที|ชั่วโมง|ชม\.|วัน|สัปดาห์|เดือน|ปี) ?ก่อน"
    r"|เมื่อสักครู่|เมื่อวาน|วันนี้|พรุ่งนี้"
)
_UNSPACED_AGE_LETTER: Final = re.compile(r"[前后後内剩还還残刚剛今昨明先上去来下あただ전후뒤남방어그오내지작곧ใทก]")
"""Every age that the expression above matches contains one of these letters."""

_EDGE_CHARS: Final = " \t.,;:!?()[]{}<>\"'“”„«»‹›…·•–—-|/*+~׳॰\u200e\u200f"
_NUMBER: Final = re.compile(r"\d{1,6}(?:[.,]\d{1,2})?")
_NUMBER_WITH_UNIT: Final = re.compile(r"([0-9]{1,4})([^\W\d_]{1,12})")
_AGE_IN_ONE_WORD: Final = re.compile(r"[0-9]{1,4}-(?:second|minute|hour|day|week|month|year)-old")
_POSSESSED_UNITS: Final = frozenset({"másodperce", "perce", "órája", "napja", "hete", "hónapja", "éve"})
"""Hungarian units that make an age of the number before them, without another word."""
_TIME: Final = re.compile(r"[0-9]{1,2}(?:[:.h][0-9]{2}){0,2}(?:[ap]m)?")
_COUNTED_DAY: Final = frozenset(
    {"day", "tag", "jour", "día", "dia", "giorno", "dag", "dzień", "день", "den", "päivä", "nap", "gün"}
)
_ORDINAL: Final = re.compile(r"[0-9]{1,5}(?:/[0-9]{1,5})?")
"""The number after a counted day: "Day 124 of our journey", "Day 12/100"."""
_TIME_PREPOSITIONS: Final = frozenset(
    {"at", "um", "à", "a", "las", "alle", "às", "om", "o", "в", "kl", "klo", "v", "saat", "klokken"}
)
_DAY_HALVES: Final = frozenset({"am", "pm", "a.m", "p.m", "uhr"})
_CONJUNCTIONS: Final = frozenset(
    {"and", "und", "et", "y", "e", "en", "i", "и", "та", "och", "og", "ja", "és", "și", "ve", "και", "dan", "và", "و"}
    | {"the", "den", "der", "of", "de", "d", "than", "als", "que", "di", "niż", "чем", "än", "end", "enn"}
)
"""Words within an amount that cannot begin one."""
_NUMERAL_CONJUNCTIONS: Final = frozenset({"en", "et"})
"""Conjunctions that are numerals in another language."""
_MAX_AGE_WORDS: Final = 24
"""Words before and after its unit that an age may include."""
_LETTER_COST: Final = 0.15
_DIGIT_COST: Final = 0.4
_AGE_COST: Final = 8.0
_DAY_COST: Final = 2.5
"""The cost, in microseconds, of a letter and of a digit in a text without spaces between words, of a word that may be
the unit of an age, and of one that may begin a phrase such as "a moment ago"."""
_MAX_COUNT_WORDS: Final = 6
"""Words of an amount besides its unit: "a little less than 2 hours"."""
_STANDALONE_SHORT_AGE: Final = re.compile(
    r"\x1f[ \t\r\n\xa0·•|,()–—-]{0,6}+(?:now|[0-9]{1,4}\s?"
    r"(?:s|secs?|m|mins?|h|hrs?|d|w|wks?|mo|mos|mths?|y|yrs?|j|sem|ans?|mois"
    r"|std|tg|wo|t|u|mnd|godz|tyg|dni|ч|мин|дн|нед|мес|г|л|tim|v|mån|år|dk|sa|hf)\.?(?: [0-9]{1,2}\s?[a-zа-я]{1,3})?"
    r"(?:\s(?:ago|left))?)[ \t\r\n\xa0·•|,()–—-]{0,6}+(?=\x1f)",
    re.IGNORECASE,
)
"""A short form that is all of an element's text."""

TEXT_SEPARATOR: Final = "\x1f"
"""Separates the texts of two elements. `str.split` takes it for whitespace."""


@lru_cache(4096)
def _strip_edges(word: str) -> str:
    plain = word.strip(_EDGE_CHARS).lower().replace("’", "'")
    if "(" in plain:  # "week(s)", which has lost its end
        plain = plain[: plain.index("(")]
    return plain[plain.index("'") + 1 :] if plain.startswith(("l'", "d'", "un'")) else plain


def _phrases(text: str) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(map(_strip_edges, phrase.split())) for phrase in text.split("|") if phrase)


class _Words(NamedTuple):
    """The words of a language, ready for look-up."""

    units: frozenset[str]
    before: frozenset[tuple[str, ...]]
    after: frozenset[tuple[str, ...]]
    counts: frozenset[str]


_LANGUAGES: Final = tuple(
    _Words(frozenset(one.units.split()), _phrases(one.before), _phrases(one.after), frozenset(one.counts.split()))
    for one in LANGUAGES
)
_LANGUAGES_BY_UNIT: Final = {
    unit: tuple(words for words in _LANGUAGES if unit in words.units)
    for unit in frozenset().union(*(w.units for w in _LANGUAGES))
}
_DAY_PHRASES: Final = frozenset().union(*(_phrases(one.days) for one in LANGUAGES))
_MAX_PHRASE_WORDS: Final = 3
"""Words of the longest phrase."""
_DAY_PHRASE_STARTS: Final = frozenset(phrase[0] for phrase in _DAY_PHRASES)
_DAY_ONLY_STARTS: Final = _DAY_PHRASE_STARTS.difference(_LANGUAGES_BY_UNIT)
_MAX_DAY_WORDS: Final = _MAX_PHRASE_WORDS + 3
"""Words of such a phrase with the time of day behind it: "yesterday at 10 am"."""
_AGE_WORDS: Final = _DAY_PHRASE_STARTS.union(_LANGUAGES_BY_UNIT)


def without_short_ages(text: str) -> str:
    """A text without short ages that are all of an element's text."""
    return _STANDALONE_SHORT_AGE.sub(TEXT_SEPARATOR, f"{TEXT_SEPARATOR}{text}{TEXT_SEPARATOR}")


def may_be_age(word: str) -> bool:
    """Whether a word may be part of an age. A text without such words contains no age."""
    return _is_known(word) or (not word.isascii() and _UNSPACED_AGE_LETTER.search(word) is not None)


def _is_known(word: str) -> bool:
    """Whether a word is a unit, a number with its unit, an age, or the first one of a phrase such as "last week"."""
    plain = _strip_edges.__wrapped__(word)
    if plain in _AGE_WORDS:
        return True
    if not plain[:1].isdigit():
        return False
    glued = _NUMBER_WITH_UNIT.fullmatch(plain)
    return _AGE_IN_ONE_WORD.fullmatch(plain) is not None if glued is None else glued[2] in _LANGUAGES_BY_UNIT


def without_ages(words: Sequence[str], age_words: Collection[str], budget: WorkBudget) -> list[str]:
    """The words without those of ages.

    Args:
        words: in their order.
        age_words: the words for which `may_be_age` holds.
        budget: raises `BudgetExceeded` before it costs more.
    """
    if any(map(_UNSPACED_AGE_LETTER.search, age_words)):
        text = " ".join(words)
        budget.spend(len(text) * _LETTER_COST + sum(map(text.count, "0123456789")) * _DIGIT_COST)
        words = _UNSPACED_AGE.sub(" ", text).split()
        age_words = frozenset(filter(_is_known, set(words)))
    places = [at for at, word in enumerate(words) if word in age_words]
    days = frozenset(word for word in age_words if _strip_edges(word) in _DAY_ONLY_STARTS)
    day_count = sum(words[at] in days for at in places)
    budget.spend(day_count * _DAY_COST + (len(places) - day_count) * _AGE_COST)
    removed = bytearray(len(words))
    for at in places:
        first, last = (
            (at, at + _MAX_DAY_WORDS) if words[at] in days else (max(0, at - _MAX_AGE_WORDS), at + _MAX_AGE_WORDS)
        )
        start, end = _age_at([_strip_edges(word) for word in words[first:last]], at - first)
        removed[first + start : first + end] = b"\1" * (end - start)
    return [word for word, is_removed in zip(words, removed, strict=True) if not is_removed]


def _age_at(plain: Sequence[str], at: int) -> tuple[int, int]:
    """The range of the age whose unit, or whose first word, is at this position; empty if there is none."""
    word = plain[at]
    glued = None if word in _LANGUAGES_BY_UNIT else _NUMBER_WITH_UNIT.fullmatch(word)
    for language in _LANGUAGES_BY_UNIT.get(word if glued is None else glued[2], ()):
        start, end = _age(plain, at, language, counted=glued is not None)
        if start < end:
            return start, end
    if _AGE_IN_ONE_WORD.fullmatch(word):
        return at, at + 1
    if word in _COUNTED_DAY and at + 1 < len(plain) and _ORDINAL.fullmatch(plain[at + 1]):
        return at, at + 2
    return (at, _day(plain, at)) if word in _DAY_PHRASE_STARTS else (at, at)


def _age(plain: Sequence[str], at: int, language: _Words, *, counted: bool) -> tuple[int, int]:
    """The range of the age whose unit is at this position; empty if there is none."""
    start, end = at, at + 1
    for _ in range(_MAX_COUNT_WORDS):
        if counted or not start:
            break
        if not _counts(plain[start - 1], language):
            break
        start -= 1
    while start < at and plain[start] in _CONJUNCTIONS and plain[start] not in _NUMERAL_CONJUNCTIONS:
        start += 1
    numbered = counted or any(map(_NUMBER.fullmatch, plain[start:at]))
    following = _phrase(plain, end, language.after)
    if following or (numbered and plain[at] in _POSSESSED_UNITS):
        return _with_earlier(plain, start, language), end + following
    # What looks like a count may be the phrase itself: "over" in Dutch, "peste" in Romanian.
    for first in range(start, at if numbered or start < at else at + 1):
        leading = _phrase_before(plain, first, language.before)
        if leading:
            return first - leading, _with_later(plain, end, language)
    leading = _phrase_before(plain, at, language.before)
    return (at - leading, end) if leading else (at, at)


def _counts(word: str, language: _Words) -> bool:
    return word in language.counts or _NUMBER.fullmatch(word) is not None


def _phrase(plain: Sequence[str], at: int, phrases: Iterable[tuple[str, ...]]) -> int:
    """The number of words of the longest of these phrases that begins here."""
    for length in range(min(_MAX_PHRASE_WORDS, len(plain) - at), 0, -1):
        if tuple(plain[at : at + length]) in phrases:
            return length
    return 0


def _phrase_before(plain: Sequence[str], at: int, phrases: Iterable[tuple[str, ...]]) -> int:
    """The number of words of the longest of these phrases that ends before here."""
    for length in range(min(_MAX_PHRASE_WORDS, at), 0, -1):
        if tuple(plain[at - length : at]) in phrases:
            return length
    return 0


def _with_earlier(plain: Sequence[str], start: int, language: _Words) -> int:
    """Where the amounts before one begin, as in "3 weeks, 2 days ago"; the phrase before them is included."""
    while (earlier := _amount_before(plain, start, language)) < start:
        start = earlier
    return start - _phrase_before(plain, start, language.before)


def _amount_before(plain: Sequence[str], start: int, language: _Words) -> int:
    at = start - 1
    while at > 0 and plain[at] in _CONJUNCTIONS:
        at -= 1
    if at >= 0 and (glued := _NUMBER_WITH_UNIT.fullmatch(plain[at])) and glued[2] in language.units:
        return at
    if at < 1 or plain[at] not in language.units or not _counts(plain[at - 1], language):
        return start
    at -= 1
    for _ in range(_MAX_COUNT_WORDS):
        if not at or not _counts(plain[at - 1], language):
            break
        at -= 1
    return at


def _with_later(plain: Sequence[str], end: int, language: _Words) -> int:
    """Where the amounts after one end, as in "vor 3 Wochen, 2 Tagen"."""
    while True:
        at = end
        for _ in range(_MAX_COUNT_WORDS):
            if at >= len(plain) or not _counts(plain[at], language):
                break
            at += 1
        if at == end or at >= len(plain) or plain[at] not in language.units:
            return end
        end = at + 1


def _day(plain: Sequence[str], at: int) -> int:
    """Where a day that begins here ends, such as "yesterday at 10:15"; the same position if none begins here."""
    length = _phrase(plain, at, _DAY_PHRASES)
    if not length:
        return at
    end = at + length
    time = end + (end < len(plain) and plain[end] in _TIME_PREPOSITIONS)
    if time < len(plain) and _TIME.fullmatch(plain[time]):
        end = time + 1
        end += end < len(plain) and plain[end] in _DAY_HALVES
    return end
