"""The options of `SitemapMiddleware` as a TypedDict. A plugin that passes options on annotates them with it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter
    from prometheus_client import CollectorRegistry

    from ..models import Changefreq
    from ..report.request_handler import ReportRequest
    from ..stores import Store
    from .decorator import Values


class SitemapOptions(TypedDict, total=False):
    """The options of `SitemapMiddleware` but `routes`, which are the app's."""

    base_url: str | None
    allowed_hosts: str | Iterable[str]
    path: str
    store: str | Store | None
    include: str | Iterable[str]
    exclude: str | Iterable[str]
    learn: str | Iterable[str]
    list_unseen: bool
    verify: bool
    priority: float | Literal["auto"] | None
    changefreq: Changefreq | Literal["auto"] | None
    robots: bool | Literal["disallow"]
    max_age: int
    max_age_days: int
    max_pages: int
    max_pages_per_route: int
    media_types: str | Iterable[str] | None
    clock: Callable[[], float] | None
    metrics: Literal["prometheus", "opentelemetry"] | CollectorRegistry | Meter | None
    enabled: bool
    sections: Mapping[str, Values] | None
    report: str | None
    authorize: Callable[[ReportRequest], bool | Awaitable[bool]] | None
