"""`python3 -m tests.real_apps`: whether the sitemaps of published apps list only pages that an anonymous visitor gets.

Each app has a virtual environment in `.venv-tests/apps/`, with the
version named here and this checkout. It runs on a real server with the default
options, and its sitemap is read twice: before anybody visited a page, and after a
crawl without cookies. Each loc must then answer an anonymous visitor with status 200 and
HTML that is not a login form.

Arguments are names of apps; without any, all run.
"""

from __future__ import annotations

import contextlib
import html
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urldefrag, urljoin, urlsplit
from xml.etree import ElementTree as ET

from .__main__ import BIN, HOME, ROOT, UV

DEPTH = 3
PAGES = 400
"""The most pages of an app that the crawl requests."""

QUIET = 3.0
"""Seconds without news after which the middleware has requested, and stored, all that it will: it stores every two."""

LONGEST = 120.0
"""Seconds that the first round of the middleware's own requests may take."""

CRAWLER = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
LINK = re.compile(r"""\s(?:href|src|action)\s*=\s*(["'])(.*?)\1""")
PASSWORD = re.compile(r"""(?i)<input[^>]+type=["']?password""")
LOGIN = re.compile(r"(?i)log-?in|sign-?in|sign-?up|regist|password|reset|create|setup|auth")
"""Paths where a password field is what the page is for."""


@dataclass(frozen=True)
class App:
    site: str
    """The module of `tests.real_sites`."""
    requirements: tuple[str, ...]
    server: str = "gunicorn"
    sitemap: str = "/sitemap.xml"
    python: tuple[int, int] = (3, 11)
    environ: dict[str, str] = field(default_factory=dict)
    asking: frozenset[str] = frozenset()
    """Public pages that have a password field beside their content."""


APPS = {
    "Calibre-Web": App("calibreweb_site", ("calibreweb==0.6.27",)),
    "An Otter Wiki": App("otterwiki_site", ("otterwiki==2.26.1",), sitemap="/pages.xml"),
    "MoinMoin": App("moin_site", ("moin==2.0.0b5",)),
    "Wagtail": App("wagtail_site", ("wagtail==8.0.1",)),
}


@dataclass
class Outcome:
    """What was found of one app."""

    version: str = ""
    before: int = 0
    after: int = 0
    wrong: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    """Lines of the log that are about the middleware."""


@dataclass(frozen=True)
class Reply:
    status: int
    kind: str
    text: str
    headers: dict[str, str]

    @property
    def is_page(self) -> bool:
        return self.status == 200 and self.kind in {"text/html", "application/xhtml+xml"}


class _Unfollowed(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """Follow nothing."""


OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), _Unfollowed)


