"""What the developer says of a page beyond the protocol: images, videos, news, and versions in other languages."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import flask
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sitemap_middleware import Entry, News, OptionError, SitemapMiddleware, Video, sitemap
from sitemap_middleware.check.run_state import CheckSettings
from sitemap_middleware.documents import xml

from ...support.documents import locs, parsed
from ...support.sample_sites import Clock
from ...support.wire import Answer, RequestSpec, wsgi
from ..check.test_rules import check

NOW = 1_750_000_000
TODAY = datetime.fromtimestamp(NOW, UTC)
BASE = "https://example.com"
FILE = {"thumbnail_loc": "/t.jpg", "content_loc": "/v.mp4"}
VIDEO = Video(**FILE, title="Rye & salt", description="How to bake")
HOUR = 60 * 60


def news(published: Any = TODAY, **given: Any) -> News:
    return News(
        **{"name": "The Loaf", "language": "en", "publication_date": published, "title": "Rye <rises>", **given}
    )


class Bakery:
    """A site with a page that `@sitemap` describes, and the items that the test gives."""

    def __init__(self, items: Any = (), root: str = "", store: str = "memory://", **about: Any) -> None:
        app = flask.Flask("bakery", static_folder=None)
        app.add_url_rule("/about", "about", sitemap(**about)(lambda: "<!doctype html><p>About"))
        app.add_url_rule(
            "/<slug>",
            "bread",
            sitemap(values=items if callable(items) else lambda: items)(lambda slug: f"<!doctype html><p>{slug}"),
        )
        self.clock = Clock(NOW)
        self.root = root
        self.app = SitemapMiddleware(
            app, base_url=BASE, store=store, clock=self.clock, report="/report", authorize=lambda _: True
        )

    def get(self, path: str = "/sitemap.xml", query: str = "", **headers: str) -> Answer:
        def server(environ: dict[str, Any], start_response: Any) -> Any:
            return self.app({**environ, "SCRIPT_NAME": self.root, "wsgi.multithread": True}, start_response)

        return wsgi(server, RequestSpec(path, query=query, host="example.com", headers=[*headers.items()]))


def said(answer: Answer, path: str) -> str:
    """What the entry of a path says after its loc."""
    parsed(answer.body)
    return next(line.partition("</loc>")[2] for line in answer.text.splitlines() if f"{BASE}{path}</loc>" in line)


# What is said, and where


def test_decorators_and_entries_say_what_their_pages_show() -> None:
    items = [
        Entry({"slug": "rye"}, images=["a.jpg", "/b.jpg?w=1&h=2", "https://cdn.example/ü.jpg", "/b.jpg?w=1&amp;h=2"]),
        Entry({"slug": "dvd"}, videos=[VIDEO]),
        Entry(
            {"slug": "own-player"},
            videos=[Video(thumbnail_loc="/t", title="a", description="b", player_loc="/own-player")],
        ),
        Entry({"slug": "news"}, news=news()),
        {"slug": "plain"},
    ]
    answer = Bakery(items, images=["/oven.jpg"], lastmod="2025-06-01").get()
    assert said(answer, "/about").startswith(
        "<lastmod>2025-06-01</lastmod><image:image><image:loc>https://example.com/oven"
    )
    assert re.findall("<image:loc>(.*?)</image:loc>", said(answer, "/rye")) == [
        f"{BASE}/a.jpg",
        f"{BASE}/b.jpg?w=1&amp;h=2",
        "https://cdn.example/%C3%BC.jpg",
    ]
    assert said(answer, "/dvd") == (
        f"<video:video><video:thumbnail_loc>{BASE}/t.jpg</video:thumbnail_loc><video:title>Rye &amp; salt</video:title>"
        "<video:description>How to bake</video:description>"
        f"<video:content_loc>{BASE}/v.mp4</video:content_loc></video:video></url>"
    )
    assert said(answer, "/news") == (
        "<news:news><news:publication><news:name>The Loaf</news:name><news:language>en</news:language>"
        "</news:publication><news:publication_date>2025-06-15T15:06:40Z</news:publication_date>"
        "<news:title>Rye &lt;rises&gt;</news:title></news:news></url>"
    )
    assert said(answer, "/plain") == said(answer, "/own-player") == "</url>"


def test_a_document_declares_only_the_namespaces_that_it_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml, "MAX_ENTRIES", 2)
    shop = Bakery([Entry({"slug": "a"}, images=["/a.jpg"]), "b", Entry({"slug": "c"}, news=news()), "d"])
    assert shop.get().text.count("xmlns") == 1
    declared = [re.findall("xmlns:([a-z]+)", shop.get(f"/sitemap-bread-{number}.xml").text) for number in (1, 2)]
    assert declared == [["image"], ["news"]]


def test_paths_of_images_are_those_of_links_below_the_root_path() -> None:
    answer = Bakery(root="/shop", images=["a.jpg", "/shop/b.jpg"]).get()
    assert re.findall("<image:loc>(.*?)</", answer.text) == [f"{BASE}/shop/a.jpg", f"{BASE}/shop/b.jpg"]


@pytest.mark.parametrize(
    ("path", "alternates", "expected"),
    [
        ("/about", {"en": "/about", "de-AT": "https://example.at/"}, {"en": "/about", "de-AT": "https://example.at/"}),
        ("/about", {"de": "/de/about"}, {"de": "/de/about", "x-default": "/about"}),
        ("/about", {"de": "/de/about", "x-default": "/de/about"}, {}),  # nobody says what language the page has
        ("/de/about", {"en": "/about"}, {"en": "/about", "de": "/de/about"}),
        ("/about", {}, {}),
    ],
)
def test_versions_name_the_page_itself(path: str, alternates: dict[str, str], expected: dict[str, str]) -> None:
    app = flask.Flask("versions")
    app.add_url_rule(path, "page", sitemap(alternates=alternates)(lambda: "<!doctype html><p>x"))
    middleware = SitemapMiddleware(app, base_url=BASE, store="memory://")
    body = wsgi(middleware, RequestSpec("/sitemap.xml", host="example.com")).body
    (url,) = parsed(body)
    links = {link.get("hreflang"): str(link.get("href")).removeprefix(BASE) for link in url[1:]}
    assert links == expected


def test_explain_and_the_report_name_what_is_said_and_who_says_it() -> None:
    shop = Bakery([Entry({"slug": "rye"}, news=news(), images=[])], images=["/a.jpg", "/b.jpg"], videos=[VIDEO])
    shop.get()
    assert (
        "images: 2 (@sitemap); videos: Rye &amp; salt (@sitemap)" in shop.get("/report/page", query="path=/about").text
    )
    assert shop.app.explain("/about").extensions == ("images: 2 (@sitemap)", "videos: Rye & salt (@sitemap)")
    assert "news: Rye <rises> (values)" in str(shop.app.explain("/rye"))


# What is not valid is refused where it is written


LONG = "x" * 2_049
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"images": "/a.jpg"}, r"images='/a.jpg' is not a list; give one such as \[\"/static/photo.jpg\"\]"),
    ({"images": ["data:image/png;base64,AA"]}, r"images: 'data:image/png;base64,AA' is not a URL; give one such as"),
    ({"images": ["https://user:secret@example.com/a.jpg"]}, "is not a URL"),
    ({"images": [3]}, "images: 3 is not a URL"),
    (
        {"images": [f"/{number}.png" for number in range(1_001)]},
        "images: 1,001 are too many for a page; give at most 1,000",
    ),
    ({"videos": VIDEO}, "is not a list"),
    ({"videos": [FILE]}, "which is not a Video"),
    ({"news": "Rye"}, r"news='Rye' is not valid; give News\(name="),
    ({"alternates": {"english": "/"}}, "alternates holds 'english', which is not the code of a language"),
    ({"alternates": {"en-UK": "/"}}, "alternates holds 'en-UK'"),
    ({"alternates": {"de": "ftp://x"}}, r"alternates\['de'\]: 'ftp://x' is not a URL"),
    ({"alternates": {"\u212ao": "/"}}, "alternates holds '\u212ao'"),  # the sign of Kelvin
    ({"images": ["/\ud800.jpg"]}, "is not a URL"),
    ({"alternates": ["de"]}, "is not a mapping"),
]
REFUSED_VIDEOS: list[tuple[dict[str, Any], str]] = [
    ({"content_loc": None}, "Video 'Rye': has neither content_loc nor player_loc"),
    ({"title": " "}, r"Video ' ': title=' ' is not a text"),
    ({"title": "x" * 101}, "title has 101 characters; give at most 100"),
    ({"description": LONG}, "description has 2,049 characters; give at most 2,048"),
    ({"duration": 0}, "duration=0 is not valid; give a number, from 1 to 28,800"),
    ({"duration": 1.5}, "duration=1.5 is not valid"),
    ({"rating": float("nan")}, "rating=nan is not valid; give a number, from 0 to 5"),
    ({"view_count": -1}, "view_count=-1 is not valid; give a number, from 0 to 1,000,"),
    ({"view_count": 10**5_000}, "view_count=a huge number is not valid"),
    ({"expiration_date": "soon"}, "expiration_date='soon' is not a date"),
    ({"tags": ["x"] * 33}, "tags: 33 are too many; give at most 32"),
    ({"live": "yes"}, "live='yes' is neither True nor False"),
    ({"restriction": ("allow", "Germany")}, r'give \("allow", "DE AT"\) or'),
    ({"platform": "tv"}, "platform='tv' is not valid"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_what_is_not_valid_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=rf"^Entry\(\{{'slug': 'rye'\}}\): .*{message}"):
        Entry({"slug": "rye"}, **arguments)
    with pytest.raises(OptionError, match=rf"^@sitemap on .*page.*: .*{message}"):

        @sitemap(**arguments)
        def page() -> str:
            return ""


@pytest.mark.parametrize(("arguments", "message"), REFUSED_VIDEOS)
def test_a_video_that_is_not_valid_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Video(**{**FILE, "title": "Rye", "description": "How to bake", **arguments})


@pytest.mark.parametrize(
    "wrong", [{"language": "English"}, {"language": "xx"}, {"publication_date": "now"}, {"title": ""}]
)
def test_news_that_are_not_valid_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=rf"^News .*{next(iter(wrong))}='"):
        news(**wrong) if "publication_date" not in wrong else news(wrong["publication_date"])


@pytest.mark.parametrize("is_async", [False, True])
def test_what_is_not_valid_of_an_item_is_left_out_alone(is_async: bool, caplog: pytest.LogCaptureFixture) -> None:
    def items() -> Iterator[Entry]:
        yield Entry({"slug": "first"}, images=["/first.jpg", None, ""], alternates={"en": "/first", "de": None})  # type: ignore[list-item, dict-item]
        for number, (arguments, _) in enumerate(REFUSED):
            yield Entry({"slug": f"e{number}"}, **arguments)
        for number, (arguments, _) in enumerate(REFUSED_VIDEOS):
            video = Video(**{**FILE, "title": "Rye", "description": "How to bake", **arguments})
            yield Entry({"slug": f"v{number}"}, videos=[video, VIDEO])
        yield Entry({"slug": "draft"}, news=news(None), images=["/draft.jpg"])

    async def async_items() -> AsyncIterator[Entry]:
        for item in items():
            yield item

    text = Bakery(async_items if is_async else items).get().text
    slugs = ["first", *(f"e{n}" for n in range(len(REFUSED))), *(f"v{n}" for n in range(len(REFUSED_VIDEOS))), "draft"]
    assert [*locs(text.encode())] == [f"{BASE}/about", *(f"{BASE}/{slug}" for slug in slugs)]
    assert re.findall(r"<image:loc>(.*?)<", text) == [f"{BASE}/first.jpg", f"{BASE}/draft.jpg"]
    assert re.findall(r"<video:title>(.*?)<", text) == ["Rye &amp; salt"] * len(REFUSED_VIDEOS)
    assert "news:" not in text
    (warning,) = [record.getMessage() for record in caplog.records if "left out" in record.getMessage()]
    assert "images='/a.jpg' is not a list" in warning


# Other readers


TEXTS = st.text(min_size=1, max_size=30).filter(lambda text: re.search(r"[^\W\d_]", text, re.ASCII))
URLS = st.one_of(
    st.text(max_size=30),
    st.builds(
        "https://{}.example/{}?{}".format, st.sampled_from(["a", "b", "ü"]), st.text(max_size=20), st.text(max_size=9)
    ),
)
DATES = st.one_of(
    st.dates(date(2025, 6, 10), date(2025, 6, 20)),
    st.datetimes(datetime(2025, 6, 10), datetime(2025, 6, 20), timezones=st.sampled_from([None, UTC])),  # noqa: DTZ001
)
FLAGS = st.none() | st.booleans()
VIDEOS = st.fixed_dictionaries(
    {"thumbnail_loc": URLS, "title": TEXTS, "description": TEXTS, "content_loc": URLS},
    optional={
        "player_loc": URLS,
        "duration": st.integers(1, 28_800),
        "expiration_date": DATES,
        "rating": st.floats(0, 5),
        "view_count": st.integers(0),
        "publication_date": DATES,
        "tags": st.lists(TEXTS, max_size=3),
        "family_friendly": FLAGS,
        "restriction": st.sampled_from([("allow", "DE"), ("deny", "AT CH")]),
        "requires_subscription": FLAGS,
        "uploader": TEXTS,
        "platform": st.sampled_from([("allow", "web tv"), ("deny", "mobile")]),
        "live": FLAGS,
    },
)
NEWS = st.fixed_dictionaries(
    {"name": TEXTS, "language": st.sampled_from(["en", "zh-CN", "gsw"]), "publication_date": DATES, "title": TEXTS}
)
PAGES = st.fixed_dictionaries(
    {},
    optional={
        "images": st.lists(URLS, max_size=4),
        "videos": st.lists(VIDEOS, max_size=2),
        "news": NEWS,
        "alternates": st.dictionaries(
            st.sampled_from(["en", "de", "de-AT", "DE-at", "es-419", "zh-Hans", "x-default"]), URLS
        ),
    },
)


def entry(number: int, page: dict[str, Any]) -> Entry | None:
    try:
        videos = [Video(**video) for video in page.get("videos", ())]
        given = {"videos": videos, **({"news": News(**page["news"])} if "news" in page else {})}
        return Entry({"slug": f"n{number}"}, **{**page, **given})
    except OptionError:  # as intended: the text is no URL
        return None


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pages=st.lists(PAGES, max_size=4))
def test_whatever_is_accepted_makes_a_valid_document(pages: list[dict[str, Any]], tmp_path_factory: Any) -> None:
    items = [made for number, page in enumerate(pages) if (made := entry(number, page)) is not None]
    body = Bakery(items).get().body
    assert len(parsed(body)) == len(items) + 1  # the schemas accept it
    file = Path(tmp_path_factory.mktemp("site")) / "sitemap.xml"
    file.write_bytes(body)
    found = check(file, f"{BASE}/sitemap.xml", CheckSettings(), NOW)
    assert [problem for problem in found if problem.rule.severity != "info"] == []


# News leave by the clock


@pytest.mark.parametrize("published", [TODAY, date(2025, 6, 15), "2025-06-15T17:06:40+02:00"])
def test_news_leave_after_48_hours(published: Any) -> None:
    day = isinstance(published, date) and not isinstance(published, datetime)
    ends = datetime(2025, 6, 17, tzinfo=UTC).timestamp() if day else NOW + 48 * HOUR
    shop = Bakery([Entry({"slug": "rye"}, news=news(published))])
    shop.clock.now = ends - 1
    assert "<news:" in said(shop.get(), "/rye")
    shop.clock.pass_(1 + shop.app.service.options.max_age)
    after = shop.get()
    assert said(after, "/rye") == "</url>"
    assert "xmlns:" not in after.text


def test_an_article_is_not_news_before_its_publication() -> None:
    shop = Bakery([Entry({"slug": "rye"}, news=news(TODAY + timedelta(minutes=30)))])
    assert said(shop.get(), "/rye") == "</url>"
    shop.clock.pass_(HOUR)
    shop.get()
    assert "<news:" in said(shop.get(), "/rye")


def test_a_document_has_at_most_1000_news_and_50_megabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (xml.MAX_NEWS, xml.MAX_BYTES) == (1_000, 52_000_000)
    monkeypatch.setattr(xml, "MAX_NEWS", 10)
    monkeypatch.setattr(xml, "MAX_BYTES", 6_000)
    items = [
        Entry({"slug": f"n{number}"}, news=news(), images=[f"/{'x' * 400}"] * (number > 25)) for number in range(40)
    ]
    shop = Bakery([*items, *map(str, range(15))])
    parts = [shop.get(loc.removeprefix(BASE)) for loc in locs(shop.get().body)]
    assert [part.text.count("<news:news>") for part in parts] == [0, 10, 10, 10, 8, 2]
    assert max(len(part.body) for part in parts) <= 6_000 + 400
    found = [loc for part in parts for loc in locs(part.body)]
    assert found == [
        f"{BASE}{path}" for path in ("/about", *(f"/n{n}" for n in range(40)), *(f"/{n}" for n in range(15)))
    ]


def test_a_document_of_learned_pages_drops_extensions_rather_than_exceed_its_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(xml, "MAX_BYTES", 3_000)
    app = flask.Flask("learned", static_folder=None)
    images = [f"/{number}.jpg" for number in range(9)]
    app.add_url_rule("/<slug>", "page", sitemap(learn=True, images=images)(lambda slug: f"<!doctype html><p>{slug}"))
    middleware = SitemapMiddleware(app, base_url=BASE, store="memory://", verify=False)
    for number in range(10):
        wsgi(middleware, RequestSpec(f"/p{number}", host="example.com"))
    answer = wsgi(middleware, RequestSpec("/sitemap.xml", host="example.com"))
    assert locs(answer.body) == [f"{BASE}/p{number}" for number in range(10)]
    assert answer.text.count("/0.jpg") == 2
    assert len(answer.body) <= 3_000
