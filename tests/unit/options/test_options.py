"""Options: what each takes, what it refuses, and that a refusal names value, place and cure at construction."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import flask
import pytest

from sitemap_middleware import OptionError, SitemapError, SitemapMiddleware, sitemap
from sitemap_middleware.middleware import SitemapOptions
from sitemap_middleware.options.table import OPTIONS
from sitemap_middleware.stores.sqlite import MemoryStore

from ...support.documents import locs
from ...support.sample_sites import Clock, Page, SampleSite, plain_flask
from ...support.wire import RequestSpec, wsgi

ROOT = Path(__file__).parents[3]


def test_editors_are_told_of_every_option() -> None:
    assert {*SitemapOptions.__annotations__} == {*OPTIONS}
    docstring = SitemapMiddleware.__doc__ or ""
    assert [name for name in OPTIONS if f"\n        {name}:" not in docstring] == []


def wrapped(app: Any = None, **options: Any) -> Any:
    return SitemapMiddleware(app or plain_flask("/"), **{"store": "memory://", **options})


def listed(app: Any = None, host: str = "testserver", root: str = "", **options: Any) -> list[str]:
    answer = wsgi(wrapped(app, **options), RequestSpec("/sitemap.xml", host=host, root=root))
    return locs(answer.body) if answer.status == 200 else []


def refused(message: str, **options: Any) -> str:
    """The refusal of these options, which matches a message."""
    with pytest.raises(OptionError, match=message) as caught:
        wrapped(**options)
    assert isinstance(caught.value, SitemapError)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, TypeError)
    return str(caught.value)


# base_url


@pytest.mark.parametrize(
    ("base_url", "loc"),
    [
        ("https://example.com", "https://example.com/"),
        ("https://example.com:443", "https://example.com/"),
        ("https://example.com:8443/", "https://example.com:8443/"),
        ("https://Müller.example", "https://xn--mller-kva.example/"),
    ],
)
def test_base_url_is_what_every_loc_begins_with(base_url: str, loc: str) -> None:
    assert listed(base_url=base_url, host="internal:8000") == [loc]


SCHEME_AND_HOST = r'give scheme and host alone, such as "https://example\.com"'


@pytest.mark.parametrize(
    ("base_url", "reason"),
    [
        ("example.com", "does not begin with http:// or https://"),
        ("https://", "has no host"),
        ("https://example.com?a=b", "contains a query or a fragment"),
        ("https://me:hunter2@example.com", "contains a user name or password"),
        (" https://example.com", "contains a character that is not allowed in URLs"),
        ("https://exam ple.com", "has an invalid host, 'exam ple.com'"),
        ("https://example.com:http", "is not a URL"),
        (b"https://example.com", "is not a string"),
    ],
)
def test_invalid_base_url_is_refused(base_url: Any, reason: str) -> None:
    message = refused(f"{reason}.*{SCHEME_AND_HOST}", base_url=base_url)
    assert message.startswith("SitemapMiddleware: base_url=")


@pytest.mark.parametrize("base_url", ["https://example.com/blog", "https://example.com/blog/", "https://example.com//"])
def test_base_url_with_a_path_other_than_the_root_path_is_refused(base_url: str) -> None:
    expected = r"base_url='https://example\.com/.*' has the path '/.*', which is not the app's root path; leave it off"
    if base_url.endswith("//"):
        assert listed(base_url=base_url) == ["https://example.com/"]
    else:
        refused(expected, base_url=base_url)


# store


@pytest.mark.parametrize("store", ["", "memory", "sqlite:///", "mysql://localhost/site", 5, Path("site.sqlite3")])
def test_a_store_of_no_known_engine_is_refused(store: Any) -> None:
    message = refused(r"store=.*; use .*memory://.*sqlite:///", store=store)
    assert message.startswith("SitemapMiddleware: store=")


@pytest.mark.parametrize(
    "url", ["https://me:hunter2@example.com", "me:hunter2@example.com", "https://me:hunter2@a.b\n"]
)
def test_no_password_stands_in_a_refusal(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    assert "hunter2" not in refused("base_url=", base_url=url)
    monkeypatch.setenv("SITEMAP_BASE_URL", url)
    assert "hunter2" not in refused("^SITEMAP_BASE_URL=", base_url=None)


# Names, numbers, flags


@pytest.mark.parametrize(
    ("name", "cure"), [("base_ur", r"did you mean base_url\?"), ("unknown", "the options are .*, clock")]
)
def test_an_unknown_option_is_refused_with_the_one_that_was_meant(name: str, cure: str) -> None:
    refused(f"^SitemapMiddleware: there is no option {name!r}; {cure}", **{name: 1})


NUMBER = r"not valid; give a number from 0\.0 to 1\.0"
KEY = "indexnow=.* is neither True, False, a key for IndexNow: 8 to 128 letters"
ENDPOINT = r'indexnow_endpoint=.* is not a URL; give one such as "https://www\.bing'
FEED = r'feed=.* is not a path for the feed; give one such as "/changes\.atom"'


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("priority", 1.5, rf"priority=1\.5 is {NUMBER}"),
        ("priority", "high", rf"priority='high' is {NUMBER}"),
        ("changefreq", "sometimes", "changefreq='sometimes' is not valid; give one of always, hourly"),
        ("max_age", -1, "max_age=-1 is not a number of seconds; give 0 or more"),
        ("max_age", "300", "max_age='300' is not a number of seconds"),
        ("max_age", 10**9 + 1, "max_age: the number of seconds is too large; give 1000000000 or less"),
        ("cache_tag", "a, b", "cache_tag='a, b' is not one tag; give up to 128 letters"),
        ("cache_tag", "a\r\nSet-Cookie: b", "is not one tag"),
        ("list_unseen", "no", "list_unseen='no' is neither True nor False"),
        ("robots", "no", 'robots=\'no\' is neither True, False, "disallow" or "noindex"'),
        ("clock", 5, "clock=5 cannot be called; give a callable that returns POSIX seconds"),
        ("path", "sitemap.xml", 'path=.* is not a sitemap path; give one such as "/sitemap.xml"'),
        ("path", "/a\n.xml", "is not a sitemap path"),
        ("path", f"/{'a' * 1000}.xml", "is not a sitemap path"),
        ("media_types", "html", "media_types holds 'html'; give types such as \"text/html\""),
        ("media_types", 5, "media_types=5 is not a list of strings; give a tuple of them"),
        (
            "learn",
            True,
            r"learn=True is not .* give a tuple of them, or did you mean @sitemap\(learn=True\) on a view\?$",
        ),
        ("allowed_hosts", "*", r"allowed_hosts holds '\*', which is not a host; give \"example.com\""),
        ("allowed_hosts", ["example.com", "https://example.com"], "allowed_hosts holds 'https://example.com'"),
        ("routes", "app", "routes='app' .*give"),
        ("report", "/changes.atom", "report='/changes.atom' is not a path for the report"),
        *(("indexnow", value, KEY) for value in ("short", "with blank", "x" * 129, 5, "ümläute-key")),
        *(
            ("indexnow_endpoint", value, ENDPOINT)
            for value in ("api.indexnow.org", "ftp://example.com", "http://[", "", 5)
        ),
        *(("feed", value, FEED) for value in ("changes.atom", "/changes.rss", "/%41.atom", "", 5)),
        ("alternates", "de-AT", "alternates='de-AT' is neither True, False, the parameter"),
        ("x_default", "english", "x_default='english' is not the code of a language"),
        ("x_default", "x-default", "is not the code of a language; give one such as"),
    ],
)
def test_a_value_that_an_option_cannot_have_is_refused(option: str, value: Any, message: str) -> None:
    assert refused(message, **{option: value}).startswith(f"SitemapMiddleware: {option}")


@pytest.mark.parametrize("name", ["lastmod", "priority", "changefreq", "section"])
def test_a_refusal_is_short_and_ends_with_the_fix(name: str) -> None:
    with pytest.raises(
        OptionError, match=rf"^@sitemap on .*{name if name != 'section' else ''}.* … .*give .*"
    ) as refused:
        sitemap(**{name: "x" * 5_000})(lambda: "")
    assert len(str(refused.value)) < 1_100


# Patterns

PATTERNS = pytest.mark.parametrize("option", ["include", "exclude", "learn"])


@PATTERNS
@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("about", r"holds 'about'; a pattern begins with a slash: \"/about\", \"/posts/<slug>\", \"/admin/\*\""),
        (["/a", "https://example.com/b"], "holds 'https://example.com/b'; a pattern begins with a slash"),
        ("/posts/<slug", "holds '/posts/<slug', with a bracket that belongs to no parameter; write parameters as"),
        (5, "=5 is not a list of strings; give a tuple of them"),
        (None, "=None is not a list of strings"),
        (["/a", 5], "holds 5, which is not a string"),
    ],
)
def test_what_is_no_pattern_is_refused(option: str, value: Any, message: str) -> None:
    assert refused(message, **{option: value}).startswith(f"SitemapMiddleware: {option}")


@pytest.mark.parametrize("pattern", ["/*", "/{anything:path}", "/docs/<path:page>"])
def test_learn_refuses_a_catch_all(pattern: str) -> None:
    refused(
        r"learn holds .*, a catch-all, which would let anyone put URLs into the sitemap; name a narrower pattern, or, "
        r"if every page it takes in is public, give it as include",
        learn=("/posts/<slug>", pattern),
    )


@pytest.mark.parametrize(("pattern", "name"), [("/i/{inviteCode}", "inviteCode"), ("/x/<a>/<key>", "key")])
def test_learn_refuses_a_parameter_named_like_a_secret(pattern: str, name: str) -> None:
    refused(f"whose parameter '{name}' is named like a secret; name a narrower pattern, or", learn=pattern)


# Priority and changefreq


def test_auto_priority_is_a_pages_place_in_its_site() -> None:
    paths = (
        "/", "/about", "/posts/", "/posts/{slug}", "/shop", "/shop/sale/today", "/imprint", "/legal/terms", "/login",
        "/about/privacy-policy", "/security", "/own",
    )  # fmt: skip
    marks = {"/own": sitemap(priority=0.7)}
    site = SampleSite("wsgi", {path: Page() for path in paths}, marks=marks, priority="auto", learn="/posts/<slug>")
    site.visit("/posts/hello")
    priorities = {loc.removeprefix("http://testserver"): entry["priority"] for loc, entry in site.entries().items()}
    assert priorities == {
        "/": "1.0",
        "/about": "0.8",
        "/about/privacy-policy": "0.3",
        "/imprint": "0.3",
        "/legal/terms": "0.3",
        "/login": "0.3",
        "/own": "0.7",
        "/posts/": "0.8",
        "/posts/hello": "0.6",
        "/security": "0.3",
        "/shop": "0.8",
        "/shop/sale/today": "0.5",
    }


@pytest.mark.parametrize("changed", [{"report": "/bread"}, {"exclude": "/bread/*"}, {"media_types": "text/plain"}])
def test_a_learned_page_leaves_at_a_restart_with_an_option_that_forbids_it(changed: dict[str, str]) -> None:
    options = {"store": MemoryStore(), "clock": Clock(), "learn": "/bread/<name>"}
    before, after = (SampleSite("wsgi", {"/bread/{name}": Page()}, **options, **more) for more in ({}, changed))
    before.visit("/bread/rye")
    assert before.locs() == ["http://testserver/bread/rye"]
    assert after.request("/sitemap.xml").status == 404


# What importing costs


def modules_after(program: str) -> set[str]:
    """The top-level names that a program imports, run in a separate interpreter."""
    shown = (
        f"import json, sys\n{program}\nprint(json.dumps(sorted({{name.partition('.')[0] for name in sys.modules}})))"
    )
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    run = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True, cwd=ROOT, env=env)
    return set(json.loads(run.stdout))


OPTIONAL = {
    "aiosqlite", "anyio", "asyncpg", "fastapi", "flask", "psycopg", "psycopg2", "pydantic", "quart", "redis", "sqlite3",
    "starlette", "werkzeug",
}  # fmt: skip


def test_importing_the_package_imports_no_framework_and_no_driver() -> None:
    assert modules_after("import sitemap_middleware") & OPTIONAL == set()


def test_positional_option_is_refused_by_an_error_with_the_keyword() -> None:
    with pytest.raises(OptionError, match=r"'https://example.com' was given by position; name each option, such as"):
        SitemapMiddleware(flask.Flask("app"), "https://example.com")  # type: ignore[misc] # that is what is tested
