"""`sitemap-middleware build --to`: what is put, under which names, and what is said if it fails."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from sitemap_middleware.cli.main import command

from ...support.command_line import cli_runner
from ...support.documents import locs

pytest.importorskip("obstore")
SHOP = """
import json
import flask
from sitemap_middleware import SitemapMiddleware

state = json.loads({state!r})
app = flask.Flask(__name__, static_folder=None)
app.add_url_rule("/", "home", lambda: "Home")
app.wsgi_app = SitemapMiddleware(app.wsgi_app, base_url="https://shop.example", store="memory://", **state["options"],
    clock=lambda: state["now"])
"""
DAY = 24 * 60 * 60
NOW = 1_790_000_000


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # the app is written anew within a second, and as long
    for name in ("AZURE_STORAGE_ACCOUNT_NAME", "AWS_ACCESS_KEY_ID"):
        monkeypatch.delenv(name, raising=False)
    yield
    sys.modules.pop("own_shop", None)


def build(*arguments: str, now: int = NOW, **options: Any) -> Result:
    sys.modules.pop("own_shop", None)
    Path("own_shop.py").write_text(SHOP.format(state=json.dumps({"now": now, "options": options})), "utf-8")
    return cli_runner().invoke(command, ["build", "own_shop:app", *arguments], catch_exceptions=False)


def put(folder: Path, *arguments: str, now: int = NOW, **sections: list[str]) -> dict[str, int]:
    """Publish sections into a folder; the bytes of what was put, and 0 for what was deleted."""
    result = build("--to", folder.as_uri(), "--json", *arguments, now=now, sections=sections)
    assert result.exit_code == 0, result.stderr
    answer = json.loads(result.stdout)
    changes = {change["name"]: change["size"] for change in answer["changes"]}
    assert answer["bytes"] == sum(changes.values())
    return changes


def test_index_names_documents_that_never_change_and_only_news_is_put(tmp_path: Path) -> None:
    folder = tmp_path / "bucket"
    first = put(folder, bread=["/rye"], cakes=["/plum"])
    index = (folder / "sitemap.xml").read_bytes()
    assert [*first] == [*(loc.removeprefix("https://shop.example/") for loc in locs(index)), "sitemap.xml"]
    listed = {name: locs(gzip.decompress((folder / name).read_bytes())) for name in first if name.endswith(".gz")}
    assert [*listed.values()] == [[f"https://shop.example{path}"] for path in ("/", "/rye", "/plum")]
    assert put(folder, bread=["/rye"], cakes=["/plum"], now=NOW + 60) == {}

    second = put(folder, bread=["/rye"], cakes=["/pear"], now=NOW + 120)
    new, *others = second
    assert others == ["sitemap-unused.json", "sitemap.xml"]
    (old,) = json.loads((folder / "sitemap-unused.json").read_bytes())
    assert {old, new}.isdisjoint(listed.keys() - {old})
    assert (folder / old).exists()

    # The content of before is another document: a run at the same time may be about to delete the old one.
    third = put(folder, bread=["/rye"], cakes=["/plum"], now=NOW + DAY)
    assert old not in third
    fourth = put(folder, bread=["/rye"], cakes=["/plum"], now=NOW + DAY + 120)
    assert fourth[old] == 0
    assert not (folder / old).exists()
    assert (folder / new).exists()


def test_documents_that_were_lost_or_never_named(tmp_path: Path) -> None:
    put(tmp_path, bread=["/rye"])
    lost = next(path for path in tmp_path.glob("sitemap.bread.*"))
    lost.rename(orphan := tmp_path / lost.name.replace(str(NOW), "1700000000"))
    other = tmp_path / "sitemap-shop.bread.0123456789abcdef-1700000000.xml.gz"  # of /sitemap-shop.xml
    other.touch()
    (tmp_path / "sitemap-unused.json").write_text("[]")
    assert lost.name in put(tmp_path, bread=["/rye"])
    put(tmp_path, bread=["/rye"], now=NOW + DAY)
    assert lost.exists()
    assert other.exists()
    assert not orphan.exists()


def test_one_document_below_another_url(tmp_path: Path) -> None:
    to = ["--to", (tmp_path / "a b").as_uri(), "--public-url", "https://maps.example/shop"]
    result = build(*to, path="/é/pages.xml")
    body = (tmp_path / "a b/é/pages.xml").read_bytes()
    assert locs(body) == ["https://shop.example/"]
    assert result.stdout.splitlines() == [
        f"put é/pages.xml  {len(body)} bytes",
        f"1 document, {len(body)} bytes put: https://maps.example/shop/%C3%A9/pages.xml",
    ]
    assert "has the line Sitemap: https://maps.example/shop/%C3%A9/pages.xml" in result.stderr
    build(*to, path="/é/pages.xml", sections={"bread": ["/rye"]})
    index = (tmp_path / "a b/é/pages.xml").read_bytes()
    assert all(loc.startswith("https://maps.example/shop/%C3%A9/pages.") for loc in locs(index))
    assert len(locs(index)) == 2


REFUSED = {
    "s3://key:secret@bucket": "takes a URL without credentials",
    "s3://bucket?secret=x": "takes a URL without credentials",
    "http://example.com/": "--to='http://example.com/' is not s3://BUCKET/FOLDER",
    "s3:bucket": "is not s3://BUCKET/FOLDER",
    "file://relative": "is not s3://BUCKET/FOLDER",
    "file:///dev/null/maps": "file:///dev/null/maps/ cannot be opened: ",
    "az://maps": "az://maps/ cannot be opened: AZURE_STORAGE_ACCOUNT_NAME, and AZURE",
}


@pytest.mark.parametrize("url", REFUSED)
def test_place_that_cannot_be_written(url: str) -> None:
    result = build("--to", url)
    assert result.exit_code == 2
    assert REFUSED[url] in result.stderr
    assert "secret" not in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "give --out DIR to write files, or --to URL to publish"),
        (("--out", "a", "--to", "file:///a"), "give --out DIR to write files, or --to URL"),
        (("--out", "a", "--public-url", "https://a.example"), "--public-url goes with --to"),
        (("--to", "file:///tmp", "--public-url", "a"), "--public-url='a' "),
    ],
)
def test_options_that_do_not_fit(arguments: tuple[str, ...], words: str) -> None:
    result = build(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr
