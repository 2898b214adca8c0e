"""Digests the content of a page: what a reader sees, and the facts that the page states for machines.

The digest is a sum over the page's words, link targets and facts. So the same words put in or taken out change the
digests of all pages by the same difference, which shows that a change is a template's (see `template_changes`):

    digest("Hello, old footer") - digest("Hello, new footer") == digest("Bye, old footer") - digest("Bye, new footer")

The term of a word that holds one integer is `hash(text around it) + integer * UNIT`. So a change of integers alone, as
by a daily counter, changes the digest by a small multiple of UNIT:

    >>> differ_by_numbers(digest_term("Day") + digest_term("124"), digest_term("Day") + digest_term("125"))
    True
    >>> differ_by_numbers(digest_term("red"), digest_term("blue"))
    False
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from selectolax.lexbor import LexborHTMLParser, LexborNode

MAX_WORDS: Final = 100_000
MAX_TARGETS: Final = 10_000
"""Words, and link targets, of a page that are compared. A page with more gets no digest: that of a part would change
with what surrounds the part."""

_MODULUS: Final = 1 << 64
_UNIT: Final = 0x9E37_79B9_7F4A_7C15
"""Odd, so that it has an inverse modulo 2**64 by which a difference of digests can be divided."""
_INVERSE_UNIT: Final = pow(_UNIT, -1, _MODULUS)
_NUMBER_BITS: Final = 44
"""The bits of a multiple of `_UNIT`: 24 of the integer, 16 of its hash, so that two integers which change in opposite
directions still alter the digest, and room for several that change at once."""
_NUMBER: Final = re.compile(r"([^0-9\n]*+)([0-9]{1,6}|[0-9]{1,3}[.,][0-9]{3})([^0-9\n]*+)")
"""A word that holds one integer. The integers of link targets and facts identify things."""

_HIDDEN_ELEMENTS: Final = (
    ":is(script, style, noscript, template, nav, svg, input[type=hidden], [hidden], [role=navigation])"
)
"""Elements that a reader does not see, or that lead elsewhere."""
_SITE_ELEMENTS: Final = ":is(header, footer, aside, [role=banner], [role=contentinfo])"
"""Elements that belong to the site rather than to the page, unless they are within its main content."""
_MAIN_ELEMENTS: Final = ":is(main, [role=main])"
_ARTICLES: Final = "article"
_TARGETS: Final = "a[href], img[src], video[src], audio[src], source[src], embed[src], object[data], iframe[src]"
_VERSION: Final = re.compile(
    r"(?i:(?<![0-9a-z])(?=[a-z]*[0-9])[0-9a-f]{7,}(?![0-9a-z])|(?<![a-z0-9])v?\d+(?:\.\d+)+(?=[/-])|(?<=/)v\d+(?=/))"
    r"|(?<=[.-])(?=[0-9A-Za-z]*[0-9a-z][A-Z])[0-9A-Za-z]{8}(?=\.\w+$)"
)
"""Part of a link target that changes with each deployment: a hash, of base 16 or 62, or a version."""


def content_digest(tree: LexborHTMLParser, data: Iterable[Any], path: str = "") -> tuple[int, int] | None:
    """The digest of a page, and one without the words of its own path; None if it says more than can be compared.

    The first is a signed number of 64 bits, the second one of 31. What is no content is removed from the tree. `data`
    is the page's JSON-LD.
    """
    body = tree.body
    assert body is not None
    words = [word for node in tree.css("head > title") for word in node.text().split()]
    for node in tree.css("head > meta[name=description]"):
        words += (node.attributes.get("content") or "").split()
    _remove(body, _HIDDEN_ELEMENTS)
    roots = _outermost(body.css(_MAIN_ELEMENTS) or body.css(_ARTICLES))
    if not roots:
        roots = [body]
        _remove(body, _SITE_ELEMENTS)
    targets: list[str] = []
    for root in roots:
        words += root.text(separator="\x1f").split()
        words += [word for image in root.css("img[alt]") for word in (image.attributes["alt"] or "").split()]
        targets += map(_target_path, root.css(_TARGETS))
    if len(words) > MAX_WORDS or len(targets) > MAX_TARGETS:
        return None
    items = Counter(without_ages(words))
    items.update(f"\n{target}" for target in targets)  # no word begins with a line break
    items.update(_content_facts(data))
    total = sum(digest_term(item) * count for item, count in items.items())
    return (total + 2**63) % _MODULUS - 2**63, _without_path(items, total, path)


def _remove(body: LexborNode, selector: str) -> None:
    for node in reversed(body.css(selector)):  # what is inside another one first: that is freed with it
        node.decompose()


def _outermost(nodes: list[LexborNode]) -> list[LexborNode]:
    """Those of some elements, in their order, that are not inside another one of them."""
    if len(nodes) < 2:  # as on most pages
        return nodes
    found: list[LexborNode] = []
    inside = set[int]()
    for node in nodes:
        if node.mem_id not in inside:
            found.append(node)
            inside.update(inner.mem_id for inner in node.css("*"))
    return found


def _target_path(node: LexborNode) -> str:
    """The path of a link, image or other medium, without what a deployment changes: host, query, version.

    The path of an iframe is kept whole: the number of a film looks like a hash.
    """
    target = next((value for name in ("href", "src", "data") if (value := node.attributes.get(name))), "")
    try:
        path = urlsplit(target).path
    except ValueError:
        return ""
    return path if node.tag == "iframe" else _VERSION.sub("", path)


def differ_by_numbers(before: int, after: int) -> bool:
    """Whether two digests are of contents that differ by integers alone."""
    multiple = (after - before) * _INVERSE_UNIT % _MODULUS
    return min(multiple, _MODULUS - multiple) < 1 << _NUMBER_BITS


def digest_term(item: str) -> int:
    """What a word, a target or a fact adds to a digest."""
    return _cached_term(item) if len(item) <= 32 else _term(item)


def _term(item: str) -> int:
    match = _NUMBER.fullmatch(item)
    if match is None:
        return _hash(item, 8)
    before, digits, after = match.groups()
    number = int(digits.replace(",", "").replace(".", "")) + (_hash(digits, 2) << 24)
    return _hash(f"{before}\0{after}", 8) + number * _UNIT


_cached_term = lru_cache(8192)(_term)


def _hash(text: str, size: int) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).digest(), "big")


def _without_path(items: Counter[str], total: int, path: str) -> int:
    """The second digest of a page. It is that of the whole content if nothing else is left.

    Numbers in a path are not taken out: they identify records, and the pages of two records may differ in little else.
    """
    own_words = [word for word in re.split(r"[\W_]+", unquote(path)) if not word.isdigit() and word]
    if own_words:
        own = re.compile(rf"(?<![^\W_])(?:{'|'.join(map(re.escape, own_words))})(?![^\W_])", re.IGNORECASE)
        rest, count = total, sum(items.values())
        for item, times in items.items():
            if own.search(item):
                left = "".join(filter(str.isalnum, own.sub("", item)))
                rest += ((digest_term(left) if left else 0) - digest_term(item)) * times
                count -= 0 if left else times
        total = rest if count else total
    return (total * _UNIT % _MODULUS >> 33) or 1


# JSON-LD: the facts that are content, such as a price, and the date at which the page was modified

_CONTENT_PROPERTIES: Final = frozenset(
    {"headline", "description", "articlebody", "price", "lowprice", "highprice", "availability", "startdate", "enddate"}
)
"""Properties that are content, in lower case. All others are counters, identifiers, dates of the record itself, or
repeat what the page shows."""
_SITE_TYPES: Final = frozenset({"BreadcrumbList", "WebSite", "Organization"})
"""Types of things that are the site's, not the page's."""
_MAX_THINGS: Final = 2_000


def parse_scripts(scripts: Iterable[str]) -> list[Any]:
    """The data of the scripts that hold valid JSON."""
    data: list[Any] = []
    for text in scripts:
        with suppress(ValueError, RecursionError):
            data.append(json.loads(text, strict=False))
    return data


def _content_facts(data: Iterable[Any]) -> Iterator[str]:
    """The words of the content in JSON-LD, each with its property. The order means nothing."""
    pending: list[tuple[str, Any]] = [("", item) for item in data]
    for _ in range(_MAX_THINGS):
        if not pending:
            return
        key, value = pending.pop()
        if isinstance(value, dict):
            if _SITE_TYPES.isdisjoint(types_of(value)):
                pending.extend(value.items())
        elif isinstance(value, list):
            pending.extend((key, item) for item in value)
        elif key.lower() in _CONTENT_PROPERTIES:
            yield from (f"\n{key}\n{word}" for word in str(value).split())


def things(data: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """The things that JSON-LD describes: those at the top, and after each those in its graph."""
    for item in data:
        for thing in item if isinstance(item, list) else [item]:
            if isinstance(thing, dict):
                graph = thing.get("@graph")
                yield thing
                yield from (inner for inner in (graph if isinstance(graph, list) else ()) if isinstance(inner, dict))


def types_of(thing: dict[str, Any]) -> list[str]:
    """The types of a thing."""
    kinds = thing.get("@type")
    return [*map(str, kinds if isinstance(kinds, list) else [kinds])]


# Ages such as "3 weeks ago" or "vor 3 Wochen" are not content: they change although nobody edits the page. A number
# with a unit of time is left out wherever it stands, and so are the words that stand for an age by themselves, such as
# "yesterday". No grammar is needed for that, and an edit that changes nothing else is rare.

_AGE_WORDS: Final[dict[str, frozenset[str]]] = {
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

_WORD_EDGES: Final = " \t.,;:!?()[]{}<>\"'“”„«»‹›…·•–—-|/*+~׳॰\u200e\u200f"
_AGE_NUMBER: Final = re.compile(r"[0-9]{1,6}(?:[.,][0-9]{1,2})?")
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
    plain = word.strip(_WORD_EDGES).lower().replace("’", "'")
    plain = plain.partition("(")[0]  # "week(s)", which has lost its end
    plain = plain.rpartition("'")[2]  # "l'an"
    if plain in _AGE_WORDS["units"]:
        return "unit"
    if plain in _AGE_WORDS["ages"]:
        return "age"
    if plain[:1].isdigit():
        if _AGE_NUMBER.fullmatch(plain):
            return "number"
        glued = _GLUED.fullmatch(plain)
        return "age" if glued and glued[2] in _AGE_WORDS["units"] | _AGE_WORDS["glued_units"] else ""
    return "count" if plain in _AGE_WORDS["counts"] else ""
