"""Traffic: requests at a steady rate, however fast the server answers, in the mix that a public site gets."""

from __future__ import annotations

import asyncio
import time
from array import array
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from itertools import accumulate, cycle
from random import Random
from typing import Any, Final

from .client import BROWSER, CRAWLER, Client, Reply, request
from .script import ACCOUNT, BROKEN, FEED, HOST, OLD, POST, STATIC, STYLE, UNLISTED, Script

MAX_REQUESTS_UNDER_WAY: Final = 500
"""The most requests under way at one time; more are a fault, because the server does not keep up."""

KEPT: Final = 50
"""Faults that the report describes; more are only counted."""

PROBES: Final = (
    "/wp-login.php", "/.env", "/.git/config", "/phpmyadmin/index.php", "/xmlrpc.php", "/admin/config.php", "/feed",
    "/backup.zip", "/sitemap.xml.gz", "/sitemap_index.xml", "/sitemap-nothing-1.xml", "/vendor/phpunit", "/cgi-bin/x",
)  # fmt: skip
HOSTILE: Final = (
    "/../../etc/passwd", "/posts/..%2f..%2fetc%2fpasswd", "/posts/%00", "/posts/%ff%fe", "/posts/\xff", "/%",
    "/posts/" + "x" * 3000, "/posts/<script>alert(1)</script>", "/posts/%0d%0aSet-Cookie:x=1", "/posts/%zz",
    "/" + "a/" * 500, "/posts/\u00e9\u00e8", "/posts/post'--", "/sitemap.xml/../x", "/posts/{slug}", "//evil.example/x",
)  # fmt: skip
SITEMAPS: Final = ("/sitemap.xml", "/robots.txt")
NO_DOCUMENT: Final = "/sitemap-pages-9999.xml"
"""It is named like a document: while the store is down, nobody can say that there is none."""


@dataclass(frozen=True, slots=True)
class RequestSpec:
    """A request, and the answer that the script expects."""

    kind: str
    sent: bytes
    path: str = ""
    statuses: Collection[int] = ()
    """The statuses allowed; if empty, the one that the script gives for the path."""
    cookie: bool = False
    query: bool = False


@dataclass(slots=True)
class Window:
    """The results of one time window."""

    requests: int = 0
    seconds: dict[str, array[float]] = field(default_factory=dict)
    """From when each was due to its last byte: of pages, and of sitemaps."""


@dataclass
class Traffic:
    """The results of the whole run."""

    windows: list[dict[str, Any]] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    faulty: int = 0
    again: int = 0
    late: float = 0.0
    """Seconds by which 99 of 100 requests were sent late, at most, for the client itself was busy."""

    def fault(self, words: str) -> None:
        self.faulty += 1
        if len(self.faults) < KEPT:
            self.faults.append(words)


