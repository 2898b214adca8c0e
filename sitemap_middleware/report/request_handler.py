"""Handles requests for the report: refuses those that may not read it; `served_pages` answers the others."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import TYPE_CHECKING, Any, Final

from ..http.messages import Request, Response
from ..http.urls import normal_host
from ..routing.framework_detection import framework_app, is_debug
from ..util import WarnOnce

if TYPE_CHECKING:
    from ..inspection import ServiceInspection
    from .authorization_inputs import ReportRequest
    from .served_pages import ReportPages

log: logging.Logger = logging.getLogger("sitemap_middleware")

EXTRA_MISSING: Final = 'the report needs the extra "report": pip install "sitemap-middleware[report]"'


class ReportHandler:
    """The report of one service. Without the option `report`, `marker` is None and no method is called."""

    def __init__(self, service: ServiceInspection) -> None:
        self._service = service
        self._app_routes = service.app_routes
        options = service.options
        self._path = options.report
        self._authorize = options.authorize
        self._pages: ReportPages | None = None
        self._warn_once = WarnOnce()
        self.marker: str | None = options.report
        """What the path of every request for the report contains; None if there is no report."""
        if self._authorize is not None and self._path is None:
            log.warning("authorize has no effect without the option report: give report a path")

    def handles(self, request: Request) -> bool:
        """Whether a request is for the path of the report, or one below it."""
        path = self._path
        if path is None or path not in request.path:
            return False
        return request.path == path or request.path.startswith(f"{path}/")

    def answer(self, request: Request, asked: ReportRequest) -> Response | None:
        """The response in a WSGI app; None if the app must answer the request."""
        if not self._handles(request):
            return None
        allowed = self._allows(request, asked)
        if not isinstance(allowed, bool):
            if inspect.iscoroutine(allowed):
                allowed.close()
            self._warn_once(
                "awaitable", "authorize returned an awaitable, which a WSGI app cannot await; give a plain function"
            )
            return None
        return Context().run(self._respond, request) if allowed else None

    async def answer_async(
        self, request: Request, asked: ReportRequest, run_in_thread: Callable[..., Awaitable[Any]]
    ) -> Response | None:
        """The response in an ASGI app; None if the app must answer the request."""
        if not self._handles(request):
            return None
        if inspect.iscoroutinefunction(self._authorize):
            allowed = self._allows(request, asked)
        else:  # it may block
            allowed = await run_in_thread(self._allows, request, asked)
        if not isinstance(allowed, bool):
            try:
                allowed = bool(await allowed)
            except Exception as error:
                allowed = self._refuse_by_error(error)
        return await run_in_thread(Context().run, self._respond, request) if allowed else None

    def _handles(self, request: Request) -> bool:
        """Whether the request may be answered with the report, if it is allowed to read it."""
        if request.method not in ("GET", "HEAD") or not self.handles(request):
            return False
        return not self._app_routes.keeps(request.path, "the option report")

    def _allows(self, request: Request, asked: ReportRequest) -> Any:
        """Whether a request may read the report, as a bool; or an awaitable of that."""
        from .authorization_inputs import is_local_host, is_this_machine

        if self._authorize is None:
            if (
                not is_this_machine(asked)
                or not is_local_host(normal_host(request.host, request.scheme) or "")
                or request.is_forwarded
            ):
                return False
            if is_debug(framework_app(self._app_routes.app)):
                return True
            self._warn_once(
                "debug", "the report is not shown: the app is not in debug mode, and the option authorize is not set"
            )
            return False
        try:
            answer = self._authorize(asked)
        except Exception as error:
            return self._refuse_by_error(error)
        return answer if inspect.isawaitable(answer) else bool(answer)

    def _respond(self, request: Request) -> Response:
        """The page that is requested. It may block."""
        from ..documents.responses import error_response

        try:
            if self._pages is None:
                from .served_pages import ReportPages

                self._pages = ReportPages(self._service, self._path or "")
            return self._pages.respond(request)
        except ModuleNotFoundError as error:
            return error_response(request.method, 501, f"{EXTRA_MISSING} ({error})")
        except Exception:
            log.exception("the report could not be made")
            return error_response(request.method, 500, "The report could not be made: internal error, see the log.")

    def _refuse_by_error(self, error: Exception) -> bool:
        self._warn_once("authorize", "authorize failed, so the report is not shown: %r", error)
        return False
