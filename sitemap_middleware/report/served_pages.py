"""Answers requests for the pages of the report: parses the query, and renders the page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import parse_qs, quote, urlencode

from ..documents.inspection import ServiceInspection
from ..documents.no_sitemap_reasons import UNKNOWN_TENANT_REASON
from ..exceptions import StoreError
from ..http.messages import Request, Response
from ..http.urls import is_loopback, normal_host, quote_path
from ..models import Headers
from .evaluation import EvaluationCache
from .pages import NAMES, ReportPage, common_context, given_arguments, pages_csv, report_page
from .template_rendering import STYLE, render

MAX_QUERY_CHARS: Final = 4000

_PLAIN: Final = ("Content-Type", "text/plain; charset=utf-8")

_SECURITY: Final[Headers] = (
    ("Cache-Control", "no-store"),
    ("X-Robots-Tag", "noindex, nofollow"),
    (
        "Content-Security-Policy",
        "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)


class ServerLinks:
    """Links within the report that a server answers: relative, so that they hold wherever the app is mounted."""

    is_dynamic = True
    """Whether a server answers, which can search, filter and sort."""

    def __init__(self, path: str, name: str) -> None:
        """A page of this name links to others; `path` is the path of the report."""
        self._overview = path.rpartition("/")[2]
        self._from_overview = name == "overview"

    def to(self, name: str, /, **query: Any) -> str:
        """The link to a page."""
        if name == "overview":
            return self._overview if self._from_overview else f"../{self._overview}"
        link = f"{self._overview}/{name}" if self._from_overview else name
        wanted = given_arguments(query)
        return f"{link}?{urlencode(wanted, quote_via=quote)}" if wanted else link


class ReportPages:
    """The report of all sites of one service."""

    def __init__(self, service: ServiceInspection, path: str) -> None:
        """`path` is the value of the option report."""
        self._service = service
        self._evaluations = EvaluationCache(service)
        self._path = path

    def respond(self, request: Request) -> Response:
        """The response to a request that may read the report. It may block."""
        rest = request.path[len(self._path) :]
        if rest == "/":
            return _respond(request, 308, b"", [_PLAIN, ("Location", f"../{self._path.rpartition('/')[2]}")])
        name = rest[1:] or "overview"
        if name == "style.css":
            return _respond(request, 200, STYLE, [("Content-Type", "text/css; charset=utf-8")])
        service, evaluation = self._service, None
        site = service.site_resolver.resolve_request(request, may_block=True)[0]
        if site is None and service.options.site_of_host:  # the default one may be another tenant's
            return _respond(request, 404, UNKNOWN_TENANT_REASON.encode(), [_PLAIN])
        site = site or service.site_resolver.default_site()
        if name not in NAMES:
            page = ReportPage("missing.html", {}, 404)
        else:
            problem = ""
            try:
                evaluation = self._evaluations.get(site, request)
            except StoreError as error:
                problem = str(error)
            if name == "pages.csv" and evaluation is not None:
                body = pages_csv(evaluation, _arguments(request)).encode(errors="replace")
                return _respond(request, 200, body, [("Content-Type", "text/csv; charset=utf-8")])
            page = report_page(name, _arguments(request), service, site, evaluation, problem=problem)
        context = common_context(service, site, evaluation, documents_url=_local_url(request))
        if evaluation is not None:
            context["age"] = max(0.0, service.clock() - evaluation.at)
        context |= {"name": name, "links": ServerLinks(self._path, name), **page.context}
        html = render(page.template, context).encode(errors="replace")
        return _respond(request, page.status, html, [("Content-Type", "text/html; charset=utf-8")])


def _local_url(request: Request) -> str:
    """Where a developer's machine serves the documents, whose public site may not exist yet; empty on other hosts."""
    host = normal_host(request.host, request.scheme)
    if host is None or not is_loopback(host) or request.is_forwarded:
        return ""
    return f"{request.scheme}://{host}{quote_path(request.root.rstrip('/')) or ''}"


def _arguments(request: Request) -> dict[str, str]:
    """The arguments of a request's query, the first of each name."""
    try:
        found = parse_qs(request.query[:MAX_QUERY_CHARS], max_num_fields=20, errors="replace")
    except ValueError:
        return {}
    return {name: values[0] for name, values in found.items()}


def _respond(request: Request, status: int, body: bytes, fields: Iterable[tuple[str, str]]) -> Response:
    headers = [*fields, ("Content-Length", str(len(body))), *_SECURITY]
    return Response(status, headers, b"" if request.method == "HEAD" else body)
