"""Documents of all kinds: what is reported of each, however its bytes arrive."""

from __future__ import annotations

import asyncio
import gzip
from pathlib import Path

import pytest

from sitemap_middleware.check import run_state
from sitemap_middleware.check.run_check import check_sitemap
from sitemap_middleware.check.run_state import CheckSettings
from sitemap_middleware.check.sources import FileSource
from sitemap_middleware.exceptions import SitemapError

from .test_rules import FAULTY, check
from .web_site import NAMESPACE, index, urlset

HOME = "<url><loc>https://example.com/</loc></url>"
IMAGES = 'xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"'
VIDEOS = 'xmlns:video="http://www.google.com/schemas/sitemap-video/1.1"'
NEWS = 'xmlns:news="http://www.google.com/schemas/sitemap-news/0.9"'
LINK = '<xhtml:link xmlns:xhtml="http://www.w3.org/1999/xhtml" rel="%s" hreflang="%s" href="%s"/>'
SPELLINGS = (("https", "example.com"), ("http", "example.com"), ("https", "www.example.com"))


def listed(*entries: str, more: str = "") -> str:
    return f"<urlset {NAMESPACE} {more}>{''.join(entries)}</urlset>"


def url(inside: str) -> str:
    return f"<url><loc>https://example.com/</loc>{inside}</url>"


def article(date: str = "2026-01-31", language: str = "") -> str:
    named = f"<news:name>Times</news:name><news:language>{language}</news:language>"
    publication = f"<news:publication>{named}</news:publication>" if language else ""
    dated = f"<news:publication_date>{date}</news:publication_date><news:title>a</news:title>"
    return listed(url(f"<news:news>{publication}{dated}</news:news>"), more=NEWS)


def videos(*inside: str) -> str:
    return listed(url("".join(f"<video:video>{VIDEO}{more}</video:video>" for more in inside)), more=VIDEOS)


VIDEO = (
    "<video:thumbnail_loc>https://example.com/a.jpg</video:thumbnail_loc><video:title>Rye</video:title>"
    "<video:description>Rye</video:description><video:content_loc>https://example.com/a.mp4</video:content_loc>"
)

DOCUMENTS: dict[str, tuple[str | bytes, list[str]]] = {
    "nothing": ("", ["document-empty"]),
    "blanks": (" \n ", ["document-empty"]),
    "blanks before the declaration": (" " * 5_000 + f'<?xml version="1.0"?>{listed(HOME)}', ["xml-leading-content"]),
    "UTF-16": ("<a/>".encode("utf-16"), ["xml-encoding"]),
    "JSON": ('{"urls": []}', ["xml-root"]),
    "text before the declaration": (f'Warning: a\n<?xml version="1.0"?>{listed(HOME)}', ["xml-leading-content"]),
    "XHTML": ('<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><body/></html>', ["fetch-html"]),
    "text in the middle of an entry": (listed(f"<url>text{HOME[5:]}"), ["xml-stray-text"]),
    "three spellings": (
        listed(*(f"<url><loc>{scheme}://{host}/a</loc></url>" for scheme, host in SPELLINGS)),
        ["loc-mixed-schemes", "loc-other-host"],
    ),
    "text twice": (listed("text", HOME, "text"), ["xml-stray-text", "xml-stray-text"]),
    "stylesheet": (f"<?xml-stylesheet href='a'?><?other a?>{listed(HOME)}", ["xml-stylesheet"]),
    "encoding that is unknown": (f'<?xml version="1.0" encoding="klingon"?>{listed(HOME)}', ["xml-encoding-declared"]),
    "declaration without encoding": (f'<?xml version="1.0" standalone="yes"?>{listed(HOME)}', []),
    "element without namespace": (listed(url('<lastmod xmlns="">2024</lastmod>')), ["xml-misplaced-element"]),
    "element in a value": (listed("<url><loc>https://example.com/<b/></loc></url>"), ["xml-unknown-element"]),
    "attribute with a namespace": (listed('<url><loc xml:lang="en">https://example.com/</loc></url>'), []),
    "name in upper case": (listed(url("<LastMod>2024-05-01</LastMod>")), ["xml-unknown-element"]),
    "other extension": (listed(HOME, '<x:a xmlns:x="urn:x"/>', url('<x:b xmlns:x="urn:x"/>')), ["loc-duplicate"]),
    "sitemap without URL": (index(""), ["loc-missing"]),
    "lines that are not UTF-8": (b"https://example.com/\nhttps://example.com/\xff\n", ["xml-encoding"]),
    "lines and blank lines": ("https://example.com/\n\nabout", ["loc-relative"]),
    "feed without links": ("<rss version='2.0'><channel/></rss>", []),
    "year": (listed(url("<lastmod>2024</lastmod>")), ["lastmod-reduced"]),
    "first day": (listed(url("<lastmod>0001-01-01T00:00:00+14:00</lastmod>")), ["lastmod-too-old"]),
    "today in the east": (listed(url("<lastmod>2026-02-01</lastmod>")), []),
    "stray element of images": (listed(url("<image:loc>a</image:loc>"), more=IMAGES), ["image-unknown"]),
    "durations with many zeros": (
        videos("<video:duration>0000000011234567</video:duration>", "<video:duration>00754</video:duration>"),
        ["video-duration"],
    ),
    "player with attributes": (
        videos('<video:player_loc autoplay="ap=1">https://example.com/p</video:player_loc>'),
        ["video-outdated"],
    ),
    "restriction without relationship": (videos("<video:platform/>"), ["video-value"]),
    "article without publication": (article(), ["news-incomplete", "news-incomplete"]),
    "article of tomorrow": (article("2026-02-03", "en"), ["news-date"]),
    "language of three letters": (article(language="fil"), []),
    "link of another rel": (listed(url(LINK % ("canonical", "en", "https://example.com/"))), ["hreflang-attributes"]),
    "long code": (listed(url(LINK % ("alternate", "deu", HOME[10:-12]))), ["hreflang-code"]),
    "link to nothing": (listed(url(LINK % ("alternate", "en", " "))), ["hreflang-attributes"]),
    "no link in return from another host": (
        listed(
            url(
                "".join(
                    LINK % ("alternate", code, f"https://example.{top}/") for code, top in (("en", "com"), ("de", "de"))
                )
            )
        ),
        [],
    ),
}


