"""The pages of the report, the same for a server and as files: their contexts, answers to requests, and the files."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, quote, unquote, urlencode

from ..documents.no_sitemap_reasons import UNKNOWN_TENANT_REASON
from ..evidence.dates import SECONDS_PER_DAY, timestamp_of_w3c, w3c_day_from_timestamp
from ..evidence.page_verdict import UNLINKED, observed_facts, page_events
from ..exceptions import StoreError
from ..http.messages import AsyncCollector, Request, Response
from ..http.urls import quote_path
from ..listing.evaluated_urls import EvaluatedUrl, pages_as_csv
from ..models import Headers, Site
from ..service import SitemapService
from ..stores.stored_sites import store_status
from .evaluation import SORTS, Evaluation, EvaluationCache, PageQuery, evaluate
from .figures import FIGURES
from .findings import RULES, SHOWN
from .template_rendering import STYLE, render, time

NAMES: Final = ("overview", "pages", "routes", "changes", "documents", "health", "page", "pages.csv")

ROWS: Final = 100

WEEKS: Final = 26
"""Weeks whose changes the report shows, the present one included."""

CHANGE_KINDS: Final = {"new": "first seen", "changed": "changed", "dropped": "dropped"}
"""What may have happened to a page, and the words for it: a page that was first seen may have been there for long."""

DEFAULT_DAYS: Final = 7
"""Days whose changes are shown if no date is given."""

_MAX_DIGITS: Final = 7

MAX_QUERY_CHARS: Final = 4000

MAX_PAGE_FILES: Final = 10_000
"""Pages of the site that get a file of their own, with their history: the first ones that the report links to."""

_MARK: Final = b'<meta name="generator" content="sitemap-middleware report">'
"""Is in every file of a report, so that those of an earlier one are recognised."""

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

Context = dict[str, Any]


class ReportPage(NamedTuple):
    """A page of the report, to be rendered."""

    template: str
    context: Context
    status: int = 200


def report_page(
    name: str,
    arguments: Mapping[str, str],
    service: SitemapService,
    site: Site,
    evaluation: Evaluation | None,
    *,
    problem: str = "",
    is_live: bool = True,
) -> ReportPage:
    """The page of one of the `NAMES`. Arguments that cannot be read are left out.

    There is no evaluation while the pages are being evaluated, or if there is a problem. `is_live`: whether this
    process serves the app.
    """
    if name == "documents":
        return ReportPage("documents.html", {})
    if name == "health":
        return ReportPage("health.html", _health(service, site, is_live=is_live))
    if problem:
        return ReportPage("failure.html", {"problem": problem}, 503)
    if evaluation is None:
        return ReportPage("computing.html", {})
    if name == "page":
        return _page(evaluation, arguments.get("path", ""), service)
    make = {"overview": _overview, "changes": _changes, "routes": _routes, "pages": _pages}[name]
    return ReportPage(f"{name}.html", make(evaluation, arguments))


def common_context(service: SitemapService, site: Site, evaluation: Evaluation | None) -> Context:
    """What all pages show."""
    return {
        "site": site.base_url,
        "sitemap_path": service.options.path,
        "documents": service.published_documents(site),
        "evaluation": evaluation,
        "unlinked": UNLINKED,
    }


def given_arguments(query: Mapping[str, Any]) -> dict[str, str]:
    """The arguments of a link that are not the defaults."""
    return {key: str(value) for key, value in query.items() if value not in (None, "", 1)}


def _health(service: SitemapService, site: Site, *, is_live: bool) -> Context:
    """The state of the store and of this process. Of the figures of `stats`, those that are not 0 are shown."""
    status, problem = None, None
    try:
        status = store_status(service.store, [site.store_key], is_live=is_live)
    except StoreError as error:
        problem = str(error)
    stats = service.stats() if is_live else {}
    return {
        "status": status,
        "problem": problem,
        "figures": [(figure, stats[figure.stat]) for figure in FIGURES if stats.get(figure.stat)],
        "process": os.getpid() if is_live else None,
        "settings": [setting for setting in service.options.settings.values() if setting.source != "default"],
        "not_served": service.not_served_reason(),
    }


def _overview(evaluation: Evaluation, _arguments: Mapping[str, str]) -> Context:
    today = evaluation.now // SECONDS_PER_DAY
    first_monday = _monday(today) - 7 * (WEEKS - 1)
    weeks = [
        (w3c_day_from_timestamp((first_monday + 7 * number) * SECONDS_PER_DAY), dict.fromkeys(CHANGE_KINDS, 0))
        for number in range(WEEKS)
    ]
    for (kind, day), count in evaluation.index.changes_by_day(first_monday * SECONDS_PER_DAY).items():
        if day <= today:  # a page may state a date in the future
            weeks[(day - first_monday) // 7][1][kind] += count
    return {
        "index": evaluation.index,
        "findings": evaluation.findings,
        "weeks": weeks,
        "kinds": CHANGE_KINDS,
        "recent": _change_counts(evaluation, today - DEFAULT_DAYS),
        "days": DEFAULT_DAYS,
    }


def _paged(arguments: Mapping[str, str], rows_of: Callable[[int, int], tuple[int, Sequence[Any]]]) -> Context:
    """One part of a table. `rows_of` takes an offset and a limit, and returns the count of all rows and those rows."""
    text = arguments.get("page", "")
    number = max(1, int(text)) if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS else 1
    total, rows = rows_of(ROWS * (number - 1), ROWS)
    return {"rows": rows, "total": total, "number": number, "has_more": ROWS * number < total}


def _pages(evaluation: Evaluation, arguments: Mapping[str, str]) -> Context:
    """A table of pages."""
    query, index = _page_query(arguments), evaluation.index
    return _paged(arguments, partial(index.query, query)) | {
        "query": query,
        "arguments": {name: value for name, value in query._asdict().items() if value != getattr(PageQuery(), name)},
        "sorts": tuple(SORTS),
        "index": index,
        "rule": None if query.group else next((rule for rule in RULES if rule.id == query.show), None),
    }


def _page_query(arguments: Mapping[str, str]) -> PageQuery:
    sort, show, text = arguments.get("sort", ""), arguments.get("show", ""), arguments.get("q", "").strip()
    return PageQuery(
        sort=sort if sort in SORTS else "path",
        show=show if show in SHOWN else "all",
        group=arguments.get("group", ""),
        route=arguments.get("route", ""),
        q=(quote_path(f"/{text}") or f"/{text}")[1:],
    )


def _routes(evaluation: Evaluation, arguments: Mapping[str, str]) -> Context:
    routes = evaluation.routes
    return _paged(arguments, lambda offset, limit: (len(routes), routes[offset : offset + limit]))


def _changes(evaluation: Evaluation, arguments: Mapping[str, str]) -> Context:
    """The changes since a day, or of the last days if the request does not give one up to today."""
    asked, today = arguments.get("since", ""), evaluation.now // SECONDS_PER_DAY
    try:
        day: int | None = timestamp_of_w3c(asked[:10]) // SECONDS_PER_DAY
    except ValueError:
        day = None
    if day is not None and not 0 <= day <= today:
        day = None
    since_day = today - DEFAULT_DAYS if day is None else day
    since = since_day * SECONDS_PER_DAY
    since_date = w3c_day_from_timestamp(since)
    table = _paged(arguments, partial(evaluation.index.query, PageQuery(since=since)))
    return table | {
        "since": since_date,
        "refused": asked if day is None else "",
        "today": w3c_day_from_timestamp(evaluation.now),
        "counts": _change_counts(evaluation, since_day),
        "kinds": CHANGE_KINDS,
        "rows": [(row, change) for row in table["rows"] if (change := row.change(since)) is not None],
        "arguments": {"since": None if day is None else since_date},
    }


def _change_counts(evaluation: Evaluation, since_day: int) -> dict[str, int]:
    counts = dict.fromkeys(CHANGE_KINDS, 0)
    for (kind, _), count in evaluation.index.changes_by_day(since_day * SECONDS_PER_DAY).items():
        counts[kind] += count
    return counts


def _monday(day: int) -> int:
    """The Monday of the week of a day, both in days since 1970."""
    return day - (day + 3) % 7  # 1970-01-01 was a Thursday


def _page(evaluation: Evaluation, asked: str, service: SitemapService) -> ReportPage:
    """One page, by its path or its URL: its verdict, the evidence, and its history."""
    site = evaluation.snapshot.site
    path = asked.strip().removeprefix(site.base_url).partition("#")[0].partition("?")[0]
    path = path if path.startswith("/") or "://" in path else f"/{path}"
    quoted = quote_path(path) or path
    for spelling in (path, quoted, quoted.removeprefix(site.root)):
        _, rows = evaluation.index.query(PageQuery(path=spelling), 0, 1)
        if rows:
            row, status = rows[0], 200
            stored = evaluation.snapshot.find_pages([row.path]).get(row.path)
            break
    else:
        explanation = service.explain(unquote(path), service.snapshot(site))
        entry, stored, status = explanation.entry, explanation.page, 404
        row = EvaluatedUrl._make([None] * len(EvaluatedUrl._fields))._replace(
            path=path,
            url=explanation.loc or "",
            listed=explanation.listed,
            reason=explanation.reason,
            lastmod=entry.lastmod if entry else None,
            lastmod_note=explanation.lastmod_source,
            route=explanation.route.path if explanation.route else "",
        )
    context: Context = {"row": row, "facts": [], "events": []}
    if stored is not None:
        events = page_events(stored, row.dropped, time)
        context["facts"] = list(observed_facts(stored, time))
        context["events"] = [(time(event.at), event.text) for event in events]
    return ReportPage("page.html", context, status)


# Requests for pages


class ServerLinks:
    """Links within the report that a server answers: relative, so that they hold wherever the app is mounted."""

    is_dynamic = True
    """Whether a server answers, which can search, filter and sort."""

    def __init__(self, path: str, name: str) -> None:
        """A page of this name links to others; `path` is the path of the report."""
        self._overview = path.rpartition("/")[2]
        self._from_overview = name == "overview"
        self._root = "../" * (path.count("/") - self._from_overview)

    def to(self, name: str, /, **query: Any) -> str:
        """The link to a page."""
        if name == "overview":
            return self._overview if self._from_overview else f"../{self._overview}"
        link = f"{self._overview}/{name}" if self._from_overview else name
        wanted = given_arguments(query)
        return f"{link}?{urlencode(wanted, quote_via=quote)}" if wanted else link

    def document(self, path: str) -> str:
        """The link to a document, by its path: of this server, because the public site may not exist yet."""
        return f"{self._root}{(quote_path(path) or path)[1:]}"


def respond(request: Request, service: SitemapService, evaluations: EvaluationCache, path: str) -> Response:
    """The response to a request that may read the report, which is at a path. It may block."""
    rest = request.path[len(path) :]
    if rest == "/":
        return _respond(request, 308, b"", [_PLAIN, ("Location", f"../{path.rpartition('/')[2]}")])
    name = rest[1:] or "overview"
    if name == "style.css":
        return _respond(request, 200, STYLE, [("Content-Type", "text/css; charset=utf-8")])
    site = service.site_resolver.resolve_request(request, may_block=True)[0]
    if site is None and service.options.site_of_host:  # the default one may be another tenant's
        return _respond(request, 404, UNKNOWN_TENANT_REASON.encode(), [_PLAIN])
    site, evaluation = site or service.site_resolver.default_site(), None
    if name not in NAMES:
        page = ReportPage("missing.html", {}, 404)
    else:
        problem = ""
        try:
            evaluation = evaluations.get(site, request)
        except StoreError as error:
            problem = str(error)
        if name == "pages.csv" and evaluation is not None:  # as the command `list` prints it
            rows = evaluation.index.query(_page_query(_arguments(request)), 0, -1)[1]
            body = pages_as_csv(rows).encode(errors="replace")
            return _respond(request, 200, body, [("Content-Type", "text/csv; charset=utf-8")])
        page = report_page(name, _arguments(request), service, site, evaluation, problem=problem)
    context = common_context(service, site, evaluation) | {"name": name, "links": ServerLinks(path, name)}
    html = render(page.template, context | page.context).encode(errors="replace")
    return _respond(request, page.status, html, [("Content-Type", "text/html; charset=utf-8")])


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


# Files


def export_report(
    service: SitemapService,
    site: Site,
    folder: Path,
    on_progress: Callable[[int, int | None], None],
    async_collector: AsyncCollector | None,
) -> int:
    """Evaluate the pages of a site, write the report of them into a folder, and return the number of files.

    Files that are there already are replaced, and those of an earlier report that this one does not have are removed.
    Raises `OSError` if a file cannot be written, `StoreError` if the store fails.
    """
    evaluation = evaluate(service, replace(service.snapshot(site), async_collector=async_collector))
    links = _FileLinks(site)
    context = common_context(service, site, evaluation)
    folder.mkdir(parents=True, exist_ok=True)
    written = {folder / "style.css"}
    (folder / "style.css").write_bytes(STYLE)
    for file, name, arguments in links.files:
        page = report_page(name, arguments, service, site, evaluation, is_live=False)
        html = render(page.template, {**context, **page.context, "name": name, "links": links})
        (folder / file).write_text(html, "utf-8", errors="replace")
        written.add(folder / file)
        on_progress(len(written), None)
    for earlier in {*folder.glob("*.html")} - written:
        if _MARK in earlier.read_bytes():
            earlier.unlink()
    return len(written)


class _FileLinks:
    """Links from one file to others. The pages that they lead to are written, too."""

    is_dynamic = False

    def __init__(self, site: Site) -> None:
        self._site = site
        self.files: list[tuple[str, str, dict[str, str]]] = []
        """What was linked so far: each file, with the name and the arguments of its page. It grows while it is read."""
        self._known: dict[tuple[Any, ...], str] = {}
        self._numbers: Counter[str] = Counter()
        self.to("overview")

    def to(self, name: str, /, **query: Any) -> str | None:
        """The link to a page; None if the files leave it out, as those of a large site leave out most pages."""
        if name == "style.css":
            return name
        arguments = given_arguments(query)
        key = name, *sorted(arguments.items())
        if key not in self._known:
            if name == "page" and self._numbers[name] == MAX_PAGE_FILES:
                return None
            self._numbers[name] += 1
            start, end = "index" if name == "overview" else name, f"-{self._numbers[name]}" if arguments else ""
            self._known[key] = f"{start}{end}.html"
            self.files.append((self._known[key], name, arguments))
        return self._known[key]

    def document(self, path: str) -> str:
        """The link to a document, by its path: where the site serves it."""
        return f"{self._site.base_url}{quote_path(path) or path}"
