"""Answers requests for the pages of the report: parses the query, and renders the page."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any, Final
from urllib.parse import parse_qs, unquote

from ..exceptions import StoreError
from ..models import Headers, Site
from ..request_response import KEY_QUERY, Request, Response
from ..urls import is_loopback, normal_host, quote_path
from . import template_contexts
from .background_evaluation import Evaluation, EvaluationCache
from .evaluated_urls_database import SORTS, PageQuery
from .health import health
from .report_page_links import NAMES, ServerLinks
from .service_inputs import ServiceInputs
from .template_rendering import STYLE, render, render_parts

STREAMED_PAGES: Final = 20_000
"""A search among more pages than this is sent in parts, because it may take a while."""

MAX_QUERY_CHARS: Final = 4000

_SHOWS: Final = ("all", "listed", "left-out")

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
"""The headers of every response of the report."""


class ReportPages:
    """The report of all sites of one service."""

    def __init__(self, sources: ServiceInputs) -> None:
        self._sources = sources
        self._evaluations = EvaluationCache(sources)
        path = sources.service.options.report
        assert path is not None  # there is no report without it
        self._path: str = path

    def respond(self, request: Request) -> Response:
        """The response to a request that may read the report."""
        rest = request.path[len(self._path) :]
        if rest == "/":
            return _respond(request, 308, b"", [_PLAIN, ("Location", f"../{self._path.rpartition('/')[2]}")])
        name = rest[1:] or "overview"
        if name == "style.css":
            return _respond(request, 200, STYLE, [("Content-Type", "text/css; charset=utf-8")])
        site = self._sources.site_resolver.resolve_request(request)[0] or self._sources.site_resolver.default_site()
        links = ServerLinks(self._path, name)
        documents_url = _local_url(request) or site.base_url
        context = {
            "name": name,
            "links": links,
            "site": site.base_url,
            "documents_url": documents_url,
            "sitemap_url": documents_url + (quote_path(self._sources.service.options.path) or ""),
            "evaluation": None,
            "age": None,
        }
        if name not in NAMES:
            return _page(request, "missing.html", context, 404)
        try:
            return self._respond(request, site, name, links, context)
        except StoreError as error:
            return _page(request, "failure.html", {**context, "problem": str(error)}, 503)

    def _respond(
        self, request: Request, site: Site, name: str, links: ServerLinks, context: dict[str, Any]
    ) -> Response:
        evaluation = self._evaluations.get(site, request)
        context["documents"] = self._sources.service.published_documents(site)
        if evaluation is not None:
            age = max(0.0, self._sources.service.clock() - evaluation.at)
            context |= {"evaluation": evaluation, "age": age}
        if name == "documents":
            return _page(request, "documents.html", context)
        if name == "health":
            context |= health(self._sources.service, site)
            is_slow = evaluation is None or evaluation.index.pages > STREAMED_PAGES
            return _page(request, "health.html", context, is_slow=is_slow)
        if evaluation is None:
            context["pages_read"] = self._evaluations.pages_read(site)
            return _page(request, "computing.html", context)
        arguments = _arguments(request)
        if name == "overview":
            return _page(request, "overview.html", context | template_contexts.overview(evaluation))
        if name == "page":
            return self._respond_page(request, site, evaluation, arguments.get("path", ""), context)
        if name == "changes":
            asked = arguments.get("since", "")
            day = template_contexts.parse_day(asked, evaluation.now)
            since = template_contexts.default_since(evaluation) if day is None else day
            refused = asked if day is None else ""
            context |= template_contexts.changes(evaluation, since, _after(arguments), links, refused)
            return _page(request, "changes.html", context)
        query = _page_query(arguments, is_sitemap=name == "sitemap")
        context |= template_contexts.pages(evaluation, query, links, name)
        return _page(request, "pages.html", context, is_slow=evaluation.index.pages > STREAMED_PAGES)

    def _respond_page(
        self, request: Request, site: Site, evaluation: Evaluation, path: str, context: dict[str, Any]
    ) -> Response:
        row = evaluation.index.find(path)
        if row is None:
            explanation = self._sources.service.explain_now(site, unquote(path))
            return _page(request, "unknown_page.html", {**context, "path": path, "explanation": explanation}, 404)
        stored = evaluation.snapshot.find_pages([path]).get(path)
        return _page(request, "page.html", context | template_contexts.page(row, stored))


def _local_url(request: Request) -> str | None:
    """Where a developer's machine serves the documents, whose public site may not exist yet; None on other hosts."""
    host = normal_host(request.host, request.scheme)
    if host is None or not is_loopback(host) or request.is_forwarded:
        return None
    return f"{request.scheme}://{host}{quote_path(request.root.rstrip('/')) or ''}"


def _arguments(request: Request) -> dict[str, str]:
    """The arguments of a request's query, the first of each name."""
    query = request.key[KEY_QUERY] or ""
    text = query.decode("latin-1") if isinstance(query, bytes) else str(query)
    try:
        found = parse_qs(text[:MAX_QUERY_CHARS], max_num_fields=20, errors="replace")
    except ValueError:
        return {}
    return {name: values[0] for name, values in found.items()}


def _page_query(arguments: dict[str, str], *, is_sitemap: bool) -> PageQuery:
    """What a request for a table of pages asks for. Anything that cannot be read is left out."""
    sort, show, group = arguments.get("sort", ""), arguments.get("show", ""), arguments.get("group", "")
    text = arguments.get("q", "").strip()
    return PageQuery(
        sort=sort if sort in SORTS else "path",
        show="listed" if is_sitemap else show if show in _SHOWS else "all",  # type: ignore[arg-type] # one of `_SHOWS`
        group=int(group) if group.isascii() and group.isdigit() and len(group) < 10 and not is_sitemap else None,
        text=(quote_path(f"/{text}") or f"/{text}")[1:],
        after=_after(arguments),
    )


def _after(arguments: dict[str, str]) -> tuple[int, str] | None:
    path, at = arguments.get("after"), arguments.get("at", "0")
    if path is None or not at.isascii() or not at.isdigit() or len(at) > 18:
        return None
    return int(at), path


def _page(
    request: Request, template: str, context: dict[str, Any], status: int = 200, *, is_slow: bool = False
) -> Response:
    content_type = ("Content-Type", "text/html; charset=utf-8")
    if is_slow and request.method == "GET":
        return Response(status, [content_type, *_SECURITY], parts=_parts(template, context), is_slow=True)
    return _respond(request, status, render(template, context).encode(), [content_type])


def _parts(template: str, context: dict[str, Any]) -> Generator[bytes]:
    yield from render_parts(template, context)


def _respond(request: Request, status: int, body: bytes, fields: Iterable[tuple[str, str]]) -> Response:
    headers = [*fields, ("Content-Length", str(len(body))), *_SECURITY]
    return Response(status, headers, b"" if request.method == "HEAD" else body)