@pytest.mark.parametrize("name", [*DOCUMENTS])
@pytest.mark.parametrize("is_compressed", [False, True], ids=["plain", "gzip"])
def test_document_gives_its_codes(name: str, is_compressed: bool, tmp_path: Path) -> None:
    content, codes = DOCUMENTS[name]
    body = content.encode() if isinstance(content, str) else content
    file = tmp_path / "sitemap.xml"
    file.write_bytes(gzip.compress(body) + b"\0\0" if is_compressed else body)
    findings = check(
        file, "https://example.com/sitemap.xml", CheckSettings({"index-file-missing", "hreflang-not-listed"})
    )
    assert [finding.code for finding in findings] == codes


def codes_of(file: Path, body: bytes) -> list[str]:
    file.write_bytes(body)
    return [finding.code for finding in check(file, None, CheckSettings())]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (gzip.compress(urlset("/a").encode())[:-4], "fetch-gzip-broken"),
        (gzip.compress(b" " * 1_000_000)[:40] + b"damaged" * 10_000, "fetch-gzip-broken"),
        (b"\x1f", "xml-root"),
    ],
    ids=["cut off", "damaged", "half a magic number"],
)
def test_bytes_that_cannot_be_decompressed(body: bytes, code: str, tmp_path: Path) -> None:
    assert codes_of(tmp_path / "sitemap.xml", body) == [code]


@pytest.mark.parametrize(("wrong", "code"), [(b"a&b=c</a>", "xml-ampersand"), (b"a\xffb</a>", "xml-encoding")])
def test_mistakes_between_two_pieces_are_recognised(wrong: bytes, code: str, tmp_path: Path) -> None:
    start = listed(HOME).removesuffix("</urlset>").encode()
    for length in range(65_530, 65_540):
        assert codes_of(tmp_path / "sitemap.xml", start.ljust(length) + b"<a>" + wrong) == [code]


def test_report_shortens_what_is_long(tmp_path: Path) -> None:
    (tmp_path / "sitemap.txt").write_text(f"https://example.com/\n/{'a' * 5_000}\n")
    (finding,) = check(tmp_path / "sitemap.txt", None, CheckSettings())
    assert (finding.code, len(finding.url), len(finding.text) <= 500) == ("loc-too-long", 500, True)


