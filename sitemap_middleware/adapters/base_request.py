"""The base class of the requests of both adapters: the attributes that they share."""

from __future__ import annotations

from ..models import RoutingHeaders
from ..observation.observer import Observer
from ..observation.tracked_page import TrackedPage
from ..request_response import KEY_METHOD, KEY_SCHEME, RequestKey


class BaseRequest:
    """The attributes of a `Request` that both protocols have, and the observer of its response."""

    __slots__ = ("key", "observer", "routing_headers", "tracked_page")

    key: RequestKey
    """Path, Host, scheme, root, method and query, each as the protocol gives it."""
    routing_headers: RoutingHeaders
    """The headers that an app may believe to state the requested URL. `ignore_reason` finds them."""
    tracked_page: TrackedPage
    """The page that the request is for. It is set if the response is observed."""
    observer: Observer | None
    """The observer of the response; None before the response starts, and if nothing of it was recorded."""

    @property
    def method(self) -> str:
        method: str = self.key[KEY_METHOD]
        return method

    @property
    def scheme(self) -> str:
        scheme: str = self.key[KEY_SCHEME]
        return scheme

    def retract(self) -> None:
        """Discard what was recorded of a response that fails before its end."""
        if self.observer is not None:
            self.observer.retract()
