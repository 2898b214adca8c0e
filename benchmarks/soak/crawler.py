"""The crawler: asks for the sitemap as search engines do, and holds every document against schema and script."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any, Final

from lxml import etree

from tests.support.documents import NS, parsed

from .client import CRAWLER, Client, Reply, request
from .script import BASE, HOST, STATIC, Script
from .traffic import KEPT

SITEMAP: Final = "/sitemap.xml"
PAUSE: Final = 2.0
"""Seconds between two looks."""

SETTLE_SECONDS: Final = 3.0
"""Seconds after which all observations are usually in the store; it is written every two."""

MAX_SETTLE_SECONDS: Final = 30.0
"""Seconds after which all observations must be in the store, even on a busy machine."""

LOOKS: Final = 100
"""At the end, so that every process answers once."""

Entries = Mapping[str, str | None]
"""Of a document, what it lists, and the date of each."""


@dataclass
class Found:
    """The crawler's results."""

    looks: int = 0
    documents: int = 0
    """Documents received whole, all of them validated."""
    unchanged: int = 0
    faults: list[str] = field(default_factory=list)
    faulty: int = 0
    unavailable: list[tuple[float, int, str, bool]] = field(default_factory=list)
    """503s: the time, the process, the document, and whether that process had served it before."""
    listed: list[tuple[float, int]] = field(default_factory=list)
    """How many pages were listed, and when."""
    dated: int = 0
    """Pages with a date at the end, of those that have changed while they were watched, and say nothing themselves."""
    edited: int = 0

    def fault(self, words: str) -> None:
        self.faulty += 1
        if len(self.faults) < KEPT:
            self.faults.append(words)