def test_urls_beyond_the_memory_of_a_run_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_state, "MAX_KEPT_BYTES", 1_000)
    for name in "abcdef":
        (tmp_path / f"{name}.xml").write_text(urlset(*(f"https://example.com/{name}/{number}" for number in range(3))))
    result = asyncio.run(check_sitemap(FileSource(tmp_path), CheckSettings()))
    assert (len(result.urls), len(result.unread)) == (12, 1)
    assert [finding.text for finding in result.findings] == ["the sitemap has 6 documents, and 4 were checked"]


def test_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SitemapError, match="cannot be read"):
        asyncio.run(check_sitemap(FileSource(tmp_path / "missing.xml"), CheckSettings()))


@pytest.mark.parametrize("name", ["%00", "a" * 300, "circle", "%F0%9F.xml"], ids=["null", "long", "circle", "bytes"])
def test_index_that_names_what_no_file_can_be(name: str, tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    assert "index-file-missing" in codes_of(tmp_path / "index.xml", index(f"https://example.com/{name}").encode())


TEXTS = {
    "end inside an element": (listed(HOME).removesuffix("</url></urlset>"), "the document ends inside the element url"),
    "blank line": (
        f'\n<?xml version="1.0"?>{listed(HOME)}',
        "the XML declaration stands after a blank, an empty line or a comment, and not first",
    ),
    "end of another element": (
        listed(HOME).replace("</url>", "</loc>"),
        "an end tag is not that of the open element url",
    ),
    "two documents": (listed(HOME) * 2, "something follows the end of the root element"),
    "second declaration": (
        f'<?xml version="1.0"?><?xml version="1.0"?>{listed(HOME)}',
        "the XML declaration stands inside the document",
    ),
}


@pytest.mark.parametrize("name", [*TEXTS])
def test_message_says_what_is_wrong_in_the_file(name: str, tmp_path: Path) -> None:
    content, text = TEXTS[name]
    (tmp_path / "sitemap.xml").write_text(content, "utf-8")
    found = check(tmp_path / "sitemap.xml", "https://example.com/sitemap.xml", CheckSettings())
    assert [finding.text for finding in found] == [text]


def dated(start: int, many: int, date: str) -> str:
    return "".join(
        f"<url><loc>https://example.com/{number}</loc><lastmod>{date}</lastmod></url>"
        for number in range(start, start + many)
    )


def found_in(folder: Path) -> list[tuple[str, str, str]]:
    found = asyncio.run(check_sitemap(FileSource(folder), CheckSettings())).findings
    return [(finding.code, Path(finding.document).name, finding.text) for finding in found]


def test_values_that_are_nearly_all_equal_are_told_of_a_document_or_of_all(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(listed(dated(0, 40, "2024-05-01"), dated(40, 2, "2024-05-02")))
    others = "".join(dated(100 + day, 1, f"2024-06-{day:02}") for day in range(1, 31))
    (tmp_path / "b.xml").write_text(listed(others))
    assert found_in(tmp_path) == [("lastmod-all-equal", "a.xml", "40 of 42 URLs have lastmod 2024-05-01")]
    (tmp_path / "b.xml").write_text(listed(dated(100, 30, "2024-05-01")))
    assert found_in(tmp_path) == [("lastmod-all-equal", tmp_path.name, "70 of 72 URLs have lastmod 2024-05-01")]


@pytest.mark.parametrize("code", ["lastmod-index-older", "index-file-missing"])
def test_folder_is_checked_like_its_index(code: str) -> None:
    folder = FAULTY / code
    assert [(found.code, found.document) for found in check(folder, "https://example.com/", CheckSettings())] == [
        (found.code, found.document)
        for found in check(folder / "sitemap.xml", "https://example.com/sitemap.xml", CheckSettings())
    ]


def test_of_two_schemes_each_url_of_the_rarer_one_is_named(tmp_path: Path) -> None:
    urls = [f"https://example.com/{number}" for number in range(5)] + ["http://example.com/a", "http://example.com/b"]
    (tmp_path / "a.xml").write_text(urlset(*urls))
    assert (
        found_in(tmp_path)
        == [
            ("loc-mixed-schemes", "a.xml", "other URLs that begin with https://example.com: 5"),
        ]
        * 2
    )
