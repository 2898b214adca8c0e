"""Metrics: what `stats` tells, for Prometheus and OpenTelemetry, under names of either's convention.

A middleware is asked when a collector asks; the request path knows nothing of
it. All middlewares that one registry or meter collects share its metrics, and
are told apart by the attribute `sitemap`. Neither library is imported unless it
is asked for.
"""

from __future__ import annotations

import functools
import logging
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from .exceptions import OptionError
from .request_filter import IGNORE_REASONS
from .service import SitemapService

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Meter, Observation
    from prometheus_client.core import Metric
    from prometheus_client.registry import CollectorRegistry

log = logging.getLogger("sitemap_middleware")

SITEMAP_ATTRIBUTE: Final = "sitemap"
"""The attribute that tells the middlewares of a process apart: the sitemap's URL, or its path where no base_url is."""


class Measure(NamedTuple):
    """One figure of `stats`, as a metric."""

    stat: str
    name: str
    """As OpenTelemetry writes it; Prometheus has underscores, the unit, and `_total`."""
    unit: str
    """In UCUM, as OpenTelemetry wants it."""
    counts: bool
    """Whether it only grows, from the beginning of the process on; else it is as things are now."""
    text: str


MEASURES: Final = (
    Measure("seen", "sitemap.responses.seen", "{response}", True, "Responses that could teach something"),
    Measure(
        "dropped", "sitemap.responses.dropped", "{response}", True, "Responses not kept, for want of room to wait in"
    ),
    Measure("merged", "sitemap.responses.merged", "{response}", True, "Responses taken into the store"),
    Measure(
        "unwritable", "sitemap.responses.unwritable", "{response}", True, "Responses of paths no loc can be made of"
    ),
    Measure(
        "refused", "sitemap.pages.refused", "{page}", True, "New pages left out by max_pages or max_pages_per_route"
    ),
    Measure("rendered", "sitemap.blocks.rendered", "{block}", True, "Blocks of up to 1,000 learned pages rendered"),
    Measure("store_failures", "sitemap.store.failures", "{call}", True, "Calls that the store has failed"),
    Measure(
        "unavailable_responses",
        "sitemap.responses.unavailable",
        "{response}",
        True,
        "Requests for the sitemap that were answered 503",
    ),
    *(
        Measure(
            f"ignored_{reason}",
            f"sitemap.requests.ignored.{reason}",
            "{request}",
            True,
            f"Requests {which}, no evidence",
        )
        for reason, which in IGNORE_REASONS.items()
    ),
    Measure("pending", "sitemap.responses.pending", "{response}", False, "Responses that wait to be taken in"),
    Measure(
        "last_flush_age_seconds",
        "sitemap.last_flush.age",
        "s",
        False,
        "Time since all that waited was last taken into the store",
    ),
    Measure("values_age_seconds", "sitemap.values.age", "s", False, "Age of the oldest values, as last used"),
    Measure("listed", "sitemap.entries.listed", "{entry}", False, "Entries of the sitemap as last made"),
    Measure("skipped", "sitemap.entries.skipped", "{entry}", False, "Items of values that make no page, as last asked"),
    Measure(
        "documents", "sitemap.documents", "{document}", False, "Documents of the sitemap as last made, indexes too"
    ),
)


def metrics_reporter(to: Any) -> Callable[[SitemapService], None]:
    """What has a core's figures collected, by whatever the option `metrics` names.

    Raises `OptionError` where it names nothing, or a library that is not there.
    """
    if to is None:
        return lambda _: None
    if to == "prometheus":
        return functools.partial(_report, _prometheus(), _to_prometheus)
    if to == "opentelemetry":
        return functools.partial(_report, _opentelemetry(), _to_opentelemetry)
    if callable(getattr(to, "register", None)) and callable(getattr(to, "collect", None)):
        return functools.partial(_report, to, _to_prometheus)
    if callable(getattr(to, "create_observable_counter", None)):
        return functools.partial(_report, to, _to_opentelemetry)
    raise OptionError(
        f'SitemapMiddleware: metrics={to!r} collects no metrics; give "prometheus", "opentelemetry",'
        " a prometheus_client registry or an OpenTelemetry Meter"
    )


