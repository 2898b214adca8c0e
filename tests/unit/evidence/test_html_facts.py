"""Reading HTML: what a page says of itself, and what counts as its content."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware.evidence.html_facts import MAX_DEPTH, HtmlFacts, decode_html, parse_html
from sitemap_middleware.http.messages import KEPT_BODY_BYTES, MAX_HTML_BYTES


def reading(head: str = "", body: str = "<main><p>Text</p></main>") -> HtmlFacts:
    return parse_html(f"<!doctype html><html><head>{head}</head><body>{body}</body></html>".encode())


@pytest.mark.parametrize(
    ("head", "noindex"),
    [
        ("", False),
        ('<meta name="robots" content="noindex">', True),
        ('<meta name="googlebot" content="noindex">', True),
        ('<meta name="otherbot" content="noindex">', False),
        ('<meta name="robots" content="index, follow">', False),
        ('<meta name="robots" content="index"><meta name="robots" content="noindex">', True),
        ('<meta name="robots" content="nofollow,,\n NOINDEX ">', True),
        ('<meta name="robots" content="index, max-image-preview: none noindex">', True),
        ('<!--[if IE]><meta name="robots" content="noindex"><![endif]-->', False),
        ("""<script>'<meta name="robots" content="noindex">'</script>""", False),
        ('<noscript><meta name="robots" content="noindex"></noscript>', True),
        ('</head><body><meta name="robots" content="noindex">', True),
        ('<meta name="robots" content="unavailable_after: 2020-01-01, noindex">', True),
    ],
)
def test_robots_meta_tags(head: str, *, noindex: bool) -> None:
    assert reading(head).noindex is noindex


@pytest.mark.parametrize(
    "body",
    [
        "<script src='https://cdn.jsdelivr.net/npm/swagger-ui-dist@5/swagger-ui-bundle.js'></script>",
        "<script src='redoc.standalone.js'></script>",
        "<script src='https://cdn.jsdelivr.net/npm/@scalar/api-reference'></script>",
        "<script src='https://unpkg.com/@stoplight/elements/web-components.min.js'></script>",
        "<div id='swagger-ui'>\n</div><script src='/own.js'></script>",
        "<script>const ui = SwaggerUIBundle({url: '/openapi.json'})</script>",
        "<redoc spec-url='/openapi.json'></redoc>",
        "<div id='a'></div><script>Redoc.init('/openapi.json', {})</script>",
        "<rapi-doc spec-url='/openapi.json'></rapi-doc>",
        "<elements-api apiDescriptionUrl='/openapi.json'></elements-api>",
        "<script id='api-reference' data-url='/openapi.json'></script>",
        "<script>Scalar.createApiReference('#app', {url: '/openapi.json'})</script>",
        "<script>var oauth2 = window.opener.swaggerUIRedirectOauth2;</script>",
    ],
)
def test_documentation_of_an_api_is_known_by_what_it_loads_shows_and_calls(body: str) -> None:
    assert reading(body=body).is_api_documentation


@pytest.mark.parametrize(
    "body",
    [
        "<script src='/js/predoc.js'></script>",
        "<title>How to set up Swagger UI: OAuth2</title><pre>&lt;div id='swagger-ui'>&lt;/div> SwaggerUIBundle(</pre>",
        "<div id='swagger-ui' class='section'><h2>Swagger UI</h2></div><section id='api-reference'></section>",
        """<script type="application/ld+json">{"text": "SwaggerUIBundle("}</script>""",
    ],
)
def test_what_is_about_the_documentation_of_an_api_is_a_page(body: str) -> None:
    assert not reading(body=body).is_api_documentation


@pytest.mark.parametrize(
    ("html", "stated"),
    [
        ('<meta property="article:modified_time" content="2024-05-01T10:00:00+02:00">', "2024-05-01T08:00:00Z"),
        ('<meta property="article:modified_time" content="2024-05-01T23:00:00">', "2024-05-01"),
        ('<meta property="article:modified_time" content="2024-05-01">', "2024-05-01"),
        ('<meta property="article:modified_time" content="yesterday">', None),
        ('<meta itemprop="dateModified" content="2024-05-01">', "2024-05-01"),
        ('<time itemprop="dateModified" datetime="2024-05-01T10:00:00Z">May</time>', "2024-05-01T10:00:00Z"),
        (
            '<script type="application/ld+json">{"dateModified": "2024-05-01T10:00:00Z"}</script>',
            "2024-05-01T10:00:00Z",
        ),
        ('<script type="application/ld+json">{"@graph": [{}, {"dateModified": "2024-05-01"}]}</script>', "2024-05-01"),
        ('<time datetime="2024-05-01">May</time>', None),
        (
            '<meta property="article:modified_time" content="?"><meta itemprop="dateModified" content="2024-05-01">',
            "2024-05-01",
        ),
    ],
)
def test_what_a_page_states_of_its_modification(html: str, stated: str | None) -> None:
    assert reading(html).stated_date == stated


@pytest.mark.parametrize(
    ("body", "charset", "text"),
    [
        ("é".encode(), None, "é"),
        ("é".encode("latin-1"), "latin-1", "é"),
        (b"\xef\xbb\xbf" + "é".encode(), "latin-1", "é"),
        ("\ufeffé".encode("utf-16-le"), None, "é"),
        ("\ufeffé".encode("utf-16-be"), None, "é"),
        (b'<meta charset="windows-1252">\x80', None, '<meta charset="windows-1252">€'),
        (
            b"<meta http-equiv=x content='text/html; charset=koi8-r'>\xc1",
            None,
            "<meta http-equiv=x content='text/html; charset=koi8-r'>а",
        ),
        (b"x", "no-such-charset", "x"),
        (b"\xff", None, "\ufffd"),
        (b"\x81\xe9", "windows-1252", "\ufffdé"),
        (b" " * 1024 + b'<meta charset="windows-1252">\x80', None, " " * 1024 + '<meta charset="windows-1252">\ufffd'),
    ],
)
def test_charset_comes_from_bom_header_meta_or_utf_8(body: bytes, charset: str | None, text: str) -> None:
    assert decode_html(body, charset) == text


NOINDEX = b'<meta name="robots" content="noindex"><link rel="canonical" href="/a">'
TOO_DEEP = "<div>" * (MAX_DEPTH + 1)
UNREADABLE = {
    "too large": (b"x" * MAX_HTML_BYTES, "is larger than 640 kB"),
    "too deep": (TOO_DEEP.encode(), "nests too many elements"),
    "frames": (b"<html><frameset><frame></frameset></html>", "has no body"),
}


@pytest.mark.parametrize("body", UNREADABLE)
def test_of_html_that_no_reader_reads_the_head_alone_is_read(body: str) -> None:
    rest, reason = UNREADABLE[body]
    facts = parse_html(NOINDEX + rest)
    assert facts.digest is None
    assert facts.unread_reason.startswith(reason)
    assert facts.noindex
    assert facts.canonical == "/a"


SLOW = {
    "depth": "<div>" * 20_000,
    "options": "<select>" + "<option>x" * 60_000,
    "formatting": "".join(f"<font a{number}><p>" for number in range(8_000)),
    "quotes": "".join(f"<font a{number}='>' b><p></p>" for number in range(3_000)),
}


@pytest.mark.parametrize("html", SLOW.values(), ids=SLOW)
def test_html_that_takes_a_parser_long_is_read_in_time(html: str) -> None:
    began = time.perf_counter()
    for page in (NOINDEX.decode() + html, html[:20_000].rpartition("<")[0] + NOINDEX.decode()):
        assert parse_html(page.encode()).noindex
    assert time.perf_counter() - began < 5


LARGE = {
    "a list of products": "".join(
        f'<div class="card"><a href="/p/{number}"><img src="/i/{number}.jpg"></a><h3>Product {number}</h3>'
        f"<p>Some text on this product, in stock for {number * 7 % 900}</p><span>3 weeks ago</span></div>"
        for number in range(1_500)
    ),
    "chinese": "<p>中文文字这里的内容没有什么，天下大事前后。</p><p>3天前</p>" * 5_000,
}


@pytest.mark.parametrize("name", LARGE)
def test_a_large_page_that_people_read_has_a_digest(name: str) -> None:
    facts = parse_html(LARGE[name].encode())
    assert not facts.unread_reason
    assert facts.digest is not None


def test_of_a_body_that_is_cut_the_kept_part_is_read() -> None:
    for place, noindex in ((KEPT_BODY_BYTES - 200, True), (KEPT_BODY_BYTES, False)):
        body = b"<html><head>" + b" " * place + NOINDEX + b"x" * KEPT_BODY_BYTES
        assert parse_html(body, is_truncated=True).unread_reason == "is larger than 640 kB"
        assert parse_html(body, is_truncated=True).noindex is noindex


@given(
    st.binary(max_size=2000) | st.text("<>/ab=\"' !-&;", max_size=500).map(str.encode), st.none() | st.text(max_size=10)
)
def test_any_bytes_can_be_read_and_come_to_the_same_twice(body: bytes, charset: str | None) -> None:
    assert parse_html(body, charset) == parse_html(body, charset)


@pytest.mark.parametrize(
    "meta",
    [
        "<meta name=robots content=noindex>",
        "<META\nCONTENT = 'nofollow, noindex'\tname=\"Robots\"/>",
        "<meta name=robots name=x content=noindex content=index>",
        '<meta a=1>< meta><meta name=robots content=noindex><meta name=x content="y>',
    ],
    ids=range(4),
)
def test_robots_meta_counts_after_what_the_parser_may_not_read(meta: str) -> None:
    facts = parse_html(f"{TOO_DEEP}{meta}</head><body>x".encode())
    assert facts.noindex
    assert facts.digest is None
    assert not parse_html(f"{TOO_DEEP}<metadata name=robots content=noindex>".encode()).noindex


def test_other_metadata_counts_after_what_the_parser_may_not_read() -> None:
    after = "<link rel=canonical href=/a><link rel=canonical href=/b hreflang=de><meta http-equiv=refresh content='0; url=/c'>"
    facts = parse_html(f"{TOO_DEEP}{after}".encode())
    assert (facts.noindex, facts.canonical, facts.instant_refresh) == (False, "/a", "/c")


@pytest.mark.parametrize("before", ["<script src='a.js'/>", '<script\nsrc="a" />', "<textarea/><iframe a='/'/>"])
def test_element_of_xhtml_that_has_no_content_hides_no_meta_tag(before: str) -> None:
    page = f"<html><head>{before}<meta name='robots' content='noindex'/></head><body>x</body></html>".encode()
    assert parse_html(page, is_xml=True).noindex
    assert not parse_html(page).noindex, "in HTML, browsers read the meta tag as text"
