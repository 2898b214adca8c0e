"""The script: a site of which it is known beforehand what each page answers at any moment.

The server's workers answer by it and the clients judge by it, each with the clock of
the machine; nothing is passed between them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from email.utils import formatdate
from typing import Final, Self

HOST: Final = "soak.example"
BASE: Final = f"http://{HOST}"
POST, ITEM, OLD = "/posts/", "/items/", "/old/"
STATIC: Final = ("/", "/about", "/contact", "/terms", "/search", "/stream")
"""Routes that answer anyone with a page, and are listed."""
ACCOUNT, LOGIN, STYLE, FEED, BROKEN = "/account", "/login", "/style.css", "/api/posts", "/broken"
UNLISTED: Final = (ACCOUNT, LOGIN, STYLE, FEED, BROKEN)
"""Routes of which none may be listed: a redirect to the login, a noindex, no page, no page, an error."""
ROBOTS: Final = "User-agent: *\nDisallow: /broken\n"

TURNS: Final = 2
"""Times that each page changes which changes at all."""

_GOLDEN: Final = 0.618033988749895
_TEXT: Final = (
    "bread flour water salt yeast oven crust crumb dough starter rise fold shape score bake cool slice toast butter rye"
    " wheat spelt barley seed grain mill stone hearth basket linen steam heat time taste smell touch morning"
)
_WORDS: Final = tuple(_TEXT.split())


@dataclass(frozen=True, slots=True)
class Answer:
    """What the app answers."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""


@dataclass(frozen=True, slots=True)
class Script:
    """A site that began at a time and lives for so many seconds."""

    began: int
    seconds: int
    posts: int
    items: int

    # As the workers are told

    def environ(self) -> dict[str, str]:
        return {f"SOAK_{name.upper()}": str(value) for name, value in asdict(self).items()}

    @classmethod
    def from_environ(cls) -> Self:
        return cls(*(int(os.environ[f"SOAK_{name.upper()}"]) for name in cls.__slots__))

    # What there is, and when it changes

    def slug(self, number: int) -> str:
        words = _WORDS[number % len(_WORDS)], _WORDS[number // len(_WORDS) % len(_WORDS)]
        return f"{'-'.join(words)}-{number}"

    def post(self, number: int) -> str:
        return POST + self.slug(number)

    def item(self, number: int) -> str:
        return f"{ITEM}item-{number}"

    def number(self, path: str) -> int | None:
        """Which post a path is of, if of any."""
        tail = path.rpartition("-")[2]
        number = int(tail) if tail.isascii() and tail.isdecimal() else self.posts
        return number if number < self.posts and path == self.post(number) else None

    def edits(self, number: int) -> list[int]:
        """When a post was edited, in whole seconds: long ago, and one in thirty several times in the site's life."""
        first = self.began - (number + 1) * 3600
        if number % 30 not in {3, 13}:
            return [first]
        turn = self.seconds / TURNS
        phase = number * _GOLDEN % 1
        return [first, *(self.began + int((index + phase) * turn) for index in range(TURNS))]

    def edition(self, number: int, at: float) -> int:
        return sum(edit <= at for edit in self.edits(number)) - 1

    def dated(self, number: int) -> bool:
        """Whether a post says when it was edited."""
        return number % 3 == 1

    def gone_at(self, number: int) -> float:
        """When a post is taken down, of those that are."""
        if number % 60 != 7:
            return float("inf")
        return self.began + int(self.seconds * (0.3 + 0.4 * (number * _GOLDEN % 1)))

    def listed(self, at: float) -> Iterator[str]:
        """The paths of which a true sitemap is made, once all were visited."""
        yield from STATIC
        yield from (self.post(number) for number in range(self.posts) if self.gone_at(number) > at)
        yield from (self.item(number) for number in range(self.items))

    # What is answered

    def answer(self, path: str, at: float, *, query: bool = False, cookie: bool = False, token: str = "") -> Answer:
        """A page as it is at a time; `token` stands where each answer has another one."""
        if path in STATIC:
            return _page(f"The page at {path}", f"It is there for {path}, and has been for long.", token)
        if (number := self.number(path)) is not None:
            return self._post(number, at, cookie=cookie, token=token)
        if path.startswith(ITEM):
            tail = path.removeprefix(f"{ITEM}item-")
            if tail.isascii() and tail.isdecimal() and str(int(tail)) == tail and int(tail) < self.items:
                return _page(
                    f"Item {tail}", f"one{tail} of those that the app enumerates, two{tail} three{tail}", token
                )
        if path.startswith(OLD) and self.number(POST + path.removeprefix(OLD)) is not None:
            return Answer(301, (("Location", POST + path.removeprefix(OLD)),))
        if path == ACCOUNT:
            if not cookie:
                return Answer(302, (("Location", LOGIN),))
            answer = _page("Your account", "Nobody else may see this.", token)
            return Answer(
                200, (*answer.headers, ("Cache-Control", "private"), ("Set-Cookie", f"seen={token}")), answer.body
            )
        if path == LOGIN:
            answer = _page("Log in", "With your name.", token)
            return Answer(200, (*answer.headers, ("X-Robots-Tag", "noindex")), answer.body)
        return self._other(path, query=query)

    def _post(self, number: int, at: float, *, cookie: bool, token: str) -> Answer:
        if at >= self.gone_at(number):
            return Answer(410, _HTML, "<p>It was taken down.")
        edition = self.edition(number, at)
        own = " ".join(f"{word}{number}x{edition}" for word in _WORDS[: 12 + number % 9])
        start = number % len(_WORDS)
        common = " ".join((_WORDS[start:] + _WORDS[:start]) * 8)
        answer = _page(
            f"Post {number}", f"edition {edition} of post {number}: {own}</p><p>{common}", token, cookie=cookie
        )
        if not self.dated(number):
            return answer
        last_modified = formatdate(self.edits(number)[edition], usegmt=True)
        return Answer(200, (*answer.headers, ("Last-Modified", last_modified)), answer.body)

    def _other(self, path: str, *, query: bool) -> Answer:
        if path == "/robots.txt":
            return Answer(200, (("Content-Type", "text/plain"),), ROBOTS)
        if path == STYLE:
            return Answer(200, (("Content-Type", "text/css"),), "main { max-width: 40em }")
        if path == FEED:
            return Answer(200, (("Content-Type", "application/json"),), "[]" if query else '["all"]')
        if path == BROKEN:
            return Answer(500, _HTML, "<p>As ever.")
        return Answer(404, _HTML, "<p>There is no such page.")


_HTML: Final = (("Content-Type", "text/html; charset=utf-8"),)
_MENU: Final = "".join(f'<a href="/menu/{word}">{word}</a>' for word in _WORDS)


def _page(title: str, text: str, token: str, *, cookie: bool = False) -> Answer:
    greeting = "Good to see you again" if cookie else '<a href="/login">Log in</a>'
    body = (
        f"<!doctype html><html><head><title>{title}</title></head><body><header>{greeting}</header><nav>{_MENU}</nav>"
        f"<main><h1>{title}</h1><p>{text}</p></main>"
        f'<footer><form><input type="hidden" name="csrf" value="{token}"></form></footer></body></html>'
    )
    return Answer(200, _HTML, body)