class MetricsSources:
    """The cores whose figures one registry or meter collects, for as long as they live."""

    def __init__(self) -> None:
        self._cores: list[weakref.ref[SitemapService]] = []

    def add(self, core: SitemapService) -> None:
        self._cores.append(weakref.ref(core, self._cores.remove))

    def read(self) -> dict[str, dict[str, float]]:
        """The figures, by the sitemap they are of. Of one and the same, counts are added up; else the highest holds."""
        read: dict[str, dict[str, float]] = {}
        for core in filter(None, [reference() for reference in list(self._cores)]):
            try:
                stats = core.stats()
            except Exception as error:
                log.debug("no metrics: %s", error)
                continue
            site = core.options.site
            figures = read.setdefault(f"{site.base_url if site else ''}{core.options.path}", {})
            for measure in MEASURES:
                before, now = figures.get(measure.stat, 0), stats[measure.stat]
                figures[measure.stat] = before + now if measure.counts else max(before, now)
        return read


_sources: Final[WeakKeyDictionary[Any, MetricsSources]] = WeakKeyDictionary()
"""By registry or meter."""


def _report(to: Any, begin: Callable[[Any, MetricsSources], None], core: SitemapService) -> None:
    new = MetricsSources()
    sources = _sources.setdefault(to, new)
    if sources is new:
        try:
            begin(to, sources)
        except ValueError as error:  # a registry that has a metric of one of these names
            del _sources[to]
            raise OptionError(f"SitemapMiddleware: metrics={to!r} does not take these metrics: {error}") from error
    sources.add(core)


# Prometheus


def _prometheus() -> CollectorRegistry:
    try:
        from prometheus_client import REGISTRY
    except ModuleNotFoundError as error:
        raise _missing_library("prometheus", "prometheus-client") from error
    return REGISTRY


def _to_prometheus(registry: CollectorRegistry, sources: MetricsSources) -> None:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    from prometheus_client.registry import Collector

    class Figures(Collector):
        def describe(self) -> Iterable[Metric]:
            return _families({})

        def collect(self) -> Iterable[Metric]:
            return _families(sources.read())

    def _families(read: dict[str, dict[str, float]]) -> Iterable[Metric]:
        for measure in MEASURES:
            name = measure.name.replace(".", "_") + ("_seconds" if measure.unit == "s" else "")
            made = CounterMetricFamily if measure.counts else GaugeMetricFamily
            family = made(name, f"{measure.text}.", labels=[SITEMAP_ATTRIBUTE])
            for sitemap, figures in read.items():
                family.add_metric([sitemap], figures[measure.stat])
            yield family

    registry.register(Figures())


# OpenTelemetry


@functools.cache
def _opentelemetry() -> Meter:
    try:
        from opentelemetry.metrics import get_meter
    except ModuleNotFoundError as error:
        raise _missing_library("opentelemetry", "opentelemetry-api") from error
    return get_meter("sitemap_middleware")


def _to_opentelemetry(meter: Meter, sources: MetricsSources) -> None:
    from opentelemetry.metrics import Observation

    def observing(stat: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
        return lambda _: [
            Observation(figures[stat], {SITEMAP_ATTRIBUTE: sitemap}) for sitemap, figures in sources.read().items()
        ]

    for measure in MEASURES:
        create = meter.create_observable_counter if measure.counts else meter.create_observable_gauge
        create(measure.name, [observing(measure.stat)], measure.unit, measure.text)


def _missing_library(extra: str, library: str) -> OptionError:
    return OptionError(
        f'SitemapMiddleware: metrics="{extra}" needs {library}: pip install "sitemap-middleware[{extra}]"'
    )
