"""What pages show, if options ask for it: their own images, and their versions in other languages."""

from __future__ import annotations

import json
import re
from typing import Any

import flask
import pytest

from sitemap_middleware import Entry, OptionError, SitemapMiddleware, sitemap

from ..support.documents import parsed
from ..support.sample_sites import Clock, SiteOf
from ..support.waiting import until
from ..support.wire import RequestSpec, wsgi

BASE = "https://example.com"
HEAD = "<!doctype html><html><head>{head}</head><body><nav><img src=/logo.png></nav>{body}</body></html>"
THINGS = {
    "@graph": [
        {"@type": "Article", "image": ["/1.png", {"url": "/2.png"}]},
        {"@type": "WebPage", "primaryImageOfPage": {"@id": "#i"}},
        {"@id": "#i", "@type": "ImageObject", "contentUrl": "/3.png"},
        {"@type": "Organization", "image": "/logo.png"},
    ]
}


class Site(SiteOf):
    """A site whose pages a test writes and rewrites. Robots.txt forbids /private."""

    def __init__(self, pages: dict[str, str], **options: Any) -> None:
        self.pages = pages
        app = flask.Flask("site", static_folder=None)
        for path in pages:
            app.add_url_rule(path, path, lambda path=path: self.answer(path))
        app.add_url_rule(
            "/robots.txt", "robots", lambda: ("User-agent: *\nDisallow: /private", {"content-type": "text/plain"})
        )
        super().__init__(app, base_url=BASE, **options)

    def answer(self, path: str) -> Any:
        return self.pages[path] or ("gone", 410)

    def read(self, times: int = 2) -> None:
        """Have each page read, so many times."""
        for _ in range(times):
            self.clock.pass_(2 * 60 * 60)
            self.visit(*self.pages)

    def said(self) -> dict[str, list[str]]:
        """The images of each page, and its versions."""
        answer = self.request("/sitemap.xml")
        parsed(answer.body)
        lines = [line for line in answer.text.splitlines() if line.startswith("<url>")]
        return {
            re.findall(f"<loc>{BASE}(.*?)</loc>", line)[0]: [
                " ".join(filter(None, found)).replace("&amp;", "&")
                for found in re.findall(f'<image:loc>{BASE}(.*?)</image|hreflang="(.*?)" href="{BASE}(.*?)"', line)
            ]
            for line in lines
        }


def page(body: str = "", head: str = "") -> str:
    return HEAD.format(head=head, body=body)


def of_one_page(html: str, **options: Any) -> list[str]:
    site = Site({"/a/b": html}, **{"images": True, **options})
    site.read()
    return site.said()["/a/b"]


IN_MAIN: list[tuple[str, list[str]]] = [
    ("<img src=/c.png?x=1&amp;amp;y=2>", ["/c.png?x=1&y=2"]),
    ("<nav><img src=/n.png></nav><footer><p><img src=/f.png></footer><p hidden><img src=/h.png>", []),
    (
        (
            "<img src=/pixel.gif width=1 height=1><img src='/line.gif' height='2px'>"
            "<img src=/minus.png style='display: none'>"
        ),
        [],
    ),
    (
        "<img src='data:image/gif;base64,R0' data-src=/late.png><img src=/low.png data-src=/high.png>",
        ["/late.png", "/high.png"],
    ),
    ("<img srcset='/s.png 320w, /l.png 640w'><img srcset='/1.jpg, /2.jpg 2x'>", ["/l.png", "/2.jpg"]),
    (
        (
            "<img src=https://cdn.example/c.png><img src=https://www.example.com/w.png>"
            "<img src=https://example.com:8443/p.png><img src=http://example.com/h.png>"
        ),
        ["/h.png"],
    ),
    (
        (
            "<img src=/pixel.gif style='width:1px;height:1px'><img src=/two.gif width=' 1.0'>"
            "<p style='display:none'><img src=/h.png></p><img src=/c.png style='max-width:2px; line-height: 1px'>"
        ),
        ["/c.png"],
    ),
    ("<img srcset='/s.png 1x,/l.png 2x,/m.png 1.5x'>", ["/l.png"]),
    (
        (
            "<img src=/0.gif style='width:0;height:0'><img src=/p.gif style='height: 0%'>"
            "<img src=/c.png style='width:0.9em'>"
        ),
        ["/c.png"],
    ),
    ("<img src=/private/c.png><img src='ftp://example.com/c.png'><img src='http://[/'><img><img src='#'>", []),
    (
        "<img src=/p-300x200.jpg><img src=/p.jpg><img src=/q.jpg?w=200&v=1><img src=/q.jpg?w=900&v=1>",
        ["/p.jpg", "/q.jpg?w=900&v=1"],
    ),
    (
        ("<header><img src=/h.png></header><noscript><img src=/n.png></noscript><div role=navigation><img src=/r.png>"),
        ["/h.png", "/n.png"],
    ),
    (
        (
            "<a href=/other><img src=/preview.png></a><a href=https://example.com/><img src=/home.png></a>"
            "<a href=/large.JPG?v=1><img src=/small.jpg></a><a href='#zoom'><img src=/zoom.png></a><a href=/a/b>"
            "<img src=/self.png></a><a href=https://photos.example/1><img src=/c.png></a><a><img src=/d.png></a>"
        ),
        ["/small.jpg", "/zoom.png", "/self.png", "/c.png", "/d.png"],
    ),
    ("<img src=/p-0x300.png><img src=/p-75x75.png>", ["/p-0x300.png"]),
]