class Crawler:
    """Looks at the sitemap of one server again and again."""

    def __init__(self, script: Script, port: int, seed: int = 1) -> None:
        self.results = Found()
        self._script = script
        self._client = Client(port, uses=5)
        self._random = Random(seed)
        self._etags: dict[tuple[str, str], str] = {}
        """The last one of each document, as gzip and as it is."""
        self._bodies: dict[tuple[str, str, str], bytes] = {}
        """Of each document, its coding and its ETag, the digest of what came with it."""
        self._entries: dict[tuple[str, str], Entries] = {}
        """What is in each document, by its path and ETag."""
        self._served: dict[tuple[int, str], Entries] = {}
        """What each process listed last in each document."""
        self._etags_by_worker: dict[str, dict[int, str]] = {}
        """The ETag that each process gave to each document, in whichever coding."""
        self._every: Entries = {}

    async def read_sitemap(self) -> Entries | None:
        """Return everything that is listed; None if a document could not be read."""
        await self._robots()
        index = await self._document(SITEMAP)
        if index is None:
            return None
        every: dict[str, str | None] = {}
        for loc, lastmod in index.items():
            part = await self._document(loc.removeprefix(BASE)) if loc.endswith(".xml") else {loc: lastmod}
            if part is None:
                return None
            every |= part
        self.results.looks += 1
        self.results.listed.append((time.time(), len(every)))
        return every

    async def _robots(self) -> None:
        reply = await self._client.request(request("/robots.txt", {"host": HOST, **CRAWLER}))
        if reply.status != 200 or f"Sitemap: {BASE}{SITEMAP}".encode() not in reply.body:
            self._fault(f"robots.txt was answered {reply.status}: {reply.body[:100]!r}")

    async def _document(self, path: str) -> Entries | None:
        coding = "gzip" if self._random.random() < 0.8 else "identity"
        headers = {"host": HOST, **CRAWLER, "accept-encoding": coding}
        if (etag := self._etags.get((path, coding))) is not None:
            headers["if-none-match"] = etag
        reply = await self._client.request(request(path, headers))
        if reply.status == 503 and "retry-after" in reply.fields:
            had = (reply.worker, path) in self._served
            self.results.unavailable.append((time.time(), reply.worker, path, had))
            return None
        if reply.status not in {200, 304} or not reply.worker:
            self._fault(f"{path} was answered {reply.status}")
            return None
        entries = self._entries_of(path, coding, reply)
        if entries is not None:
            self._etags_by_worker.setdefault(path, {})[reply.worker] = (
                reply.fields["etag"].strip('"').removesuffix("-gzip")
            )
            self._judge(path, reply.worker, entries)
        return entries

    def _entries_of(self, path: str, coding: str, reply: Reply) -> Entries | None:
        etag = reply.fields.get("etag", "")
        if reply.status == 304:
            self.results.unchanged += 1
            if etag != self._etags.get((path, coding)):
                self._fault(f"{path} was a 304 of {etag}, which was not asked for")
                return None
            return self._entries[path, etag]
        body = gzip.decompress(reply.body) if reply.fields.get("content-encoding") == "gzip" else reply.body
        digest = hashlib.sha256(reply.body).digest()
        if self._bodies.setdefault((path, coding, etag), digest) != digest:
            self._fault(f"{path} came with ETag {etag} twice, and was not the same")
        self.results.documents += 1
        try:
            entries = {url.findtext(f"{NS}loc", ""): url.findtext(f"{NS}lastmod") for url in parsed(body)}
        except (etree.DocumentInvalid, etree.XMLSyntaxError) as error:
            self._fault(f"{path} is not valid: {error}")
            return None
        self._etags[path, coding] = etag
        asked_for = self._etags.values()
        self._entries = {key: known for key, known in self._entries.items() if key[1] in asked_for}
        self._entries[path, etag] = entries
        return entries

    def _judge(self, path: str, worker: int, entries: Entries) -> None:
        """Check that a process lists no fewer pages than before, except those taken down, and only the site's."""
        now, script = time.time(), self._script
        before = self._served.get((worker, path))
        self._served[worker, path] = entries
        if before is entries:
            return
        if before is not None:
            for loc in before.keys() - entries.keys():
                number = script.number(loc.removeprefix(BASE))
                if number is None or script.gone_at(number) > now:
                    self._fault(f"{path} no longer lists {loc}")
        if any(loc.endswith(".xml") for loc in entries):
            return
        for loc, lastmod in entries.items():
            if (words := wrong(script, loc, lastmod, now)) is not None:
                self._fault(f"{path} lists {loc}{words}")

    def _fault(self, words: str) -> None:
        self.results.fault(f"{words}, {time.time() - self._script.began:.0f} s after the beginning")

    async def close(self) -> None:
        await self._client.close()

    # At the end

    async def visit_all(self) -> None:
        """Ask for every page that is learned, or was, and for all that stands by itself."""
        for path in (*STATIC, *map(self._script.post, range(self._script.posts))):
            await self._client.request(request(path, {"host": HOST, **CRAWLER}))

    async def conclude(self, workers: int) -> None:
        """Hold the sitemap of each process against the site, which may take a moment to be there."""
        end = time.monotonic() + MAX_SETTLE_SECONDS
        while (words := await self._unlike(workers)) is not None:
            if time.monotonic() > end:
                self._fault(words)
                return
            await asyncio.sleep(PAUSE)
        every = self._every
        edited = [number for number in range(self._script.posts) if self._watched(number)]
        self.results.edited = len(edited)
        self.results.dated = sum(every[BASE + self._script.post(number)] is not None for number in edited)

    async def _unlike(self, workers: int) -> str | None:
        """In what the sitemaps of so many processes are not what there is, or not the same; None where they are."""
        truth = {BASE + path for path in self._script.listed(time.time())}
        self._etags_by_worker.clear()
        for _ in range(LOOKS):
            every = await self.read_sitemap()
            if every is None:
                return "the sitemap could not be had at the end"
            missing, strange = sorted(truth - every.keys()), sorted(every.keys() - truth)
            if missing or strange:
                shown = f"{', '.join(missing[:3])}; {', '.join(strange[:3])}"
                return f"{len(missing)} pages are missing at the end, {len(strange)} are not there: {shown}"
            self._every = every
            if all(len(etags) >= workers for etags in self._etags_by_worker.values()):
                break
        else:
            return f"not all of {workers} processes answered at the end: {self._etags_by_worker}"
        return next(
            (f"{path} differs: {etags}" for path, etags in self._etags_by_worker.items() if len({*etags.values()}) > 1),
            None,
        )

    def _watched(self, number: int) -> bool:
        script = self._script
        return len(script.edits(number)) > 1 and not script.dated(number) and script.gone_at(number) > time.time()


def wrong(script: Script, loc: str, lastmod: str | None, now: float) -> str | None:
    """What is wrong with an entry, in words that go behind its loc."""
    path = loc.removeprefix(BASE)
    number = script.number(path)
    if number is None:
        is_item = script.answer(path, now).status == 200 and path.startswith("/items/")
        if path not in STATIC and not is_item:
            return ", which is no page of the site"
        return None if lastmod is None else f" with {lastmod}, and it never changes"
    if lastmod is None:
        return None
    at = datetime.fromisoformat(lastmod).timestamp()
    edits = [edit for edit in script.edits(number) if edit <= now]
    if (script.dated(number) and at in edits) or (len(edits) > 1 and edits[1] <= at <= now + 1):
        return None  # it says so itself, or was seen to change
    return f" with {lastmod}, and its edits were at {edits}"


async def crawl(script: Script, port: int, until: float, workers: int) -> Found:
    """Look again and again, until a time; then visit all pages, and look whether the sitemap is that of the site."""
    crawler = Crawler(script, port)
    while time.time() < until:
        try:
            await crawler.read_sitemap()
        except Exception as error:
            crawler.results.fault(f"the sitemap was not answered: {error!r}")
        await asyncio.sleep(PAUSE)
    await crawler.visit_all()
    await asyncio.sleep(SETTLE_SECONDS)
    await crawler.conclude(workers)
    await crawler.close()
    return crawler.results


def run(pipe: Any, *arguments: Any) -> None:
    """Run in a separate process; send the results through the pipe."""
    pipe.send(asyncio.run(crawl(*arguments)))
