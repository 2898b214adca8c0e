"""`python -m benchmarks.pollution`: what do a million made-up URLs leave behind?

An app with five kinds of routes gets requests, in process, for URLs that nobody
ever linked to. Ten times on the way it measures what may grow: the pages known, the
made-up URLs listed, this process's memory, the store's file. The exit code says
whether the targets were met.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware, sitemap
from sitemap_middleware.stores.sqlite.store import SQLiteStore

from .separate_process import MB, memory
from .tables import Table

CAP = 5_000
"""Learned pages allowed for each route here; the default is 100,000."""

POSTS = {f"post-{number}" for number in range(100)}
BASE = "https://example.com"
LOOKS = 10
BATCH = 5_000
"""Requests between two flushes; a running app flushes every two seconds."""


async def page(request: Request) -> HTMLResponse:
    return HTMLResponse(f"<main>The page at {request.url.path}, and nowhere else</main>")


@sitemap(learn=True)
async def post(request: Request) -> HTMLResponse:
    slug = request.path_params["slug"]
    if slug not in POSTS:
        return HTMLResponse("<main>There is no such post</main>", 404)
    return await page(request)


@sitemap(learn=True)
async def anything(request: Request) -> HTMLResponse:
    return await page(request)


@sitemap(learn=True)
async def shop(_: Request) -> HTMLResponse:
    return HTMLResponse("<main>Sorry, we do not have that any more</main>")


KINDS = {
    "no route at all": "/{}/index.php",
    "a learned route that answers 404 to what it does not know": "/posts/{}",
    "a learned route that answers 200 with one and the same": "/shop/{}",
    "a catch-all that is marked as learned, and answers 200 to anything": "/docs/{}/x",
    "a search, by query": "/search?q={}",
    "a search, by path": "/search/{}",
}
STRICT = tuple(KINDS)[:3] + tuple(KINDS)[4:]
"""The kinds whose made-up URLs must never be listed."""


def app() -> Starlette:
    return Starlette(
        routes=[
            *(Route(f"/static-{number}", page) for number in range(10)),
            Route("/posts/{slug}", post),
            Route("/shop/{item}", shop),
            Route("/docs/{path:path}", anything),
            Route("/search", page),
            Route("/search/{words}", page),
        ]
    )


async def get(site: Any, target: str) -> bytes:
    path, _, query = target.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "https",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(b"host", b"example.com"), (b"user-agent", b"Mozilla/5.0"), (b"accept", b"text/html,*/*")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    body = b""

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        nonlocal body
        body += message.get("body", b"")

    await site(scope, receive, send)
    return body


def real() -> list[str]:
    return ["/search"] + [f"/static-{number}" for number in range(10)] + [f"/posts/{slug}" for slug in sorted(POSTS)]


def made_up(count: int) -> Iterator[str]:
    templates = list(KINDS.values())
    for number in range(count):
        yield templates[number % len(templates)].format(f"{number * 2_654_435_761 % 2**32:x}-{number}")


def kind(path: str) -> str | None:
    """The kind of made-up URL that a listed path is; None for a real page."""
    if path in REAL:
        return None
    return next(
        (name for name, form in KINDS.items() if path.startswith(form.partition("{")[0]) and form[1] != "{"), STRICT[0]
    )


REAL = frozenset(real())


class FloodSample:
    """Pages, memory and file size at one moment."""

    def __init__(self, requests: int, file: Path, store: SQLiteStore, listed: list[str]) -> None:
        self.requests = requests
        self.memory = memory("VmRSS") / MB
        self.size = sum(entry.stat().st_size for entry in file.parent.iterdir()) / MB
        self.known = len(store.pages(BASE))
        self.listed = listed
        kinds = [made_up_kind for path in listed if (made_up_kind := kind(path))]
        self.strict = sum(made_up_kind in STRICT for made_up_kind in kinds)
        self.caught = len(kinds) - self.strict
        self.real = len(listed) - len(kinds)


async def run(urls: int) -> list[FloodSample]:
    with TemporaryDirectory() as folder:
        file = Path(folder, "pages.sqlite3")
        store = SQLiteStore(file)
        site = SitemapMiddleware(
            app(), base_url=BASE, store=store, max_pages_per_route=CAP, max_age=0, robots=False, verify=False
        )
        samples: list[FloodSample] = []
        paths = made_up(urls)
        for number in range(LOOKS + 1):
            for count in range(0 if number == 0 else urls // LOOKS):
                await get(site, next(paths))
                if count % BATCH == 0:
                    await asyncio.to_thread(site.flush)
            for path in real():
                await get(site, path)
            document = await get(site, "/sitemap.xml")
            listed = [part.partition(b"</loc>")[0].decode() for part in document.split(b"<loc>")[1:]]
            samples.append(
                FloodSample(number * (urls // LOOKS), file, store, [loc.removeprefix(BASE) for loc in listed])
            )
        site.close()
        return samples


def table(samples: list[FloodSample]) -> Table:
    table = Table(
        "What a flood of made-up URLs leaves behind",
        [
            "asked for",
            "pages known",
            "real ones listed",
            "made-up listed",
            "of the catch-all",
            "memory, MB",
            "file, MB",
        ],
    )
    for sample in samples:
        table.add(
            f"{sample.requests:,}",
            f"{sample.known:,}",
            str(sample.real),
            str(sample.strict),
            f"{sample.caught:,}",
            f"{sample.memory:.0f}",
            f"{sample.size:.1f}",
        )
    table.notes.append(
        f"Each route may have {CAP:,} pages here. The catch-all answers 200 to anything, and is marked as learned."
    )
    return table


def targets(samples: list[FloodSample]) -> tuple[Table, bool]:
    table = Table("Targets", ["", "wanted", "found", ""])
    half = samples[len(samples) // 2]
    memory, size = samples[-1].memory / half.memory - 1, samples[-1].size / half.size - 1
    met = (
        all(sample.strict == 0 for sample in samples),
        all(sample.caught <= CAP for sample in samples),
        all(sample.real == len(REAL) for sample in samples),
        memory < 0.05,
        size < 0.02,
    )
    table.add(
        "made-up URLs listed, but of the catch-all", "0", str(max(sample.strict for sample in samples)), _met(met[0])
    )
    table.add(
        "those of the catch-all", f"{CAP:,} at most", f"{max(sample.caught for sample in samples):,}", _met(met[1])
    )
    table.add("pages of the site listed", str(len(REAL)), str(min(sample.real for sample in samples)), _met(met[2]))
    table.add("memory, over the second half", "under 5 %", f"{memory:+.1%}", _met(met[3]))
    table.add("the file's size, over the second half", "under 2 %", f"{size:+.1%}", _met(met[4]))
    return table, all(met)


def _met(met: bool) -> str:
    return "met" if met else "MISSED"


def plot(samples: list[FloodSample], file: Path) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3))
    for panel, title, values in (
        (
            axes[0],
            "memory and file, MB",
            {"memory": [sample.memory for sample in samples], "file": [sample.size for sample in samples]},
        ),
        (
            axes[1],
            "URLs",
            {"pages known": [sample.known for sample in samples], "listed": [len(sample.listed) for sample in samples]},
        ),
    ):
        for name, line in values.items():
            panel.plot([sample.requests for sample in samples], line, label=name, marker=".")
        panel.set_title(title)
        panel.set_xlabel("made-up URLs asked for")
        panel.set_ylim(bottom=0)
        panel.legend()
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pollution", description="What made-up URLs leave behind."
    )
    parser.add_argument("--urls", type=int, default=1_000_000, help="make up so many (1000000)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw it there, as SVG")
    options = parser.parse_args()
    began = time.perf_counter()
    samples = asyncio.run(run(options.urls))
    print(f"{options.urls:,} made-up URLs; {time.perf_counter() - began:.0f} s.\n")
    print(table(samples))
    verdict, met = targets(samples)
    print(verdict)
    if options.plot:
        plot(samples, options.plot)
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
