"""Ages such as "3 weeks ago" or "vor 3 Wochen" are not content: they change although nobody edits the page.

A number with a unit of time is left out wherever it stands, and so are the words that stand for an age by themselves,
such as "yesterday". No grammar is needed for that, and an edit that changes nothing else is rare.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

_WORDS: Final[dict[str, frozenset[str]]] = {
    name: frozenset(text.split())
    for name, text in tomllib.loads(Path(__file__).with_name("age_words.toml").read_text("utf-8")).items()
}

_UNSPACED: Final = re.compile(
    r"[0-9]{1,6}+ ?(?:秒|分钟|分鐘|分間|分|小时|小時|時間|天|日間|日|星期|週間|周|週|个月|個月|か月|ヶ月|カ月|月|年間"
    r"|年) ?(?:以前|之前|前)"
    r"|[0-9]{1,6}+ ?(?:초|분|시간|일|주일|주|개월|달|년) ?전"
    r"|[0-9]{1,6}+ ?(?:วินาที|นาที|ชั่วโมง|วัน|สัปดาห์|เดือน|ปี) ?(?:ที่ ?(?:แล้ว|ผ่านมา)|ก่อน)"
    r"|刚刚|剛剛|たった今|昨日|昨天|前天|今日|今天|방금|어제|오늘|เมื่อวาน|วันนี้"
)
"""Ages in languages that write no spaces between words."""
_HAS_UNSPACED: Final = re.compile("[前전ที่ก刚剛今昨방어오]")

_EDGES: Final = " \t.,;:!?()[]{}<>\"'“”„«»‹›…·•–—-|/*+~׳॰\u200e\u200f"
_NUMBER: Final = re.compile(r"[0-9]{1,6}(?:[.,][0-9]{1,2})?")
_GLUED: Final = re.compile(r"([0-9]{1,4})-?([^\W\d_]{1,12})(?:-old)?")


def without_ages(words: Sequence[str]) -> list[str]:
    """The words of a text without those of ages."""
    if any(map(_HAS_UNSPACED.search, words)):
        words = _UNSPACED.sub(" ", " ".join(words)).split()
    kinds = [*map(_kind, words)]
    if not any(kinds):
        return [*words]
    removed = {at for at, kind in enumerate(kinds) if kind == "age"}
    for at, kind in enumerate(kinds):
        if kind != "unit":
            continue
        if at and kinds[at - 1] in ("number", "count"):
            removed.update((at - 1, at))
        elif kinds[at + 1 : at + 2] == ["number"]:  # "Day 124 of our journey"
            removed.update((at, at + 1))
    return [word for at, word in enumerate(words) if at not in removed]


@lru_cache(8192)
def _kind(word: str) -> str:
    """What a word may be of an age: the "age", its "unit", a "number", a "count"; else empty."""
    plain = word.strip(_EDGES).lower().replace("’", "'")
    plain = plain.partition("(")[0]  # "week(s)", which has lost its end
    plain = plain.rpartition("'")[2]  # "l'an"
    if plain in _WORDS["units"]:
        return "unit"
    if plain in _WORDS["ages"]:
        return "age"
    if plain[:1].isdigit():
        if _NUMBER.fullmatch(plain):
            return "number"
        glued = _GLUED.fullmatch(plain)
        return "age" if glued and glued[2] in _WORDS["units"] | _WORDS["glued_units"] else ""
    return "count" if plain in _WORDS["counts"] else ""