@pytest.mark.parametrize(
    ("html", "images"),
    [
        *((page(f"<main>{inside}</main>"), images) for inside, images in IN_MAIN),
        (page("<img src=/outside.png><article><img src=c.png></article>"), ["/a/c.png"]),
        (page("<main><img src=c.png><img src=c.png></main>", "<base href=/d/>"), ["/d/c.png"]),
        (page("<main><img src='#'><img src=' '><img><img src='#top'></main>", "<base href=/d/>"), []),
        (
            page(
                "<header><img src=/h.png></header><div role=banner><img src=/b.png></div><div><img src=/c.png></div><noscript><img src=/hit.php></noscript>"
            ),
            ["/c.png"],
        ),
        (page(head="<meta property='og:image' content='https://example.com/og.png'>"), ["/og.png"]),
        (
            page(head=f"<script type='application/ld+json'>{json.dumps(THINGS)}</script>"),
            ["/1.png", "/2.png", "/3.png"],
        ),
    ],
)
def test_images_are_those_of_the_page_itself(html: str, images: list[str]) -> None:
    assert of_one_page(html) == images


@pytest.mark.parametrize(
    "odd",
    [
        f"<main><img src='/a.jpg?w={'9' * 5_000}'><img src='/a.jpg?w=9'></main>",
        "<script type=application/ld+json>{'image': '/\\ud800.jpg'}</script>".replace("'", '"'),
        "<script type=application/ld+json>[%s{'@id': %s}]</script>".replace("'", '"')
        % ('{"image": {"@id": 1}},', "[" * 900 + "]" * 900),
        "<main><img srcset='http://[::1/ 2x,,,'><img src='http://\ud7ff.example/'><img src='http://[::1'></main>",
    ],
)
def test_an_odd_image_hides_nothing_that_the_page_says(odd: str) -> None:
    site = Site({"/a": page(odd), "/b": page("<p>B")}, images=True, alternates=True)
    site.read()
    assert [*site.said()] == ["/a", "/b"]
    site.pages["/a"] = page(odd, "<meta name=robots content=noindex>")
    site.read(1)
    assert [*site.said()] == ["/b"]


def test_images_obey_exclude() -> None:
    html = page("<main><img src=/internal/plan.png?v=1><img src=/%69nternal/b.png><img src=/c.png></main>")
    assert of_one_page(html, exclude=["/internal/*"]) == ["/c.png"]


def test_images_that_the_app_refuses_or_excludes_are_on_no_page() -> None:
    app, clock = flask.Flask("images", static_folder=None), Clock()
    names = ("marked", "template", "internal", "refused", "fine")
    for name in names:

        def view(file: str, name: str = name) -> Any:
            return file, 403 if name == "refused" else 200, {"content-type": "image/png"}

        marked = sitemap(exclude=True)(view) if name == "marked" else sitemap(values=["a.png"])(view)
        app.add_url_rule(f"/{name}/<file>", name, marked)
    html = page("<main>" + "".join(f"<img src=/{name}/a.png>" for name in names) + "</main>")
    app.add_url_rule("/page", "page", lambda: html)
    site = SitemapMiddleware(
        app, base_url=BASE, store="memory://", images=True, clock=clock, exclude=["/template/<file>", "/internal/*"]
    )
    for path in ("/page", "/refused/a.png") * 4:
        wsgi(site, RequestSpec(path, host="example.com"))
        site.flush()
        clock.pass_(8_000)
    request, image = RequestSpec("/sitemap.xml", host="example.com"), re.compile("<image:loc>(.*?)<")
    until(lambda: image.search(wsgi(site, request).text))
    assert image.findall(wsgi(site, request).text) == [f"{BASE}/fine/a.png"]
    site.close()


