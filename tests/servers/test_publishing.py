"""`build --to`: a reader finds all documents of an index at any moment, whatever becomes of a run."""

from __future__ import annotations

import gzip
import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from lxml import etree
from moto.server import create_backend_app
from werkzeug.serving import make_server
from werkzeug.test import Client

from ..support.documents import locs

BUCKET = "/maps"
DAY = 24 * 60 * 60
APP = """
import json
from pathlib import Path
import flask
from sitemap_middleware import SitemapMiddleware

state = json.loads(Path("state.json").read_text())
names = ("bread", "cakes", "drinks")
sections = {name: [f"/{name}/{state['version']}"] for name in names} | {"terms": ["/terms/0"]}
app = flask.Flask(__name__, static_folder=None)
app.wsgi_app = SitemapMiddleware(
    app.wsgi_app, base_url="https://shop.example", sections=sections, store="memory://", clock=lambda: state["now"],
)
"""


class S3:
    """An S3 that is slow, refuses every third request, and kills its client at a given one. It reads as crawlers do."""

    def __init__(self) -> None:
        self.backend = create_backend_app("s3")
        self.reader = Client(self.backend)
        self.reader.put(BUCKET)
        self.requests = 0
        self.process: subprocess.Popen[str] | None = None
        self.fatal = 0
        """The request after which the client is killed; 0 for none."""
        self.now = 0
        self.seen: dict[bytes, int] = {}
        """Each sitemap that was there, and when it was last."""
        self.put: dict[str, int] = {}
        """The bytes of each object that was put."""
        self.faults: list[str] = []

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        self.requests += 1
        time.sleep(0.01)  # the latency of a network
        if self.requests % 3 == 0:
            start_response("503 Slow Down", [("Content-Length", "0")])
            return [b""]
        body = b"".join(self.backend(environ, start_response))
        if environ["REQUEST_METHOD"] == "PUT":
            self.put[environ["PATH_INFO"].removeprefix(f"{BUCKET}/")] = int(environ["CONTENT_LENGTH"])
        self.read_all()
        if self.fatal:
            self.fatal -= 1
            if not self.fatal and self.process is not None:
                self.process.send_signal(signal.SIGKILL)
        return [body]

    def get(self, url: str) -> bytes | None:
        answer = self.reader.get(BUCKET + urlsplit(url).path, headers={"Authorization": "any"})
        return answer.data if answer.status_code == 200 else None

    def read_all(self) -> None:
        """Follow the sitemap, and each one that a reader or a cache may still have from the last day."""
        sitemap = self.get("/sitemap.xml")
        if sitemap is not None:
            self.seen[sitemap] = self.now
        for index, at in self.seen.items():
            if at > self.now - DAY:
                parts = [self.get(loc) for loc in locs(index)]
                pages = [loc for part in parts if part is not None for loc in locs(gzip.decompress(part))]
                versions = {page.rpartition("/")[2] for page in pages if "/terms/" not in page}
                if None in parts or len(pages) != len(parts) or len(versions) != 1:
                    self.faults.append(f"{index!r} has the pages {pages}")


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    app = S3()
    server = make_server("127.0.0.1", 0, app, threaded=False)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.port}")
    for name, value in {"ALLOW_HTTP": "1", "ACCESS_KEY_ID": "k", "SECRET_ACCESS_KEY": "s", "REGION": "eu-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    yield app
    server.shutdown()
    thread.join()


def test_reader_finds_every_document_though_runs_are_killed_and_the_server_fails(s3: S3) -> None:
    Path("shop.py").write_text(APP)

    def build(version: int, now: int, fatal: int = 0) -> bool:
        """Whether the run came to its end."""
        Path("state.json").write_text(json.dumps({"version": version, "now": now}))
        s3.fatal, s3.now, s3.put = fatal, now, {}
        command = [sys.executable, "-m", "sitemap_middleware", "build", "shop:app", "--to", f"s3:/{BUCKET}"]
        s3.process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        output = s3.process.communicate(timeout=60)[0]
        assert s3.process.returncode in {0, -signal.SIGKILL}, output
        assert s3.faults == []
        return s3.process.returncode == 0

    def names() -> list[str]:
        listing = etree.fromstring(s3.reader.get(f"{BUCKET}?list-type=2").data)
        return sorted(key.text or "" for key in listing.iter("{*}Key"))

    now = 1_790_000_000
    s3.reader.delete(BUCKET, headers={"Authorization": "any"})
    with pytest.raises(AssertionError, match="s3://maps/ cannot be listed: the bucket does not exist: create it"):
        build(0, now)
    s3.reader.put(BUCKET)
    assert build(1, now)
    requests = 1
    while not build(requests + 1, now + requests, fatal=requests):  # killed at its first request, its second, ...
        requests += 1
    assert requests > 8
    assert build(requests + 1, now + requests)
    assert s3.put == {}
    assert len(names()) > 20
    assert len(s3.seen) > 2
    assert build(requests + 2, now + 3 * DAY)
    assert {re.sub(r"\.[0-9a-f]{16}-\d+", "", name) for name in s3.put} == {
        "sitemap.bread.xml.gz", "sitemap.cakes.xml.gz", "sitemap.drinks.xml.gz", "sitemap-unused.json", "sitemap.xml"
    }  # fmt: skip
    live = [loc.rpartition("/")[2] for loc in locs(s3.get("/sitemap.xml") or b"")]
    unused = json.loads(s3.get("/sitemap-unused.json") or b"")
    assert names() == sorted([*live, *unused, "sitemap.xml", "sitemap-unused.json"])
    assert len(unused) == 3
