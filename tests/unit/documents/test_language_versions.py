"""`alternates="lang"`: the versions of a page in other languages name each other, wherever they are listed."""

from __future__ import annotations

import threading
from itertools import count
from pathlib import Path
from typing import Any

import fastapi
import flask
import pytest
from fastapi.responses import HTMLResponse
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware import Entry, OptionError, SitemapMiddleware, sitemap
from sitemap_middleware.documents import language_links, publisher, rendered_parts, xml
from sitemap_middleware.stores import base

from ...support.documents import locs, parsed
from ...support.sample_sites import Clock, Page, SampleSite
from ...support.waiting import until
from ...support.wire import BOTH, Answer, RequestSpec, asgi, wsgi

NS = {"s": "http://www.sitemaps.org/schemas/sitemap/0.9", "x": "http://www.w3.org/1999/xhtml"}
BASE = "https://example.com"

Sets = dict[str, dict[str, str]]


def sets_of(body: bytes) -> Sets:
    """The alternates of each page of a document, by code."""
    found: Sets = {}
    for url in parsed(body).iterfind("s:url", NS):
        links = url.findall("x:link", NS)
        assert all(link.get("rel") == "alternate" for link in links)
        found[url.findtext("s:loc", namespaces=NS) or ""] = {link.get("hreflang"): link.get("href") for link in links}
    return found


def all_sets(site: SampleSite, **spec: Any) -> Sets:
    """The alternates of each page of a site, whose sitemap may be an index."""
    answer = site.request("/sitemap.xml", **spec)
    if answer.status == 404:
        return {}
    if b"<sitemapindex" not in answer.body:
        return sets_of(answer.body)
    found: Sets = {}
    for loc in locs(answer.body):
        found |= sets_of(site.request("/" + loc.rpartition("/")[2], **spec).body)
    return found


HOSTS = ("a.example", "b.example", "c.example")
CODES = {code: code for code in ("en", "de", "es-419", "eu")}
CODES |= {"de_AT": "de-AT", "zh-hans": "zh-Hans", "xx": "", "DE": "de"}
PAGES = st.tuples(st.sampled_from(HOSTS), st.sampled_from([*CODES]), st.integers(0, 3))


def expected(alive: set[tuple[str, str, int]], host: str) -> Sets:
    """The sets of a host, as the facts on hreflang have them."""
    sets: Sets = {}
    for of_host, lang, number in alive:
        if of_host == host:
            others = [
                other
                for at, other, page in sorted(alive, reverse=True)
                if (at, page) == (host, number) and CODES[other]
            ]
            versions: dict[str, str] = {}
            for other in others:
                versions.setdefault(CODES[other], f"http://{host}/{other}/p/{number}")
            loc = f"http://{host}/{lang}/p/{number}"
            is_member = len(versions) > 1 and versions.get(CODES[lang]) == loc
            if is_member and "en" in versions:
                versions["x-default"] = versions["en"]
            sets[loc] = versions if is_member else {}
    return sets


@pytest.mark.slow
@BOTH
@given(rounds=st.lists(st.sets(PAGES, max_size=12), min_size=1, max_size=3))
def test_sets_are_those_of_the_pages_that_are_listed(protocol: str, rounds: list[set[tuple[str, str, int]]]) -> None:
    pages = {"/{lang}/p/{x}": Page()}
    marks = {"/{lang}/p/{x}": sitemap(learn=True)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "PART_PAGES", 2)
        patch.setattr(xml, "MAX_ENTRIES", 2)
        site = SampleSite(protocol, pages, marks=marks, allowed_hosts=HOSTS, alternates="lang", x_default="EN")
        alive: set[tuple[str, str, int]] = set()
        for turned in rounds:  # each page that is named dies, or returns
            for host, lang, number in sorted(turned):
                words = f"<p>{chr(97 + [*CODES].index(lang)) * 9} {chr(97 + number) * 9}".encode()  # no soft 404s
                site.pages["/{lang}/p/{x}"] = Page(404 if (host, lang, number) in alive else 200, body=words)
                site.request(f"/{lang}/p/{number}", host=host)
                site.clock.pass_(1)
            alive ^= turned
            site.clock.pass_(100)
            for host in HOSTS:
                assert all_sets(site, host=host) == expected(alive, host)


def shop(store: str = "memory://", **options: Any) -> SitemapMiddleware:
    """A Flask app as Flask-Babel's documentation has it: the default language has no prefix."""
    app = flask.Flask("shop", static_folder=None)
    codes = ["de", "pt_BR"]

    @sitemap(values=codes)
    def home(lang: str) -> str:
        return f"<h1>{lang}"

    @sitemap(values=[{"lang": lang, "slug": slug} for slug in ("rye", "oat") for lang in codes], alternates="lang")
    def loaf(lang: str, slug: str) -> str:
        flask.abort(404) if (lang, slug) == ("de", "oat") else None
        return f"<h1>{lang} {slug}"

    app.add_url_rule("/", "home", home, defaults={"lang": "en"})
    app.add_url_rule("/<lang>/", "home", home)
    app.add_url_rule("/loaves/<slug>", "loaf", loaf, defaults={"lang": "en"})
    app.add_url_rule("/<any(de, pt_BR):lang>/loaves/<slug>", "loaf", loaf)
    app.add_url_rule("/other", "other", lambda lang: f"<h1>Other {lang}", defaults={"lang": "en"})
    return SitemapMiddleware(app, base_url=BASE, store=store, clock=options.pop("clock", Clock()), **options)


def get(app: Any, path: str = "/sitemap.xml") -> Answer:
    return wsgi(app, RequestSpec(path, host="example.com", scheme="https"))


def test_static_and_enumerated_pages_of_one_view_are_versions() -> None:
    app = shop(alternates="lang")
    home = {"en": f"{BASE}/", "de": f"{BASE}/de/", "pt-BR": f"{BASE}/pt_BR/"}
    rye = {"de": f"{BASE}/de/loaves/rye", "pt-BR": f"{BASE}/pt_BR/loaves/rye"}
    assert get(app, "/de/loaves/oat").status == 404
    found = sets_of(get(app).body)
    assert {loc: sets for loc, sets in found.items() if sets} == {
        **dict.fromkeys(home.values(), home),
        **dict.fromkeys(rye.values(), rye),
    }
    assert {f"{BASE}/other", f"{BASE}/pt_BR/loaves/oat"} < found.keys()
    app.close()


def test_a_default_of_a_fastapi_view_is_the_language_of_the_path_without_it() -> None:
    app = fastapi.FastAPI()

    @app.get("/about", response_class=HTMLResponse)
    @app.get("/{lang}/about", response_class=HTMLResponse)
    @sitemap(values=["de"], alternates="lang")
    def about(lang: str = "en") -> str:
        return f"<h1>{lang}"

    about_us = {"en": f"{BASE}/about", "de": f"{BASE}/de/about"}
    site = SitemapMiddleware(app, base_url=BASE, store="memory://", clock=Clock())
    answer = asgi(site, RequestSpec("/sitemap.xml", host="example.com", scheme="https"))
    assert sets_of(answer.body) == dict.fromkeys(about_us.values(), about_us)
    site.close()


def test_one_view_may_have_versions_and_the_others_none() -> None:
    app = shop()
    assert {loc.rpartition("/")[2] for loc, sets in sets_of(get(app).body).items() if sets} == {"rye", "oat"}
    app.close()


def test_documents_that_an_earlier_process_named_otherwise_get_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendered_parts, "MAX_AGE_FACTOR", 1000)  # linking pauses for long
    store, clock = f"sqlite:///{tmp_path}/store", count(1_750_000_000, 0.01).__next__
    for sections, names in ((None, []), (True, ["routes-1", "home", "loaf"])):
        app = shop(store, clock=clock, alternates="lang", sections=sections)
        paths = [f"/sitemap-{name}.xml" for name in names]
        assert [loc.removeprefix(BASE) for loc in locs(get(app).body) if loc.endswith(".xml")] == paths
        assert [get(app, path).status for path in paths] == [200] * len(names)
        app.close()


def test_a_document_that_its_links_would_make_too_large_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language_links, "MAX_BYTES", 300)
    app = shop(alternates="lang")
    assert not any(sets_of(get(app).body).values())
    assert b"<!--" not in get(app).body
    app.close()


GIVEN = {"en": "/en/about", "de": "/de/ueber", "fr": "/fr/apropos", "es": "/es/x", "it": "/it/x", "sv": "/drafts/sv"}
GIVEN |= {"nl": "https://b.example/", "pl": "/elsewhere", "x-default": "/start"}


