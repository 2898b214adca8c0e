"""Decides which language codes hreflang and Google News accept."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final


def _codes(*lines: str) -> frozenset[str]:
    return frozenset(code for line in lines for code in line.split())


LANGUAGES: Final = _codes(
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el",
    "en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik in io is it",
    "iu iw ja ji jv jw ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mo",
    "mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg sh",
    "si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh",
    "yi yo za zh zu",
)
"""ISO 639-1, with the codes that were valid before."""

REGIONS: Final = _codes(
    "ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bl bm bn bo bq br bs bt bv bw by bz",
    "ca cc cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg eh er es et fi fj fk fm fo",
    "fr ga gb gd ge gf gg gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm hn hr ht hu id ie il im in io iq ir is it je",
    "jm jo jp ke kg kh ki km kn kp kr kw ky kz la lb lc li lk lr ls lt lu lv ly ma mc md me mf mg mh mk ml mm mn mo",
    "mp mq mr ms mt mu mv mw mx my mz na nc ne nf ng ni nl no np nr nu nz om pa pe pf pg ph pk pl pm pn pr ps pt pw",
    "py qa re ro rs ru rw sa sb sc sd se sg sh si sj sk sl sm sn so sr ss st sv sx sy sz tc td tf tg th tj tk tl tm",
    "tn to tr tt tv tw tz ua ug um us uy uz va vc ve vg vi vn vu wf ws xk ye yt za zm zw",
)
"""ISO 3166-1, with Kosovo."""

IGNORED_REGIONS: Final = frozenset({"eu", "un", "uk"})
"""Google says that it ignores these."""

_CODE: Final = re.compile(r"([a-z]{2,3})(?:-([a-z]{4}))?(?:-([a-z]{2}|[0-9]{3}))?", re.IGNORECASE)
_MAX_CODE_CHARS: Final = len("abc-abcd-123")
_NEWS: Final = re.compile(r"[a-z]{2,3}|zh-(?:cn|tw)", re.IGNORECASE)


def is_hreflang(code: str) -> bool:
    """Whether a code is valid for hreflang. Any language of three letters is accepted: some have no code of two."""
    return len(code) <= _MAX_CODE_CHARS and _is_hreflang(code)  # so that the cache is small, whatever it is given


@lru_cache(1024)
def _is_hreflang(code: str) -> bool:
    if code.lower() == "x-default":
        return True
    match = _CODE.fullmatch(code)
    if match is None:
        return False
    language, _, region = match.groups()
    if len(language) == 2 and language.lower() not in LANGUAGES:
        return False
    return region is None or region.isdigit() or region.lower() in REGIONS | IGNORED_REGIONS


def has_ignored_region(code: str) -> bool:
    """Whether a code names a region that Google ignores."""
    return code.lower().rpartition("-")[2] in IGNORED_REGIONS and "-" in code


def is_language_of_news(code: str) -> bool:
    """Whether a code is valid for news."""
    return _NEWS.fullmatch(code) is not None and (len(code) != 2 or code.lower() in LANGUAGES)
