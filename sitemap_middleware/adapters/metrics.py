"""Exports the figures of `stats` as metrics of Prometheus and OpenTelemetry, each by its own naming conventions.

The figures are read when a collector asks for them; the request path is not involved.
All middlewares that one registry or meter collects share its metrics, and are
distinguished by the attribute `sitemap`. Neither library is imported unless the option
`metrics` names it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary, WeakSet

from ..exceptions import OptionError
from ..http.urls import root_of
from ..report.figures import FIGURES, Figure
from ..service import SitemapService
from ..util import log

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Meter, Observation
    from prometheus_client.core import Metric
    from prometheus_client.registry import CollectorRegistry

SITEMAP_ATTRIBUTE: Final = "sitemap"
"""The attribute that distinguishes the middlewares of a process: the sitemap's URL, or its path without base_url."""

Services = WeakSet[SitemapService]

_services: Final[WeakKeyDictionary[Any, Services]] = WeakKeyDictionary()
"""The services whose figures a registry or meter collects."""


def metrics_reporter(target: Any, place: str) -> Callable[[SitemapService], None]:
    """Return a function that publishes the figures of a service to the target that the option `metrics` names.

    `place` is where the option was given. Raises `OptionError` if it is invalid, or its library is not installed.
    """
    if target is None:
        return lambda _: None
    if target in ("prometheus", "opentelemetry"):
        target = default_target(target)
    if callable(getattr(target, "register", None)) and callable(getattr(target, "collect", None)):
        return functools.partial(_publish, target, _register_with_prometheus)
    if callable(getattr(target, "create_observable_counter", None)):
        return functools.partial(_publish, target, _register_with_opentelemetry)
    raise OptionError(
        f'{place}={target!r} does not collect metrics; give "prometheus", "opentelemetry",'
        " a prometheus_client registry or an OpenTelemetry Meter"
    )


@functools.cache
def default_target(library: str) -> Any:
    """The registry or meter that a library uses by default. Raises `OptionError` if it is not installed."""
    try:
        if library == "prometheus":
            from prometheus_client import REGISTRY

            return REGISTRY
        from opentelemetry.metrics import get_meter
    except ModuleNotFoundError as error:
        package = {"prometheus": "prometheus-client", "opentelemetry": "opentelemetry-api"}[library]
        raise OptionError(
            f'SitemapMiddleware: metrics="{library}" needs {package}: pip install "sitemap-middleware[{library}]"'
        ) from error
    return get_meter("sitemap_middleware")


def _publish(target: Any, register: Callable[[Any, Services], None], service: SitemapService) -> None:
    """Add a service to those of a target. The first one registers the metrics with the target."""
    if target not in _services:
        services = Services()
        try:
            register(target, services)
        except ValueError as error:  # the registry has another metric of one of these names
            raise OptionError(f"SitemapMiddleware: metrics={target!r} rejects these metrics: {error}") from error
        _services[target] = services
    _services[target].add(service)


def _read(services: Services, figure: Figure) -> dict[str, float]:
    """The values of a figure by sitemap: the sums of counters of one sitemap, and its highest gauges."""
    values: dict[str, float] = {}
    for service in services:
        try:
            value = service.stats()[figure.stat]
        except Exception as error:
            log.debug("no metrics: %s", error)
            continue
        site, root = service.options.site, root_of(service.app_routes.root_path) or ""
        sitemap = f"{site.base_url if site else ''}{root}{service.options.path}"
        before = values.get(sitemap, 0)
        values[sitemap] = before + value if figure.is_counter else max(before, value)
    return values


def _register_with_prometheus(registry: CollectorRegistry, services: Services) -> None:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    from prometheus_client.registry import Collector

    class SitemapCollector(Collector):
        def describe(self) -> Iterable[Metric]:
            return map(family, FIGURES)

        def collect(self) -> Iterable[Metric]:
            for figure in FIGURES:
                metric = family(figure)
                for sitemap, value in _read(services, figure).items():
                    metric.add_metric([sitemap], value)
                yield metric

    def family(figure: Figure) -> CounterMetricFamily | GaugeMetricFamily:
        name = figure.name.replace(".", "_") + ("_seconds" if figure.unit == "s" else "")
        family_class = CounterMetricFamily if figure.is_counter else GaugeMetricFamily
        return family_class(name, f"{figure.description}.", labels=[SITEMAP_ATTRIBUTE])

    registry.register(SitemapCollector())


def _register_with_opentelemetry(meter: Meter, services: Services) -> None:
    from opentelemetry.metrics import Observation

    def observing(figure: Figure) -> Callable[[CallbackOptions], Iterable[Observation]]:
        return lambda _: [
            Observation(value, {SITEMAP_ATTRIBUTE: sitemap}) for sitemap, value in _read(services, figure).items()
        ]

    for figure in FIGURES:
        create = meter.create_observable_counter if figure.is_counter else meter.create_observable_gauge
        create(figure.name, [observing(figure)], figure.unit, figure.description)
