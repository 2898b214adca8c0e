"""Which pages are versions of each other in other languages, by their routes.

They are the pages of one view that differ only in the language. It is a parameter that is one segment of the path, or a
default of the route; with Django, also the prefix of `i18n_patterns`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import blake2b
from typing import Final
from urllib.parse import unquote

from ..models import I18N, Route, Version
from ..protocol.language_codes import language_code

_UNUSUAL_RANK: Final = 1 << 40
"""Of a version whose URL spells its language in an unusual way, as strangers may. It is above all times."""


def version_of(route: Route, path: str, parameter: str) -> Version | None:
    """The page of a percent-encoded path as a version; None if the parameter does not say what language it has."""
    given = dict(route.defaults) if route.defaults else {}
    value = given.get(parameter) or given.get(I18N)
    if value is not None:
        rest = (path.removeprefix(f"/{value}") or "/") if f"{path}/".startswith(f"/{value}/") else path
    else:
        segment = _segment_of(route.path, parameter)
        segments = path.split("/")
        if segment is None or segment >= len(segments):
            return None
        value = unquote(segments.pop(segment))
        rest = "/".join(segments) or "/"
    code = language_code(value)
    if code is None:
        return None
    is_usual = value.replace("_", "-") in (code, code.lower())
    return Version(group_of(route.endpoint, rest), code, rank=0 if is_usual else _UNUSUAL_RANK)


def group_of(*texts: str) -> str:
    """What versions have in common, as the name of their group."""
    return blake2b("\n".join(texts).encode(), digest_size=10).hexdigest()


@lru_cache(1000)
def _segment_of(template: str, parameter: str) -> int | None:
    """The number of the segment of a path that is a parameter; None if there is none in a known place."""
    of_parameter = re.compile(rf"[<{{](?:[^<>{{}}]*:)?{re.escape(parameter)}(?::.*)?[>}}]")
    for number, segment in enumerate(template.split("/")):
        if of_parameter.fullmatch(segment):
            return number
        if segment.startswith("<path:") or segment.endswith(":path}"):
            return None  # it may have any number of segments
    return None
