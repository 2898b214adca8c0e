"""Chromium, and servers on this machine for it."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
"""Programs in which the report is tested, if one is installed. Otherwise Playwright downloads one."""

ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def serving_wsgi(app: Any) -> Iterator[str]:
    with make_server("127.0.0.1", 0, app, _Server, _Quiet) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def has_chromium() -> bool:
    from playwright.sync_api import sync_playwright

    if any(map(shutil.which, BROWSERS)):
        return True
    with sync_playwright() as playwright:
        return Path(playwright.chromium.executable_path).exists()


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, BROWSERS)), None)  # None is the one that Playwright has downloaded
    with tempfile.TemporaryDirectory() as profile, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=list(ARGUMENTS), env={"HOME": profile, "XDG_CONFIG_HOME": profile}
        )
        try:
            yield browser
        finally:
            browser.close()
