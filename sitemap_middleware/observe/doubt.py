"""Decides what the answers to requests prove that named another Host, or stated another URL by a header.

An app may believe a header such as X-Forwarded-Prefix or X-Original-URL, or decide by the Host. So a stranger who sends
one of them can be answered 404 for a page that exists, or with another page. Proxies send them with every request, so
they cannot be ignored. Therefore such an answer removes no page unless another one confirms it, or the middleware's own
request for the page, if that may be made. What it says of another page than the requested one does not count.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote, urlsplit

from ..evidence.delisting_confirmation import may_be_listed
from ..evidence.observations import Observation
from ..evidence.page_verdict import is_listable
from ..http.captured_response import CapturedResponse
from ..models import Page

_URL_NAME: Final = re.compile(r"(?:ur[il]|path|info)$")
"""Headers that state the requested path."""

_SITE_NAME: Final = re.compile(r"prefix$|script|root|base|mount|tenant|workspace|site|shop|store|brand|org")
"""Headers that state where the app is mounted, or for which of its sites it answers."""


def is_doubtful(response: CapturedResponse) -> bool:
    """Whether a request named another Host, or stated by a header where it came from."""
    return not response.is_probe and (bool(response.routing_headers) or response.has_other_host)


def doubtful_evidence(
    response: CapturedResponse, observation: Observation, page: Page | None, *, may_ask: bool
) -> Observation | None:
    """What the answer to a doubtful request proves of a page; None if nothing.

    Args:
        response: the answer.
        observation: what it says.
        page: what is known about its page.
        may_ask: whether the middleware may ask the page itself.
    """
    is_of_other_page = _states_other_path(response) or (
        may_ask and any(_SITE_NAME.search(str(name)) for name, _ in response.routing_headers)
    )
    if page is None or page.media_type not in observation.listed_types or not is_listable(page):
        return observation if observation.status == 200 and not is_of_other_page else None
    if may_be_listed(observation):
        html = observation.html
        if html is not None and is_of_other_page and not any(run.value == html.digest for run in page.content_history):
            html = html._replace(digest=None, stated_date=None)
        return observation._replace(html=html, is_unusual=True)
    if observation.learned and observation.status == 200 and not is_of_other_page:
        return observation  # it may have become private
    # What its HTML refuses waits for confirmation as what its headers refuse does.
    refusal = observation.refusal or (observation.html.refusal if observation.html is not None else "")
    return observation._replace(html=None, refusal=refusal, is_unusual=True)


def _states_other_path(response: CapturedResponse) -> bool:
    """Whether a header states another path than the requested one. A proxy may add a prefix to it."""
    for name, value in response.routing_headers:
        if _URL_NAME.search(str(name)):
            try:
                stated = urlsplit(str(value)).path if "://" in str(value) else re.split("[?#]", str(value))[0]
            except ValueError:
                return True
            if not unquote(stated).endswith(response.path):
                return True
    return False