def test_given_versions_that_are_not_listed_leave_all_sets() -> None:
    app, gone = flask.Flask("given", static_folder=None), set[str]()

    def view(path: str) -> Any:
        flask.abort(404) if path in gone else None
        flask.abort(flask.redirect("/en/about")) if path == "/start" else None
        return "<meta name=robots content=noindex>" if path == "/es/x" else f"<h1>{path}"

    for path in (*(url for url in GIVEN.values() if url[1:3] in ("en", "de", "fr", "es", "it")), "/start"):
        app.add_url_rule(path, path, sitemap(alternates=GIVEN)(lambda path=path: view(path)))
    slugs = sitemap(
        values=lambda: [Entry({"lang": lang}, alternates={"en": "/en/v", "de": "/de/v"}) for lang in ("en", "de")]
    )
    app.add_url_rule("/<lang>/v", "v", slugs(lambda lang: view(f"{lang} v")))
    app.add_url_rule("/drafts/<lang>", "draft", sitemap(exclude=True)(lambda lang: f"<h1>{lang}"))
    app.add_url_rule("/robots.txt", "robots", lambda: ("User-agent: *\nDisallow: /it/", {"content-type": "text/plain"}))
    site = SitemapMiddleware(app, base_url=BASE, store="memory://", clock=Clock(), exclude="/fr/*")
    kept = {"en": "/en/about", "de": "/de/ueber", "nl": "https://b.example/", "pl": "/elsewhere", "x-default": "/start"}
    absolute = {code: url if "://" in url else BASE + url for code, url in kept.items()}
    values = {"en": f"{BASE}/en/v", "de": f"{BASE}/de/v"}
    assert sets_of(get(site).body) == {
        **dict.fromkeys([absolute["en"], absolute["de"]], absolute),
        **dict.fromkeys(values.values(), values),
    }
    gone |= {"/de/ueber", "de v"}
    for path in ("/de/ueber", "/de/v"):
        assert get(site, path).status == 404
    site.service.clock.pass_(400)
    del absolute["de"]
    assert sets_of(get(site).body) == {absolute["en"]: absolute, values["en"]: {}}
    site.close()


@pytest.mark.parametrize("usual", ["de", "pt-br", "pt_BR", "zh-Hant"])
def test_spellings_of_strangers_displace_no_version(usual: str) -> None:
    app = flask.Flask("learned", static_folder=None)
    app.add_url_rule("/<lang>/<slug>", "page", sitemap(learn=True)(lambda lang, slug: f"<h1>{lang} {slug}"))
    options: dict[str, Any] = {"alternates": "lang", "x_default": "en", "verify": False}
    site = SitemapMiddleware(app, base_url=BASE, store="memory://", clock=Clock(), **options)

    def visit(*langs: str) -> Sets:
        for lang in langs:
            get(site, f"/{lang}/rye")
            site.flush()
            site.service.clock.pass_(100)
        return sets_of(get(site).body)

    own = {loc: links for loc, links in visit("en", usual).items() if links}
    assert own.keys() == {f"{BASE}/en/rye", f"{BASE}/{usual}/rye"}
    found = visit(usual.upper(), usual.title(), usual.lower(), usual.replace("_", "-"))
    assert {loc: links for loc, links in found.items() if links} == own
    site.close()


def test_marks_are_sent_as_comments_while_links_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher, "FIRST_WAIT_SECONDS", 0.0)
    may_go_on = threading.Event()
    monkeypatch.setattr(language_links, "in_pieces", lambda items, _: may_go_on.wait(10) and items)
    app = flask.Flask("slow", static_folder=None)

    def view(lang: str) -> str:
        return f"<h1>{lang}"

    for lang in ("en", "de"):
        app.add_url_rule(f"/{lang}/a--b", "a", view, defaults={"lang": lang})
    site = SitemapMiddleware(app, base_url=BASE, store="memory://", clock=Clock(), alternates="lang", verify=False)
    assert sets_of(get(site).body) == {f"{BASE}/de/a--b": {}, f"{BASE}/en/a--b": {}}
    may_go_on.set()
    until(lambda: site.service.clock.pass_(2) or all(sets_of(get(site).body).values()))
    assert b"<!--" not in get(site).body
    site.close()


def test_an_invalid_argument_is_refused() -> None:
    with pytest.raises(OptionError, match=r"@sitemap on .*alternates='<lang>' is not the name of a parameter"):
        sitemap(alternates="<lang>")(lambda lang: lang)
