"""Scripts: sites whose every change is known beforehand, and what each of their pages answers at any moment.

Times are seconds since a simulation's beginning, by a clock that is right.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from email.utils import formatdate
from random import Random
from typing import Final, NamedTuple

from sitemap_middleware.evidence.dates import w3c_from_timestamp

from .ages import age

START: Final = 1_750_000_000
"""The simulation's beginning in POSIX seconds."""

MINUTE: Final = 60
HOUR: Final = 3600
DAY: Final = 24 * HOUR

WORDS: Final = tuple(
    f"{colour}{thing}"
    for colour in ("red", "blue", "green", "white", "black")
    for thing in ("lamp", "stone", "river", "bridge", "candle", "anchor")
)

OUTSIDE: Final = re.compile(rb'<meta name="csrf-token"[^>]*><script nonce="[^<]*</script>')
"""What is new on every answer of most pages, and outside of what a reader sees."""

KINDS: Final = {
    "static": 14,
    "edited": 26,
    "edited, token and nonce": 12,
    "edited, ads outside main": 10,
    "rolled back": 8,
    "login wall, edited": 8,
    "ads inside main": 4,
    '"3 minutes ago" inside main': 4,
    "view counter": 4,
    "A/B test": 4,
    "A/B test that ends": 3,
    "random picks inside main": 3,
}
"""The kinds of pages, and how many of a hundred are of each."""

VOLATILE: Final = frozenset(list(KINDS)[6:])
"""Kinds whose content is another on every visit, or for ever grows older, with nobody editing it."""

BEYOND: Final = 'beyond the list: "1.2k views" inside main'
"""A counter that stands for days and then moves: to an onlooker an edit like any other. Not in the totals."""


PRODUCT: Final = (
    '{"@context": "https://schema.org", "@type": "Product", "name": "Lamp %s",'
    ' "offers": {"@type": "Offer", "price": "%d.00", "priceCurrency": "EUR"}}'
)
COUNTER: Final = (
    '{"@context": "https://schema.org", "@type": "Article", "headline": "Lamp", "interactionStatistic":'
    ' {"@type": "InteractionCounter", "interactionType": "ViewAction", "userInteractionCount": %d}}'
)


@dataclass
class Deploy:
    """A deployment: workers restart one after the other, each with the new template."""

    at: float
    visible: bool
    """Whether it changes text inside the main content, on every page of its sections."""
    reworded: bool
    """Whether that text is mixed with each page's own, so that every page changes in another way."""
    version: int
    sections: tuple[int, ...]


@dataclass
class Span:
    """A time in which something else is answered."""

    start: float
    end: float
    status: int = 503

    def holds(self, at: float) -> bool:
        return self.start <= at < self.end


class Jump(NamedTuple):
    """A time in which the clock of a worker is ahead, or behind, by more than clocks are."""

    worker: int
    span: Span
    seconds: float


@dataclass
class Page:
    """One page's script: when its content was edited, and what else moves on it."""

    path: str
    route: str
    section: int
    kind: str
    gap: float
    """Mean seconds between visits."""
    edits: list[float]
    """When each content came: the first of them before the beginning."""
    contents: list[int]
    """Which content came then. One that was there before is a rollback."""
    last_modified: str
    walls: list[Span] = field(default_factory=list)
    views: int = 0
    trial: bool = False
    """Whether the trial of its site is about this page."""
    language: str = ""
    """That of the age that it states in words."""
    facts: str = ""
    """What its JSON-LD says: a price, which is edited while its text stays, or a counter."""
    installed: int = 0
    """When a package whose file it serves was installed, in POSIX seconds."""
    clock: tuple[int, int] = (1, 0)
    """Of a page whose dates are made up: to how many seconds they are rounded, and how many they are dated back."""
    tick: tuple[str, int, int, int] | None = None
    """A text with a number that moves each day: the text, the first number, the step, and when a day begins."""
    states: str = ""
    """As what it states such a date: a moment, or a day."""
    bodies: dict[tuple[int, int, int], str] = field(default_factory=dict)

    @property
    def volatile(self) -> bool:
        return self.kind in VOLATILE or self.kind == BEYOND

    def epoch(self, at: float) -> int:
        """Which of the contents stands at a moment."""
        return max(0, bisect_right(self.edits, at) - 1)

    def made_up(self, at: float) -> int:
        """The date that is made up for an answer, in POSIX seconds."""
        step, back = self.clock
        return int(START + at) // step * step - back


