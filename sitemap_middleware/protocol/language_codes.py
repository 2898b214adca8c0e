"""The codes of languages in sitemaps: of the versions of a page (hreflang), and of news."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


_LANGUAGES: Final = words(
    """
    aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el
    en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik in io is it
    iu iw ja ji jv jw ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mo
    mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg sh
    si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh
    yi yo za zh zu
    """
)
"""ISO 639-1, with the codes that were valid before."""

_LONG_CODES: Final = words(
    "ara bul ces chi cze dan deu dut ell eng est fin fra fre ger gre heb hin hrv hun ind ita jpn kor lav lit nld nor"
    " pol por ron rum rus slk slo slv spa srp swe tha tur ukr vie zho"
)
"""The most usual codes of ISO 639-2 that are mistakes: these languages have a code of two letters."""

_REGIONS: Final = words(
    """
    ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bl bm bn bo bq br bs bt bv bw by bz
    ca cc cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg eh er es et fi fj fk fm fo
    fr ga gb gd ge gf gg gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm hn hr ht hu id ie il im in io iq ir is it je
    jm jo jp ke kg kh ki km kn kp kr kw ky kz la lb lc li lk lr ls lt lu lv ly ma mc md me mf mg mh mk ml mm mn mo
    mp mq mr ms mt mu mv mw mx my mz na nc ne nf ng ni nl no np nr nu nz om pa pe pf pg ph pk pl pm pn pr ps pt pw
    py qa re ro rs ru rw sa sb sc sd se sg sh si sj sk sl sm sn so sr ss st sv sx sy sz tc td tf tg th tj tk tl tm
    tn to tr tt tv tw tz ua ug um us uy uz va vc ve vg vi vn vu wf ws xk ye yt za zm zw
    """
)
"""ISO 3166-1, with Kosovo."""

_IGNORED_REGIONS: Final = frozenset({"eu", "un", "uk"})
"""Google says that it ignores these."""

_CODE: Final = re.compile(r"([a-z]{2,3})(?:-[a-z]{4})?(?:-([a-z]{2}|[0-9]{3}))?")
_NEWS_CODE: Final = re.compile(r"[a-z]{2,3}|zh-(?:cn|tw)")

X_DEFAULT: Final = "x-default"
"""The code of the page for visitors whose language no version has."""

_MAX_CODE_CHARS: Final = 12
"""Characters of the longest code: a language, a script and a region."""


def hreflang_fault(code: str) -> Literal["code", "region"] | None:
    """What is wrong with the code of a version: it names no language, or its region is ignored."""
    if code.lower() == X_DEFAULT:
        return None
    match = _CODE.fullmatch(code.lower()) if code.isascii() else None
    language, region = match.groups() if match else ("", None)
    # Of the languages with codes of three letters, some have none of two.
    if language in _LONG_CODES or (len(language) != 3 and language not in _LANGUAGES):
        return "code"
    if region in _IGNORED_REGIONS:
        return "region"
    return None if region is None or region.isdigit() or region in _REGIONS else "code"


def is_news_language(code: str) -> bool:
    """Whether search engines read this code, in lower case, as the language of a publication."""
    return _NEWS_CODE.fullmatch(code) is not None and (len(code) != 2 or code in _LANGUAGES)


@lru_cache(1000)
def language_code(value: str) -> str | None:
    """A language as hreflang writes it, such as "de-AT" for "de_at"; None if it is none that search engines know."""
    if not value.isascii() or len(value) > _MAX_CODE_CHARS:
        return None
    language, *others = value.replace("_", "-").split("-")
    code = "-".join([language.lower(), *(part.title() if len(part) == 4 else part.upper() for part in others)])
    return None if code.lower() == X_DEFAULT or hreflang_fault(code) else code