class Mix:
    """What is asked for next."""

    def __init__(self, script: Script, random: Random) -> None:
        self._script, self._random = script, random
        self._popular = list(accumulate(1 / (rank + 1) for rank in range(script.posts)))
        self._order = random.sample(range(script.posts), script.posts)  # which of them are popular
        self._sweep = cycle(self._site())
        self._etags: dict[str, str] = {}
        self._kinds: list[tuple[int, Callable[[], RequestSpec]]] = [
            (450, self._visitor), (140, self._known), (220, self._crawler), (50, self._with_query), (70, self._probe),
            (20, self._hostile), (10, self._stranger), (36, self._other), (4, self._sitemap),
        ]  # fmt: skip
        self._weights = list(accumulate(weight for weight, _ in self._kinds))

    def next(self) -> RequestSpec:
        return self._kinds[bisect(self._weights, self._random.random() * self._weights[-1])][1]()

    def note(self, spec: RequestSpec, reply: Reply) -> None:
        """Remember an ETag, as crawlers do."""
        if spec.kind == "sitemap" and "etag" in reply.fields:
            self._etags[spec.path] = reply.fields["etag"]

    def _site(self) -> Iterator[str]:
        script = self._script
        yield from STATIC
        for number in range(script.posts):
            yield script.post(number)
            if number % 20 == 0:
                yield OLD + script.slug(number)
                yield script.item(number)
                yield UNLISTED[number // 20 % len(UNLISTED)]

    def _popular_path(self) -> str:
        """A post, by Zipf's law; now and then another page."""
        if self._random.random() < 0.1:
            return self._random.choice(STATIC)
        rank = bisect(self._popular, self._random.random() * self._popular[-1])
        return self._script.post(self._order[min(rank, len(self._order) - 1)])

    def _visitor(self) -> RequestSpec:
        path = self._popular_path()
        return RequestSpec("visitor", request(path, {"host": HOST, **BROWSER}), path)

    def _known(self) -> RequestSpec:
        path = ACCOUNT if self._random.random() < 0.2 else self._popular_path()
        cookie = {"cookie": f"session={self._random.getrandbits(64):x}"}
        return RequestSpec("with a cookie", request(path, {"host": HOST, **BROWSER, **cookie}), path, cookie=True)

    def _crawler(self) -> RequestSpec:
        path = next(self._sweep)
        return RequestSpec("crawler", request(path, {"host": HOST, **CRAWLER}), path)

    def _with_query(self) -> RequestSpec:
        path = self._popular_path()
        query = self._random.choice(("utm_source=letter", "page=2", "q=%3Cb%3E", f"x={self._random.getrandbits(64):x}"))
        return RequestSpec("with a query", request(f"{path}?{query}", {"host": HOST, **CRAWLER}), path, query=True)

    def _probe(self) -> RequestSpec:
        made_up = f"{self._random.choice((POST, '/items/item-', '/', '/old/'))}{self._random.getrandbits(40):x}-nothing"
        path = self._random.choice((*PROBES, NO_DOCUMENT, made_up, made_up, made_up))
        statuses = (404, 503) if path == NO_DOCUMENT else (404,)
        return RequestSpec("made up", request(path, {"host": HOST, **CRAWLER}), path, statuses)

    def _hostile(self) -> RequestSpec:
        target = self._random.choice(HOSTILE)
        return RequestSpec("hostile", request(target, {"host": HOST, **CRAWLER}), target, (400, 404, 414))

    def _stranger(self) -> RequestSpec:
        path = self._popular_path()
        return RequestSpec(
            "another host", request(path, {"host": f"{self._random.getrandbits(40):x}.example", **CRAWLER}), path
        )

    def _other(self) -> RequestSpec:
        path, method, statuses = self._random.choice(
            (
                (self._popular_path(), "HEAD", ()), (self._popular_path(), "POST", (405,)),
                (self._popular_path(), "DELETE", (405,)),
                (STYLE, "GET", (200,)), (FEED, "GET", (200,)), ("/stream", "GET", (200,)), (BROKEN, "GET", (500,)),
                ("/sitemap.xml", "HEAD", (200,)), ("/robots.txt", "HEAD", (200,)),
            )
        )  # fmt: skip
        return RequestSpec(f"{method} and others", request(path, {"host": HOST, **BROWSER}, method), path, statuses)

    def _sitemap(self) -> RequestSpec:
        path = self._random.choice((*SITEMAPS, SITEMAPS[0]))
        etag = {"if-none-match": self._etags[path]} if path in self._etags and self._random.random() < 0.8 else {}
        return RequestSpec("sitemap", request(path, {"host": HOST, **CRAWLER, **etag}), path, (200, 304))


def fault(script: Script, spec: RequestSpec, reply: Reply, sent: float, now: float) -> str | None:
    """What is wrong with a reply: another status than the app's own, or another body."""
    if spec.statuses:
        return None if reply.status in spec.statuses else f"{spec.kind}: {spec.path[:80]} was answered {reply.status}"
    answers = [script.answer(spec.path, at, query=spec.query, cookie=spec.cookie) for at in (sent, now)]
    if reply.status not in {answer.status for answer in answers}:
        return f"{spec.kind}: {spec.path[:80]} was answered {reply.status}, and is {answers[1].status}"
    number = script.number(spec.path)
    if number is None or reply.status != 200 or spec.sent.startswith(b"HEAD"):
        return None
    editions = {script.edition(number, at) for at in (sent, now)}
    if not any(b"edition %d of post %d:" % (edition, number) in reply.body for edition in editions):
        return f"{spec.kind}: {spec.path} is not of edition {editions}"
    return None if reply.body.endswith(b"</html>") else f"{spec.kind}: {spec.path} ends in the middle"


async def drive(script: Script, port: int, until: float, *, rate: float, width: float, seed: int) -> Traffic:
    """Ask at so many requests a second, by chance, until a time."""
    random = Random(seed)
    mix, client, results = Mix(script, random), Client(port), Traffic()
    windows: dict[int, Window] = {}
    late = array("d")
    under_way: set[asyncio.Task[None]] = set()
    began = due = time.time()

    async def send(spec: RequestSpec, due: float) -> None:
        sent = time.time()
        late.append(sent - due)
        try:
            reply = await client.request(spec.sent)
        except Exception as error:
            results.fault(f"{spec.kind}: {spec.path[:80]} was not answered: {error!r}")
            return
        now = time.time()
        if (words := fault(script, spec, reply, sent, now)) is not None:
            results.fault(f"{words}, {now - began:.0f} s after the beginning")
        mix.note(spec, reply)
        results.statuses[f"{spec.kind}: {reply.status}"] += 1
        window = windows.setdefault(int((due - began) / width), Window())
        window.requests += 1
        group = "sitemaps" if spec.path.startswith("/sitemap") else "pages"  # made-up ones, too
        window.seconds.setdefault(group, array("d")).append(now - due)

    while due < until:
        await asyncio.sleep(due - time.time())
        if len(under_way) < MAX_REQUESTS_UNDER_WAY:
            task = asyncio.create_task(send(mix.next(), due))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
        else:
            results.fault(f"{MAX_REQUESTS_UNDER_WAY} requests were under way, {due - began:.0f} s after the beginning")
        due += random.expovariate(rate)
    if under_way:
        await asyncio.wait(under_way)
    await client.close()
    results.again = client.again
    results.late = quantile(late, 0.99)
    results.windows = [
        {"at": (number + 0.5) * width, "asked": window.requests, **_quantiles(window)}
        for number, window in sorted(windows.items())
    ]
    return results


def _quantiles(window: Window) -> dict[str, float]:
    """Milliseconds, by group and quantile."""
    return {
        f"{group} {name}": quantile(values, share) * 1000
        for group, values in window.seconds.items()
        for name, share in (("p50", 0.5), ("p99", 0.99), ("most", 1.0))
    }


def quantile(values: Collection[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def run(pipe: Any, *arguments: Any, **named: Any) -> None:
    """Run in a separate process; send the results through the pipe."""
    pipe.send(asyncio.run(drive(*arguments, **named)))
