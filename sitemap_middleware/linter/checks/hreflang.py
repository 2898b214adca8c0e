"""Checks the versions of one page in other languages. `hreflang_links_database` has the links back from other pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ..message import Finding
from ..message_collector import quoted
from ..rules import hreflang as rules
from ..sitemap_element_names import XHTML
from .language_codes import has_ignored_region, is_hreflang
from .loc import CheckedLoc, check_loc, normal_url

LINK: Final = f"{XHTML} link"
"""The element that names a version."""


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
            findings.append(((rules.DUPLICATE, f"{by_code[code]} is {code}, too"), position))
    return Versions([*named.values()], frozenset(url for _, url in named.values()), next(iter(named), 0), findings)


def _read(attributes: Mapping[str, str]) -> tuple[str, str, Sequence[Finding]]:
    """Return the code and the URL of a version, and what is wrong. The URL is empty if the link names no version."""
    rel, code, href = attributes.get("rel", ""), attributes.get("hreflang", ""), attributes.get("href", "")
    for name, value in (("rel", rel), ("hreflang", code), ("href", href)):
        if not value.strip():
            return "", "", [(rules.ATTRIBUTES, f"{name} is missing")]
    if rel.strip() != "alternate":
        return "", "", [(rules.ATTRIBUTES, f"rel is {quoted(rel)}")]
    findings, code, loc = list[Finding](), code.strip(), check_loc(href, is_page=False)
    if not is_hreflang(code):
        findings.append((rules.CODE, f"{quoted(code)} is not the code of a language"))
    elif has_ignored_region(code):
        findings.append((rules.REGION, f"the region of {quoted(code)} is ignored"))
    if not loc.host:
        findings.append((rules.RELATIVE, f"{quoted(href)} is not an absolute URL"))
    return code.lower(), normal_url(loc) if loc.host else "", findings


def check_own_version(versions: Versions, page: CheckedLoc) -> Finding | None:
    """Check that the versions of a page name the page itself."""
    is_named = page.url in versions.urls or normal_url(page) in versions.urls  # the first is quick, and mostly true
    if versions.named and page.host and not is_named:
        return rules.SELF_MISSING, "the versions of the page do not name the page itself"
    return None
