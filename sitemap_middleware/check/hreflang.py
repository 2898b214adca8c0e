"""Checks the versions of one page in other languages. `database` has the links back from other pages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from .findings import Finding, quoted
from .urls import CheckedLoc, check_loc, normal_url

XHTML: Final = "http://www.w3.org/1999/xhtml"
LINK: Final = f"{XHTML} link"
"""The element that names a version."""


def _codes(text: str) -> frozenset[str]:
    return frozenset(text.split())


LANGUAGES: Final = _codes(
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

REGIONS: Final = _codes(
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

IGNORED_REGIONS: Final = frozenset({"eu", "un", "uk"})
"""Google says that it ignores these."""

_CODE: Final = re.compile(r"([a-z]{2,3})(?:-[a-z]{4})?(?:-([a-z]{2}|[0-9]{3}))?")
_NEWS: Final = re.compile(r"[a-z]{2,3}|zh-(?:cn|tw)", re.IGNORECASE)


def is_hreflang(code: str) -> bool:
    """Whether a code is valid for hreflang. Any language of three letters is accepted: some have no code of two."""
    code = code.lower()
    match = _CODE.fullmatch(code)
    if match is None:
        return code == "x-default"
    language, region = match.groups()
    if len(language) == 2 and language not in LANGUAGES:
        return False
    return region is None or region.isdigit() or region in REGIONS or region in IGNORED_REGIONS


def has_ignored_region(code: str) -> bool:
    """Whether a code names a region that Google ignores."""
    return code.lower().rpartition("-")[2] in IGNORED_REGIONS and "-" in code


def is_language_of_news(code: str) -> bool:
    """Whether a code is valid for news."""
    return _NEWS.fullmatch(code) is not None and (len(code) != 2 or code.lower() in LANGUAGES)


class Versions(NamedTuple):
    """The versions that an entry names."""

    named: Sequence[tuple[str, str]]
    """Their codes in lower case, with their URLs as `normal_url` gives them."""
    urls: frozenset[str]
    """Their URLs."""
    first: int
    """The position of the first of them among the links."""
    findings: Sequence[tuple[Finding, int]]
    """What is wrong, with the position of the link."""


def read_versions(links: Sequence[Mapping[str, str]]) -> Versions:
    """Return the versions that links name by their attributes, and what is wrong with them."""
    read = [_read(attributes) for attributes in links]
    findings = [(finding, position) for position, (_, _, found) in enumerate(read) for finding in found]
    named = {position: (code, url) for position, (code, url, _) in enumerate(read) if url}
    by_code = dict[str, str]()
    for position, (code, url) in named.items():
        if by_code.setdefault(code, url) != url:
            findings.append((("hreflang-duplicate", f"{by_code[code]} is {code}, too"), position))
    return Versions([*named.values()], frozenset(url for _, url in named.values()), next(iter(named), 0), findings)


def _read(attributes: Mapping[str, str]) -> tuple[str, str, Sequence[Finding]]:
    """Return the code and the URL of a version, and what is wrong. The URL is empty if the link names no version."""
    rel, code, href = attributes.get("rel", ""), attributes.get("hreflang", ""), attributes.get("href", "")
    for name, value in (("rel", rel), ("hreflang", code), ("href", href)):
        if not value.strip():
            return "", "", [("hreflang-attributes", f"{name} is missing")]
    if rel.strip() != "alternate":
        return "", "", [("hreflang-attributes", f"rel is {quoted(rel)}")]
    findings, code, loc = list[Finding](), code.strip(), check_loc(href, is_page=False)
    if not is_hreflang(code):
        findings.append(("hreflang-code", f"{quoted(code)} is not the code of a language"))
    elif has_ignored_region(code):
        findings.append(("hreflang-region", f"the region of {quoted(code)} is ignored"))
    if not loc.host:
        findings.append(("hreflang-url", f"{quoted(href)} is not an absolute URL"))
    return code.lower(), normal_url(loc) if loc.host else "", findings


def check_own_version(versions: Versions, page: CheckedLoc) -> Finding | None:
    """Check that the versions of a page name the page itself."""
    is_named = page.url in versions.urls or normal_url(page) in versions.urls  # the first is quick, and mostly true
    if versions.named and page.host and not is_named:
        return "hreflang-self-missing", "the versions of the page do not name the page itself"
    return None