def send_request(url: str) -> Reply:
    """One anonymous request: no cookies, no redirects followed."""
    headers = {"User-Agent": CRAWLER, "Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    try:
        response = OPENER.open(urllib.request.Request(url, headers=headers), timeout=30)
    except urllib.error.HTTPError as error:
        response = error
    with response:
        text = response.read(2_000_000).decode("utf-8", "replace")
        names = {name.lower(): value for name, value in response.headers.items()}
        return Reply(response.status, response.headers.get_content_type(), text, names)


def environment(uv: Path, name: str, app: App) -> Path | None:
    """The folder of commands of an app's environment; None if there is no interpreter for it."""
    python = ">=" + ".".join(map(str, app.python))
    folder = HOME / "apps" / re.sub(r"[^a-z0-9]+", "-", name.lower())
    made_from = json.dumps([python, app.requirements, (ROOT / "pyproject.toml").read_text("utf-8")])
    stamp = folder / "made-from"
    if not stamp.exists() or stamp.read_text() != made_from:
        print(f"-- making {folder.relative_to(ROOT)}", flush=True)
        made = subprocess.run([uv, "venv", "--quiet", "--clear", "--python", python, folder], check=False)
        if made.returncode:
            return None
        pip = [uv, "pip", "install", "--quiet", "--python", folder / BIN / "python"]
        subprocess.run([*pip, *app.requirements, "gunicorn", "uvicorn"], check=True)
        subprocess.run([*pip, "--editable", ROOT], check=True)
        stamp.write_text(made_from)
    return folder / BIN


def version(uv: Path, here: Path, app: App) -> str:
    """The version of an app and of its Werkzeug, as installed."""
    listed = subprocess.run(
        [uv, "pip", "list", "--format", "json", "--python", here / "python"], check=True, capture_output=True
    )
    versions = {package["name"]: package["version"] for package in json.loads(listed.stdout)}
    name = re.split(r"[=<\[]", app.requirements[0])[0].lower().replace(".", "-")
    return f"{versions[name]}, Werkzeug {versions['werkzeug']}"


@contextlib.contextmanager
def serving(here: Path, app: App, folder: Path) -> Iterator[tuple[str, Path]]:
    """The address of a running app, and its log."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    target = f"tests.real_sites.{app.site}:app"
    command = {
        "gunicorn": ["gunicorn", target, "--bind", f"127.0.0.1:{port}", "--threads", "8", "--timeout", "120"],
        "uvicorn": ["uvicorn", target, "--port", str(port), "--log-level", "warning"],
    }[app.server]
    log = folder / "server.log"
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("SITEMAP_", "PYTEST_"))},
        "PYTHONPATH": str(ROOT),
        "PATH": f"{here}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "XDG_RUNTIME_DIR": str(folder),
        "SITEMAP_STORE": f"sqlite:///{folder}/sitemap.sqlite3",  # an instance folder would outlive the run
        **app.environ,
    }
    with log.open("wb") as out:
        process = subprocess.Popen(
            [here / "python", "-m", *command], cwd=folder, stdout=out, stderr=subprocess.STDOUT, env=env
        )
    try:
        _wait(process, f"http://127.0.0.1:{port}", log)
        yield f"http://127.0.0.1:{port}", log
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


def _wait(process: subprocess.Popen[bytes], base: str, log: Path) -> None:
    end = time.monotonic() + 180
    while time.monotonic() < end and process.poll() is None:
        try:
            send_request(f"{base}/__explain__?path=/")  # the window's: the app itself sees nothing of it
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise RuntimeError(f"the server did not answer:\n{log.read_text(errors='replace')[-4000:]}")


def explained(base: str) -> dict[str, tuple[bool, str]]:
    """What the middleware says of every route that takes GET."""
    return {row["path"]: (row["listed"], row["reason"]) for row in json.loads(send_request(f"{base}/__explain__").text)}


def locs(base: str, sitemap: str) -> list[str]:
    """Every loc of a sitemap, the index's parts read too."""
    reply = send_request(base + sitemap)
    if reply.status == 404:
        return []  # it has nothing to list
    if reply.status != 200:
        raise RuntimeError(f"{sitemap}: {reply.status} {reply.text[:200]}")
    root = ET.fromstring(reply.text)
    listed = [loc.text or "" for loc in root.iter("{http://www.sitemaps.org/schemas/sitemap/0.9}loc")]
    if root.tag.endswith("sitemapindex"):
        return [loc for part in listed for loc in locs(base, urlsplit(part).path)]
    return listed


def settled(base: str, sitemap: str) -> list[str]:
    """The locs once the middleware's own requests are over: its reasons then change no more."""
    end = time.monotonic() + LONGEST
    latest, since = None, time.monotonic()
    while time.monotonic() < end and time.monotonic() - since < QUIET:
        state = (locs(base, sitemap), explained(base))
        if state != latest:
            latest, since = state, time.monotonic()
        time.sleep(0.5)
    return locs(base, sitemap)


def crawl(base: str, seeds: list[str]) -> dict[str, Reply]:
    """What an anonymous visitor gets: the home page, what its links lead to, to a certain depth, and the routes given."""
    replies: dict[str, Reply] = {}
    waiting = [("/", 0), *((seed, DEPTH) for seed in seeds)]
    seen = {path for path, _ in waiting}
    for target, depth in waiting:
        if len(replies) >= PAGES:
            break
        try:
            replies[target] = reply = send_request(base + quote(target, safe="/%?=&+:;,@!$'()*~"))
        except OSError as error:
            print(f"   {target}: {error}")
            continue
        links = [html.unescape(match[1]) for match in LINK.findall(reply.text)] if reply.is_page else []
        for link in [reply.headers.get("location", ""), *links]:
            with contextlib.suppress(ValueError):
                parts = urlsplit(urldefrag(urljoin(base + target, link.strip()))[0])
                target_path = parts._replace(scheme="", netloc="").geturl()
                if link and f"{parts.scheme}://{parts.netloc}" == base and target_path not in seen and depth < DEPTH:
                    seen.add(target_path)
                    waiting.append((target_path, depth + 1))
    return replies


def wrong(base: str, app: App, entries: list[str]) -> list[str]:
    """Every loc that is not a page for an anonymous visitor, and what it is."""
    faults = []
    for loc in entries:
        reply = send_request(loc) if loc.startswith(base) else None
        if reply is None:
            faults.append(f"{loc}: another host")
        elif not reply.is_page:
            faults.append(f"{loc}: {reply.status} {reply.kind}")
        elif (
            PASSWORD.search(reply.text)
            and not LOGIN.search(urlsplit(loc).path)
            and urlsplit(loc).path not in app.asking
        ):
            faults.append(f"{loc}: asks for a password")
    return faults


def faults(log: Path) -> list[str]:
    """What the log says of the middleware: its warnings, and tracebacks that end in it."""
    text = log.read_text(errors="replace")
    tracebacks = re.findall(r"(?ms)^Traceback \(most recent call last\):\n(?:[ \t].*\n)+\S.*$", text)
    ends = [(re.findall(r'File "([^"]+)"', traceback), traceback.splitlines()[-1]) for traceback in tracebacks]
    ours = [last for files, last in ends if files and "/sitemap_middleware/" in files[-1]]
    return ours + [
        line
        for line in text.splitlines()
        if re.search(r"(?i)sitemap_middleware.*(warning|error)|SitemapMiddleware:", line)
    ]


def examine(uv: Path, name: str, app: App) -> Outcome | None:
    here = environment(uv, name, app)
    if here is None:
        print(f"== {name}: needs Python {app.python[0]}.{app.python[1]}, which is not installed", flush=True)
        return None
    print(f"== {name}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="real-app-"))
    outcome = Outcome(version(uv, here, app))
    try:
        with serving(here, app, folder) as (base, log):
            before = settled(base, app.sitemap)
            outcome.before = len(before)
            outcome.wrong = [f"before: {fault}" for fault in wrong(base, app, before)]
            crawl(base, [path for path in explained(base) if not re.search(r"[<{]", path)])
            after = settled(base, app.sitemap)
            outcome.after = len(after)
            outcome.wrong += [f"after: {fault}" for fault in wrong(base, app, after)]
        outcome.faults = faults(log)
    except Exception as error:  # the other apps shall run all the same
        outcome.faults.append(f"{type(error).__name__}: {error}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for title in ("wrong", "faults"):
        for line in getattr(outcome, title):
            print(f"   {title}: {line}", flush=True)
    return outcome


def main(names: list[str]) -> int:
    unknown = set(names) - set(APPS)
    if unknown:
        print(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(APPS)}")
        return 2
    uv = UV / "uv"
    if not uv.exists():
        print("run `python3 tests --only=format` first: it installs uv")
        return 2
    outcomes = {name: examine(uv, name, app) for name, app in APPS.items() if name in names or not names}
    print("\n| app | version | listed before | listed after | wrong | faults |")
    print("|---|---|---|---|---|---|")
    for name, outcome in outcomes.items():
        if outcome is not None:
            counts = outcome.before, outcome.after, len(outcome.wrong), len(outcome.faults)
            print(f"| {name} | {outcome.version} | {' | '.join(map(str, counts))} |")
    return int(any(outcome is not None and (outcome.wrong or outcome.faults) for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
