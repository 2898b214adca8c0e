"""Exports the figures of `stats` as metrics of Prometheus and OpenTelemetry, each by its own naming conventions.

The figures are read when a collector asks for them; the request path is not involved.
All middlewares that one registry or meter collects share its metrics, and are
distinguished by the attribute `sitemap`. Neither library is imported unless the option
`metrics` names it.
"""

from __future__ import annotations

import functools
import logging
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from ..exceptions import OptionError
from ..report.figures import FIGURES, Figure
from ..service import SitemapService

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Meter, Observation
    from prometheus_client.core import Metric
    from prometheus_client.registry import CollectorRegistry

log: logging.Logger = logging.getLogger("sitemap_middleware")

SITEMAP_ATTRIBUTE: Final = "sitemap"
"""The attribute that distinguishes the middlewares of a process: the sitemap's URL, or its path without base_url."""

Values = dict[str, float]
"""The values of one metric, by that of `SITEMAP_ATTRIBUTE`."""


def metrics_reporter(target: Any, place: str) -> Callable[[SitemapService], None]:
    """Return a function that publishes the figures of a service to the target that the option `metrics` names.

    Args:
        target: the value of the option.
        place: where it was given, for the error.

    Raises:
        OptionError: the target is invalid, or its library is not installed.
    """
    if target is None:
        return lambda _: None
    if target == "prometheus":
        return functools.partial(_publish, prometheus_registry(), _register_with_prometheus)
    if target == "opentelemetry":
        return functools.partial(_publish, opentelemetry_meter(), _register_with_opentelemetry)
    if callable(getattr(target, "register", None)) and callable(getattr(target, "collect", None)):
        return functools.partial(_publish, target, _register_with_prometheus)
    if callable(getattr(target, "create_observable_counter", None)):
        return functools.partial(_publish, target, _register_with_opentelemetry)
    raise OptionError(
        f'{place}={target!r} does not collect metrics; give "prometheus", "opentelemetry",'
        " a prometheus_client registry or an OpenTelemetry Meter"
    )


class MetricsSources:
    """The services whose figures one registry or meter collects. They are held weakly."""

    def __init__(self) -> None:
        self._services: list[weakref.ref[SitemapService]] = []

    def add(self, service: SitemapService) -> None:
        self._services.append(weakref.ref(service, self._services.remove))

    def read(self) -> dict[str, Values]:
        """Return the figures by their keys in `stats`: the sums of counters of one sitemap, and its highest gauges."""
        by_stat: dict[str, Values] = {metric.stat: {} for metric in FIGURES}
        for service in filter(None, [reference() for reference in list(self._services)]):
            try:
                stats = service.stats()
            except Exception as error:
                log.debug("no metrics: %s", error)
                continue
            site = service.options.site
            sitemap = f"{site.base_url if site else ''}{service.options.path}"
            for metric in FIGURES:
                figures, now = by_stat[metric.stat], stats[metric.stat]
                before = figures.get(sitemap, 0)
                figures[sitemap] = before + now if metric.is_counter else max(before, now)
        return by_stat


_sources: Final[WeakKeyDictionary[Any, MetricsSources]] = WeakKeyDictionary()
"""By registry or meter."""


def _publish(target: Any, register: Callable[[Any, MetricsSources], None], service: SitemapService) -> None:
    """Add a service to the target's sources. The first one registers the metrics with the target."""
    new_sources = MetricsSources()
    sources = _sources.setdefault(target, new_sources)
    if sources is new_sources:
        try:
            register(target, sources)
        except ValueError as error:  # the registry has another metric of one of these names
            del _sources[target]
            raise OptionError(f"SitemapMiddleware: metrics={target!r} rejects these metrics: {error}") from error
    sources.add(service)


def prometheus_registry() -> CollectorRegistry:
    """The registry that prometheus_client uses by default.

    Raises:
        OptionError: prometheus_client is not installed.
    """
    try:
        from prometheus_client import REGISTRY
    except ModuleNotFoundError as error:
        raise _missing_library("prometheus", "prometheus-client") from error
    return REGISTRY


def _register_with_prometheus(registry: CollectorRegistry, sources: MetricsSources) -> None:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    from prometheus_client.registry import Collector

    class SitemapCollector(Collector):
        def describe(self) -> Iterable[Metric]:
            return metric_families(MetricsSources().read())

        def collect(self) -> Iterable[Metric]:
            return metric_families(sources.read())

    def metric_families(by_stat: dict[str, Values]) -> Iterable[Metric]:
        for metric in FIGURES:
            name = metric.name.replace(".", "_") + ("_seconds" if metric.unit == "s" else "")
            family_class = CounterMetricFamily if metric.is_counter else GaugeMetricFamily
            family = family_class(name, f"{metric.description}.", labels=[SITEMAP_ATTRIBUTE])
            for sitemap, figure in by_stat[metric.stat].items():
                family.add_metric([sitemap], figure)
            yield family

    registry.register(SitemapCollector())


@functools.cache
def opentelemetry_meter() -> Meter:
    """The meter of OpenTelemetry's global provider.

    Raises:
        OptionError: OpenTelemetry is not installed.
    """
    try:
        from opentelemetry.metrics import get_meter
    except ModuleNotFoundError as error:
        raise _missing_library("opentelemetry", "opentelemetry-api") from error
    return get_meter("sitemap_middleware")


def _register_with_opentelemetry(meter: Meter, sources: MetricsSources) -> None:
    from opentelemetry.metrics import Observation

    def observing(metric: Figure) -> Callable[[CallbackOptions], Iterable[Observation]]:
        return lambda _: [
            Observation(figure, {SITEMAP_ATTRIBUTE: sitemap}) for sitemap, figure in sources.read()[metric.stat].items()
        ]

    for metric in FIGURES:
        create = meter.create_observable_counter if metric.is_counter else meter.create_observable_gauge
        create(metric.name, [observing(metric)], metric.unit, metric.description)


def _missing_library(extra: str, library: str) -> OptionError:
    return OptionError(
        f'SitemapMiddleware: metrics="{extra}" needs {library}: pip install "sitemap-middleware[{extra}]"'
    )