@dataclass
class Answer:
    """What one visitor is answered."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes
    epoch: int
    telling: bool = True
    """Whether the content tells which epoch it is of; the winner of an A/B test, while that is on, does not."""


@dataclass
class Site:
    """One site's script."""

    name: str
    seed: int
    days: float
    frame: str
    last_modified: str
    pages: list[Page]
    deploys: list[Deploy]
    outages: list[Span]
    maintenance: list[Span]
    """Times in which every page answers 200 with one and the same text."""
    clocks: list[float]
    """By how much each worker's clock is ahead."""
    restarts: list[float]
    """How long after a deployment began each worker restarts with it."""
    stale: list[float]
    """Seconds for which each worker still serves the content before an edit, from its cache."""
    beyond: str = ""
    """What is tried here that the totals leave out."""
    trial: str = ""
    """What is tried here that the totals take in."""
    installed: tuple[int, ...] = ()
    """When packages were installed on its server, in POSIX seconds."""
    cache_seconds: float = 0
    """For how many seconds a cache keeps the pages whose Last-Modified is the time of the answer."""
    jumps: list[Jump] = field(default_factory=list)

    def clock(self, worker: int, at: float) -> float:
        """By how much a worker's clock is ahead at a moment."""
        jumped = (jump.seconds for jump in self.jumps if jump.worker == worker and jump.span.holds(at))
        return self.clocks[worker] + sum(jumped)

    def answer(self, page: Page, at: float, worker: int, random: Random) -> Answer:
        """What a worker answers at a moment."""
        epoch = page.epoch(at - self.stale[worker])
        wall = next((span for span in (*self.outages, *page.walls) if span.holds(at)), None)
        if wall is not None:
            headers = [("content-type", "text/html; charset=utf-8")]
            if wall.status == 302:
                headers.append(("location", "/login"))
            return Answer(wall.status, headers, b"<title>Sorry</title><main>Not now.</main>", epoch)
        headers = [("content-type", "text/html; charset=utf-8"), *self._modified(page, at, worker, epoch)]
        if any(span.holds(at) for span in self.maintenance):
            return Answer(200, headers[:1], b"<title>Soon</title><main><p>We will be back soon.</main>", epoch, False)
        key = (page.contents[epoch], *self._version(page, at, worker))
        body = page.bodies.get(key)
        if body is None:
            body = page.bodies[key] = self._body(page, *key)
        moving, telling = self._moving(page, at, epoch, random)
        outside = ""
        if page.kind != "static":
            page.views += 1
            token = f"{random.getrandbits(64):016x}"
            outside = f'<meta name="csrf-token" content="{token}"><script nonce="{token}">go("{token}")</script>'
        if page.states:
            stated = w3c_from_timestamp(page.made_up(at))[: 10 if page.states == "day" else 20]
            outside += f'<meta property="article:modified_time" content="{stated}">'
        ad = self._ad(random) if page.kind == "edited, ads outside main" else ""
        text = body.replace("[outside]", outside).replace("[moving]", moving).replace("[ad]", ad)
        headers.append(("content-length", str(len(text))))
        return Answer(200, headers, text.encode(), epoch, telling)

    def hidden(self, page: Page, start: float, end: float) -> bool:
        """Whether a deployment changed the page's text too between two moments: nobody could tell then."""
        return any(
            deploy.visible
            and page.section in deploy.sections
            and start <= deploy.at + max(self.restarts)
            and deploy.at <= end
            for deploy in self.deploys
        )

    def reworded(self, page: Page, start: float, end: float) -> bool:
        """Whether a deployment between two moments changed the page's text differently from other pages'.

        It may hide an edit, so nobody can tell any more whether the change before it was the last.
        """
        return any(
            deploy.visible and deploy.reworded and page.section in deploy.sections and start <= deploy.at <= end
            for deploy in self.deploys
        )

    def _modified(self, page: Page, at: float, worker: int, epoch: int) -> list[tuple[str, str]]:
        match page.last_modified:
            case "honest":
                moment = page.edits[epoch]
            case "now":
                moment = at + self.clock(worker, at)
            case "now, kept by a cache":
                moment = at - (at + page.gap) % self.cache_seconds
            case "made up":
                moment = page.made_up(at) - START
            case "installed":
                moment = page.installed - START
            case "deployment":
                moment = self._deployed(at, worker) + len(page.path) % 7
            case "start of the worker":
                moment = (at // (3 * DAY)) * 3 * DAY + worker * 5 * HOUR - 3 * DAY
            case _:
                return []
        return [("last-modified", formatdate(START + int(moment), usegmt=True))]

    def _deployed(self, at: float, worker: int) -> float:
        return max((deploy.at for deploy in self.deploys if deploy.at + self.restarts[worker] <= at), default=-10 * DAY)

    def _version(self, page: Page, at: float, worker: int) -> tuple[int, int]:
        """The version of the layout, and that of the wording."""
        layout = wording = 0
        for deploy in self.deploys:
            if deploy.at + self.restarts[worker] > at:
                break
            if not deploy.visible or page.section not in deploy.sections:
                continue
            if deploy.reworded:
                wording = deploy.version
            else:
                layout = deploy.version
        return layout, wording

    def _body(self, page: Page, content: int, version: int, wording: int) -> str:
        facts = ""
        if page.facts == "price":
            product = PRODUCT % (page.path, Random(f"{page.path} price {content}").randint(100, 9999))
            facts, content = f'<script type="application/ld+json">{product}</script>', 0
        words = Random(f"{page.path} {content}").choices(WORDS, k=60)
        text = f"<h1>{words[0].title()} {page.path}, in {1900 + wording}</h1><p>{' '.join(words)}.</p>"
        text += f"<a href='/{words[1]}'>More</a>"
        related = Random(f"{page.path} related {wording}").choices(WORDS, k=3)
        text += f"<p>Related: {' '.join(related)}</p>"
        inner = f"<p>Layout {version}</p>{text}[moving]"
        match self.frame:
            case "main":
                middle = f"<main>{inner}</main><div>[ad]</div>"
            case "article":
                middle = f"<article>{inner}</article><div>[ad]</div>"
            case _:
                middle = f"<div>{inner}</div><aside>[ad]</aside>"
        return (
            f"<!doctype html><html><head><title>{page.path}</title>{facts}[outside]</head><body>"
            f"<nav><a href='/'>Home</a> {version}</nav>{middle}<footer>Version {version}</footer></body></html>"
        )

    def _moving(self, page: Page, at: float, epoch: int, random: Random) -> tuple[str, bool]:
        """What moves inside the main content, and whether it tells the epoch."""
        if page.language:
            return f"<p>{age(page.language, at - page.edits[epoch])}</p>", True
        if page.tick:
            text, first, step, begins = page.tick
            return f"<p>{text.format(first + step * int((at + begins) // DAY))}</p>", True
        if page.facts == "counter":
            page.views += random.randrange(4)
            return f'<script type="application/ld+json">{COUNTER % page.views}</script>', True
        match page.kind:
            case "ads inside main":
                return self._ad(random), True
            case '"3 minutes ago" inside main':
                return f"<p>Posted {ago(at - page.edits[epoch])}</p>", True
            case "view counter":
                page.views += random.randrange(4)
                return f"<p>{page.views} views</p>", True
            case "A/B test":
                return f"<p>Offer {random.choice('AB')}</p>", True
            case "A/B test that ends" if epoch == 0:
                variant = random.choice("AB")
                return f"<p>Offer {variant}</p>", variant == "A"
            case "A/B test that ends":
                return "<p>Offer B</p>", True
            case "random picks inside main":
                return "".join(f"<a href='/{word}'>{word}</a>" for word in random.sample(WORDS, 3)), True
            case kind if kind == BEYOND:
                return f"<p>{1 + at / DAY / 8:.1f}k views</p>", True
        return "", True

    def _ad(self, random: Random) -> str:
        number = random.randrange(12)
        return f"<a href='https://ads.example/{number}'><img src='/ads/{number}.png'></a> Buy {WORDS[number]} now"


def ago(seconds: float) -> str:
    """The age of a thing as pages write it."""
    for size, name in ((365 * DAY, "year"), (30 * DAY, "month"), (DAY, "day"), (HOUR, "hour"), (MINUTE, "minute")):
        if seconds >= size:
            number = int(seconds // size)
            return f"{number} {name}{'s' * (number > 1)} ago"
    return "just now"
