"""The rulebook: each site's robots.txt as the app serves it, asked for within the process now and then."""

from __future__ import annotations

import logging
import math
from typing import Final

from .exchange import Request, Response
from .location import quote_path
from .model import Site
from .options import Options
from .publishing.response import Fields, amended, text
from .robots import MAX_BYTES, PATH, Rules, minimal, with_sitemap
from .routes.urlmap import RouteTable

log = logging.getLogger("sitemap_middleware")

MOST: Final = 64
"""Sites whose rules are remembered."""


class Rulebook:
    """Knows what robots.txt forbids, and answers for it: with a Sitemap line, or for an app that has none."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._known: dict[str, tuple[Rules, float]] = {}

    def owns(self, site: Site, path: str) -> bool:
        """Whether this is the site's robots.txt. There is one a host (RFC 9309, section 2.3): none below a root."""
        return self._options.robots and path == PATH and not site.root

    def rules(self, site: Site, table: RouteTable, request: Request, now: float) -> Rules:
        """What a site's robots.txt forbids, no older than max_age. Where it cannot be had, what it forbade before."""
        if not self._options.robots or site.root:
            return Rules()
        rules, since = self._known.get(site.base, (Rules(), None))
        if since is not None and 0 <= now - since < self._options.max_age:
            return rules
        answer = _asked(request, table)
        if answer is not None and answer.status < 500:
            found = _text(answer)
            rules = rules if found == rules.text else Rules(found or "")
        while len(self._known) >= MOST:
            del self._known[next(iter(self._known))]
        self._known[site.base] = rules, now
        return rules

    def fresh_until(self, site: Site) -> float:
        """When, in POSIX seconds, what is known of a site's rules is to be asked for again."""
        if not self._options.robots or site.root:
            return math.inf
        return self._known[site.base][1] + self._options.max_age if site.base in self._known else -math.inf

    def known(self, site: Site) -> Rules:
        """What is known of a site's rules without asking."""
        return self._known.get(site.base, (Rules(), 0.0))[0]

    def respond(self, site: Site, table: RouteTable, request: Request) -> Response | None:
        """The response to a request for robots.txt; None where it is the app's to give."""
        loc = site.base + (quote_path(self._options.path) or "")
        answer = _asked(request, table)
        if answer is None:
            return None
        if answer.status == 404:
            return text(
                request.method, 200, minimal(loc), [("Cache-Control", f"public, max-age={self._options.max_age}")]
            )
        found = _text(answer)
        if found is None or (whole := with_sitemap(found, loc)) == found:
            return None
        return amended(request.method, answer, whole.encode())


def _asked(request: Request, table: RouteTable) -> Response | None:
    """The app's own answer; None where it fails."""
    if not table.may_answer(PATH):
        return Response(404, [])
    try:
        return request.ask(PATH)
    except Exception as error:
        log.debug("the app failed when it was asked for %s: %s", PATH, error)
        return None


def _text(answer: Response) -> str | None:
    """The text of an answer that is a robots.txt: 200 and plain text, not encoded; None for any other."""
    headers: Fields = list(answer.headers)
    fields = dict(headers)
    plain = fields.get("content-type", "").lower().startswith("text/plain")
    if answer.status != 200 or not plain or "content-encoding" in fields or len(answer.body) > MAX_BYTES:
        return None
    return answer.body.decode("utf-8", "replace")
