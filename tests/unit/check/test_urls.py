"""The URLs that break rules on `loc`, and those that look as if they did."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware.check.url_elements import check_loc, is_local

SITE = "https://example.com"
LEGAL = st.text("abz09AZ-._~!$&'()*+,;=:@/", max_size=20)


def codes(url: str) -> list[str]:
    return [code.removeprefix("loc-") for code, _ in check_loc(url).problems]


@pytest.mark.parametrize(
    "url",
    [
        SITE,
        f"{SITE}/",
        f"{SITE}:8443/a",
        "http://203-0-113-7.example.com/a_b/~c/d.html",
        f"{SITE}/wiki/Rye_(bread)",
        f"{SITE}/100%25-rye",
        f"{SITE}/caf%C3%A9?q=caf%C3%A9&page=2",
        f"{SITE}/.well-known/security",
        f"{SITE}/a...b/..c/d..",
        f"{SITE}/@user/posts:1;v=2,3",
        f"{SITE}/?session=2024&sid=7&utm=1&page_id=3",
        f"{SITE}/menu.pdf",
        f"{SITE}/docs/package.json/",
        "https://xn--bckerei-5wa.example/",
        "https://[2606:4700:4700::1111]/a",
        "https://a_b.example.com/",
        "https://example.com./a",
    ],
)
def test_good_url(url: str) -> None:
    checked = check_loc(url)
    assert (codes(url), bool(checked.host)) == ([], True)


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("", "missing"),
        ("//example.com/a", "relative"),
        ("example.com:8000/a", "relative"),
        ("mailto:ann@example.com", "scheme"),
        ("javascript:void(0)", "scheme"),
        ("https://", "invalid"),
        ("https://-a.example/", "invalid"),
        (f"https://{'a' * 64}.example/", "invalid"),
        (f"https://{'ü' * 70}.example/", "invalid"),
        (f"https://{'a.' * 130}example/", "invalid"),
        ("https://example.com:port/", "invalid"),
        ("https://[::1/", "invalid"),
        (f"{SITE}/a\nb", "blank"),
        (f"{SITE}/a\u200bb", "blank"),
        ("https://user@example.com/", "credentials"),
        (f"{SITE}/a#b", "fragment"),
        (f"{SITE}/a?b=1&amp;c=2", "double-escaped"),
        (f"{SITE}/caf%25C3%25A9", "double-encoded"),
        ("https://bäckerei.example/", "not-encoded"),
        (f"{SITE}/a%zz", "percent-invalid"),
        (f"{SITE}/a\\b", "unsafe-character"),
        (f"{SITE}/posts/<int:id>", "placeholder"),
        (f"{SITE}/posts/%7Bslug%7D", "placeholder"),
        (f"{SITE}/posts/[slug]", "placeholder"),
        (f"{SITE}/[[...path]]", "placeholder"),
        (f"{SITE}/a?id=${{id}}", "placeholder"),
        (f"{SITE}/a;jsessionid=0f3c9a1b", "session-id"),
        (f"{SITE}/a?b=1&%73id=0f3c9a1b2d", "session-id"),
        (f"{SITE}/a?utm%5Fsource=x", "tracking"),
        (f"{SITE}/a/%2e%2E/b", "dot-segment"),
        (f"{SITE}/a//b", "double-slash"),
        ("HTTPS://example.com/", "host-case"),
        ("http://example.com:80/", "default-port"),
        (f"{SITE}/app.JS", "asset"),
    ],
)
def test_faulty_url(url: str, code: str) -> None:
    assert codes(url) == [code]


LOCAL_NAMES = ["localhost", "app", "site.local", "kubernetes.default.svc"]
LOCAL_ADDRESSES = ["127.0.0.1:5000", "[::1]:8000", "169.254.169.254", "224.0.0.1", "[::ffff:10.0.0.1]"]
LOCAL_BY_NAT64 = ["[64:ff9b::7f00:1]"]
PUBLIC = ["example.com", "8.8.8.8", "[64:ff9b::8.8.8.8]", "[::ffff:8.8.8.8]", "[2606:4700:4700::1111]"]


@pytest.mark.parametrize("host", [*LOCAL_NAMES, *LOCAL_ADDRESSES, *LOCAL_BY_NAT64, *PUBLIC])
def test_local_hosts(host: str) -> None:
    assert is_local(host) is (host not in PUBLIC)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://example.com", "https://EXAMPLE.com:443/"),
        ("https://example.com/caf%c3%a9", "https://example.com/café"),
        ("https://example.com/%7Eann", "https://example.com/~ann"),
        ("https://example.com/a#b", "https://example.com/a"),
    ],
)
def test_spellings_of_one_page(one: str, other: str) -> None:
    assert check_loc(one).page == check_loc(other).page


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://example.com/a", "https://example.com/a/"),
        ("https://example.com/a", "http://example.com/a"),
        ("https://example.com/a", "https://www.example.com/a"),
        ("https://example.com/a", "https://example.com/a?b=/a"),
        ("https://example.com", "https://example.com?a=1"),
        ("https://example.com/a%2Fb", "https://example.com/a/b"),
        ("https://example.com/a", "https://example.com/A"),
    ],
)
def test_different_pages(one: str, other: str) -> None:
    assert check_loc(one).page != check_loc(other).page


@given(LEGAL, LEGAL)
def test_legal_characters_break_no_rule_on_characters(path: str, query: str) -> None:
    found = codes(f"{SITE}/{path}?{query}")
    assert {*found} <= {"dot-segment", "double-slash", "double-escaped", "session-id", "asset"}


@given(st.text(max_size=40))
def test_any_text_is_checked(text: str) -> None:
    for url in (text, f"{SITE}/{text}", f"https://{text}"):
        checked = check_loc(url)
        assert checked.host or checked.problems
        assert check_loc(checked.page).page == checked.page
