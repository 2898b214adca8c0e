"""Finds patterns of the options that match no route of the app, which are usually misspelt."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final, NamedTuple

from ..options.table import Options
from ..patterns import Pattern
from ..routing.route_table import RouteTable

MAX_COMPARED_PATHS: Final = 5000
"""Paths that are searched for a similar one, at most."""

_STATIC_FOLDERS: Final = ("/static/", "/assets/", "/media/")
"""Usual folders of static files. Their mounts often cannot be read, so no pattern for them counts as misspelt."""
_GLOB: Final = re.compile(r"\*+")
_PARAMETER: Final = re.compile(r"<[^<>]*>|\{[^{}]*\}")


class UnmatchedPattern(NamedTuple):
    """A pattern that matches nothing."""

    option: str
    pattern: str
    nearest: str | None
    """The most similar path of the app, if there is one."""

    @property
    def fix(self) -> str:
        if ",/" in (text := self.pattern.replace(" ", "")):
            return f"give several patterns as a list: {text.split(',')}"
        return f"did you mean {self.nearest}?" if self.nearest else "correct it, or leave it out"

    @property
    def reason(self) -> str:
        return f"the option {self.option} has {self.pattern}, which matches no route of the app; {self.fix}"


def unmatched_patterns(options: Options, table: RouteTable) -> Iterator[UnmatchedPattern]:
    """The patterns of `exclude` that match no route, and those of `include` and `learn` that are probably misspelt.

    The latter two may match paths of mounted apps whose routes cannot be read.
    """
    if not table.routes:
        return
    paths = [route.path for route in table.routes]
    for option, patterns in (("exclude", options.exclude), ("include", options.include), ("learn", options.learn)):
        for pattern in patterns:
            if any(patterns.matches_with(pattern, path) for path in paths) or _may_match(pattern, paths):
                continue
            nearest = _nearest(pattern, paths)
            if nearest or (option == "exclude" and not pattern.text.startswith(_STATIC_FOLDERS)):
                yield UnmatchedPattern(option, pattern.text, nearest)


def _may_match(pattern: Pattern, paths: list[str]) -> bool:
    """Whether the pattern may match a page of a route with parameters."""
    tokens = _tokens(pattern.text)
    return any(_overlaps(tokens, _tokens(path)) for path in paths if _is_comparable(pattern, path))


def _is_comparable(pattern: Pattern, path: str) -> bool:
    """Whether a path has parameters, and begins like the pattern: only then the two are compared in full."""
    begin = _PARAMETER.split(path, maxsplit=1)[0]
    return begin != path and (begin.startswith(pattern.prefix) or pattern.prefix.startswith(begin))


def _tokens(text: str) -> list[str]:
    """A pattern or template as a list of characters: "*" matches any characters, and "+" a parameter."""
    wide = re.sub(r"<path[:(][^<>]*>|\{[^{}]*:path\}", "*", text)
    return [*_GLOB.sub("*", _PARAMETER.sub("\0", wide)).replace("+", "\1").replace("\0", "+")]


def _overlaps(tokens: list[str], other: list[str]) -> bool:
    """Whether some path matches both. `below[n]` tells it for the rest of `tokens` and `other[n:]`."""
    below = [False] * len(other) + [True]
    for left in reversed([*tokens, ""]):
        row = [False] * (len(other) + 1)
        for at in range(len(other), -1, -1):
            right = other[at] if at < len(other) else ""
            after = row[at + 1] if right else False  # the same left token, the next right one; below: the next left one
            both = below[at + 1] if right and left else False
            if not left and not right:
                row[at] = True
            elif left == "*" or right == "*":
                row[at] = (left == "*" and (below[at] or after)) or (
                    right == "*" and (after or bool(left and below[at]))
                )
            elif left == "+" and right == "+":
                row[at] = both or after or below[at]
            elif left == "+":
                row[at] = right not in ("", "/") and (both or after)
            elif right == "+":
                row[at] = left not in ("", "/") and (both or below[at])
            else:
                row[at] = left == right and both
        below = row
    return below[0]


def _nearest(pattern: Pattern, paths: list[str]) -> str | None:
    """The path that is most similar to a pattern. Only the text before a star is compared."""
    wanted = _GLOB.split(pattern.text)[0] or pattern.text
    depth = wanted.rstrip("/").count("/")
    begins = {"/".join(path.split("/")[: depth + 1]): path for path in reversed(paths[:MAX_COMPARED_PATHS])}
    close = get_close_matches(wanted.rstrip("/"), [*begins], n=1, cutoff=0.75)
    return begins[close[0]] if close else None