def test_pages_that_name_one_language_twice_have_no_such_set() -> None:
    def named(*links: tuple[str, str]) -> str:
        return page(head="".join(f"<link rel=alternate hreflang={code} href={path}>" for code, path in links))

    site = Site(
        {
            "/a": named(("en", "/b")),
            "/b": named(("en", "/a")),
            "/c": named(("de", "/c"), ("en", "/d"), ("de", "/d")),
            "/d": named(("en", "/d"), ("de", "/c")),
        },
        alternates=True,
    )
    site.read()
    pair = ["de /c", "en /d"]
    assert {path: sorted(links) for path, links in site.said().items()} == {"/a": [], "/b": [], "/c": pair, "/d": pair}


def test_what_is_kept_of_a_page_is_bounded() -> None:
    images = [f"/{'x' * 1_000}{number}.png" for number in range(20)]
    assert of_one_page(page(f"<main>{''.join(f'<img src={image}>' for image in images)}</main>")) == images[:7]


def test_images_are_off_unless_asked_for_and_limited() -> None:
    html = page("<main>" + "".join(f"<img src=/{number}.png>" for number in range(40)) + "</main>")
    assert of_one_page(html, images=False) == []
    assert len(of_one_page(html)) == 25
    assert of_one_page(html, images=2) == ["/0.png", "/1.png"]
    with pytest.raises(OptionError, match=r"images=0.*a number from 1 to 1,000"):
        SitemapMiddleware(flask.Flask("x"), images=0)


def test_a_fact_counts_once_two_readings_agree_and_until_one_lacks_it() -> None:
    site = Site({"/a": page("<main><img src=/1.png></main>")}, images=True)
    site.read(1)
    assert site.said() == {"/a": []}
    site.read(1)
    assert site.said() == {"/a": ["/1.png"]}
    site.pages["/a"] = page("<main><img src=/2.png></main>")
    site.read(1)
    assert site.said() == {"/a": []}
    site.read(1)
    assert site.said() == {"/a": ["/2.png"]}


def test_what_many_pages_show_is_the_sites() -> None:
    pages = {
        f"/p{number}": page(f"<main><img src=/icon.svg><img src=/{number // 2}.png></main>") for number in range(6)
    }
    site = Site(pages, images=True)
    site.read()
    assert site.said() == {f"/p{number}": [f"/{number // 2}.png"] for number in range(6)}


def test_the_developers_word_counts_before_the_page() -> None:
    app = flask.Flask("site")
    html = page("<main><img src=/seen.png></main>")
    app.add_url_rule(
        "/<slug>", "post", sitemap(values=[Entry({"slug": "a"}, images=["/given.png"]), "b"])(lambda slug: html + slug)
    )
    site = Site({})
    site.pages, site.app = (
        {"/a": "", "/b": ""},
        SitemapMiddleware(app, base_url=BASE, store="memory://", clock=site.clock, images=True),
    )
    site.read()
    assert site.said() == {"/a": ["/given.png"], "/b": ["/seen.png"]}
    assert site.app.explain("/a").extensions == ("images: 1 (values)",)
    assert site.app.explain("/b").extensions == ("images: 1 (the page)",)


def versions(**paths: str) -> str:
    return page(
        "",
        "".join(f"<link rel=alternate hreflang={code.replace('_', '-')} href={path}>" for code, path in paths.items()),
    )


def test_versions_are_mutual_pairs_of_listed_pages() -> None:
    site = Site(
        {
            "/en": versions(
                en="/en", de="/de", fr="/fr", es="/es", x_default="/en", tlh1="/en", ru="https://other.example/ru"
            ).replace(
                "</head>", "<link rel=alternate hreflang=EN href=/en><link rel=alternate hreflang=de href=/es></head>"
            ),
            "/de": versions(de=f"{BASE}/de", en="https://example.com/en", fr="/fr"),
            "/fr": versions(en="/en", de="/de"),  # does not name itself
            "/es": versions(es="/es"),  # names no other
        },
        alternates=True,
    )
    site.read()
    en, de, fr = ["en /en", "x-default /en"], ["de /de"], ["fr /fr"]
    assert site.said() == {"/en": [*en, *de, *fr], "/de": [*de, en[0], *fr], "/fr": [*fr, en[0], *de], "/es": []}
    assert "alternates: en, x-default, de, fr (the page)" in str(site.app.explain("/en"))
    site.pages["/fr"] = ""
    site.read(1)
    assert site.said() == {"/en": [*en, *de], "/de": [*de, en[0]], "/es": []}
