"""Finds patterns of the options that match no route of the app, which are usually misspelt."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final, NamedTuple

from ..options.patterns import Pattern
from ..options.table import Options
from ..routing.route_table import RouteTable

MAX_COMPARED_PATHS: Final = 5000
"""Paths that are searched for a similar one, at most."""

_STATIC_FOLDERS: Final = ("/static/", "/assets/", "/media/")
"""Usual folders of static files. Their mounts often cannot be read, so no pattern for them counts as misspelt."""


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
    templates = [Pattern(path) for path in paths]
    for option, patterns in (("exclude", options.exclude), ("include", options.include), ("learn", options.learn)):
        for pattern in patterns:
            if any(patterns.matches_with(pattern, path) for path in paths) or _may_match(pattern, templates):
                continue
            nearest = _nearest(pattern, paths)
            if nearest or (option == "exclude" and not pattern.text.startswith(_STATIC_FOLDERS)):
                yield UnmatchedPattern(option, pattern.text, nearest)


def _may_match(pattern: Pattern, templates: list[Pattern]) -> bool:
    """Whether a pattern may match a page of a route with parameters: it begins like the route's template."""
    if pattern.literal:
        return any(template.matches(pattern.text) for template in templates)
    return any(
        template.prefix.startswith(pattern.prefix) or pattern.prefix.startswith(template.prefix)
        for template in templates
        if not template.literal
    )


def _nearest(pattern: Pattern, paths: list[str]) -> str | None:
    """The path that is most similar to a pattern. Only the text before a star is compared."""
    wanted = pattern.text.partition("*")[0] or pattern.text
    depth = wanted.rstrip("/").count("/")
    begins = {"/".join(path.split("/")[: depth + 1]): path for path in reversed(paths[:MAX_COMPARED_PATHS])}
    close = get_close_matches(wanted.rstrip("/"), [*begins], n=1, cutoff=0.75)
    return begins[close[0]] if close else None
