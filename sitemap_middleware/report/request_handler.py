"""Handles requests for the report: refuses those that may not read it; `pages` answers the others."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final

from werkzeug.datastructures import Headers

from ..http.messages import Request, Response, error_response
from ..http.urls import bare_host, normal_host
from ..routing.framework_detection import framework_app, is_debug
from ..util import WarnOnce, log
from .evaluation import EvaluationCache

if TYPE_CHECKING:
    from ..service import SitemapService

EXTRA_MISSING: Final = 'the report needs the extra "report": pip install "sitemap-middleware[report]"'

_VERSIONS_OF_PROXIES: Final = ("0.9", "1.0")

_FLASK_HINT: Final = (
    "; Flask's request, session and current_user are there within `with app.request_context(dict(request.environ)):`"
)


Permission = bool | tuple[int, Sequence[tuple[str, str]]]
"""What `authorize` says: yes, no, or the status and headers of another answer."""


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """A request for the report, as the option `authorize` is given it."""

    path: str
    """Decoded, below the root path of the app."""
    headers: Headers
    """Their names match in any case; repeated ones are joined, as HTTP says."""
    environ: Mapping[str, Any] | None = None
    """The environ of a WSGI app; None in an ASGI app."""
    scope: Mapping[str, Any] | None = None
    """The scope of an ASGI app; None in a WSGI app."""


class ReportHandler:
    """The report of one service. Without the option `report`, it handles no request."""

    def __init__(self, service: SitemapService) -> None:
        self._service = service
        self._path = service.options.report
        self._authorize = service.options.authorize
        self._evaluations = EvaluationCache(service)
        self._warn_once = WarnOnce()
        if self._authorize is not None and self._path is None:
            log.warning("authorize has no effect without the option report: give report a path")

    def answer(self, request: Request, environ: Mapping[str, Any]) -> Response | None:
        """The response in a WSGI app; None if the app must answer the request."""
        if not self._may_answer(request):
            return None
        allowed = self._allows(request, ReportRequest(request.path, _joined(request.headers), environ=environ))
        if inspect.isawaitable(allowed):
            if inspect.iscoroutine(allowed):
                allowed.close()
            error = TypeError("it returned an awaitable, which a WSGI app cannot await; give a plain function")
            allowed = self._refuse_by_error(error)
        response: Response | None = Context().run(self._decide, request, allowed)
        return response

    async def answer_async(
        self, request: Request, scope: Mapping[str, Any], run_in_thread: Callable[..., Awaitable[Any]]
    ) -> Response | None:
        """The response in an ASGI app; None if the app must answer the request."""
        if not self._may_answer(request):
            return None
        asked = ReportRequest(request.path, _joined(request.headers), scope=scope)
        if inspect.iscoroutinefunction(self._authorize):
            allowed = self._allows(request, asked)
        else:  # it may block
            allowed = await run_in_thread(self._allows, request, asked)
        if inspect.isawaitable(allowed):
            try:
                allowed = await allowed
            except Exception as error:
                allowed = self._refuse_by_error(error)
        response: Response | None = await run_in_thread(Context().run, self._decide, request, allowed)
        return response

    def _may_answer(self, request: Request) -> bool:
        """Whether the request may be answered with the report, if it is allowed to read it."""
        if request.method not in ("GET", "HEAD") or not self._service.options.is_report(request.path):
            return False
        return not self._service.app_routes.keeps(request.path, "the option report")

    def _allows(self, request: Request, asked: ReportRequest) -> Any:
        """Whether a request may read the report; or an awaitable of that."""
        if self._authorize is not None:
            try:
                return self._authorize(asked)
            except Exception as error:
                is_flask = asked.environ is not None and hasattr(self._framework_app(), "request_context")
                return self._refuse_by_error(error, _FLASK_HINT if is_flask else "")
        if not _is_this_machine(request, asked):
            return False
        if is_debug(self._framework_app()):
            return True
        self._warn_once(
            "debug", "the report is not shown: the app is not in debug mode, and the option authorize is not set"
        )
        return False

    def _framework_app(self) -> Any:
        return framework_app(self._service.app_routes.app)

    def _refuse_by_error(self, error: Exception, hint: str = "") -> bool:
        self._warn_once("authorize", "authorize failed, so the report is not shown: %r%s", error, hint)
        return False

    def _decide(self, request: Request, allowed: Any) -> Response | None:
        """The report, the answer that `authorize` gives in its place, or None if it says no. It may block."""
        if not isinstance(allowed, tuple):
            return self._respond(request) if allowed else None
        with suppress(TypeError, ValueError):
            status, headers = allowed
            reason, fields = HTTPStatus(status).phrase, [(str(name), str(value)) for name, value in headers]
            if status >= 300:
                return error_response(request.method, status, reason, fields)
        self._refuse_by_error(ValueError(f"it returned {allowed!r}, which is no status from 300 on with headers"))
        return None

    def _respond(self, request: Request) -> Response:
        """The page that is requested. It may block."""
        try:
            from .pages import respond

            return respond(request, self._service, self._evaluations, self._path or "")
        except ModuleNotFoundError as error:
            return error_response(request.method, 501, f"{EXTRA_MISSING} ({error})")
        except Exception:
            log.exception("the report could not be made")
            return error_response(request.method, 500, "The report could not be made: internal error, see the log.")


def _joined(fields: Iterable[tuple[str, str]]) -> Headers:
    joined = Headers()
    for name, value in fields:
        separator = "; " if name == "cookie" else ", "  # over HTTP/2, browsers send each cookie by itself
        joined[name] = f"{joined[name]}{separator}{value}" if name in joined else value
    return joined


def _is_this_machine(request: Request, asked: ReportRequest) -> bool:
    """Whether the server and the client of a request are this machine, as far as addresses, Host and headers tell.

    HTTP/1.0 counts as a proxy's: browsers do not send it, but nginx does, which need not add any other sign.
    """
    if asked.environ is not None:
        server, client = asked.environ.get("SERVER_NAME"), asked.environ.get("REMOTE_ADDR")
        version = str(asked.environ.get("SERVER_PROTOCOL")).removeprefix("HTTP/")
    else:
        scope = asked.scope or {}
        server, client = ((scope.get(name) or (None,))[0] for name in ("server", "client"))
        version = str(scope.get("http_version"))
    host = bare_host(normal_host(request.host, request.scheme) or "").strip("[]")
    is_direct = version not in _VERSIONS_OF_PROXIES and not request.is_forwarded
    return is_direct and all(map(_is_loopback, (server, client, host)))


def _is_loopback(host: Any) -> bool:
    if host == "localhost":
        return True
    try:
        return isinstance(host, str) and ip_address(host).is_loopback
    except ValueError:
        return False
