"""What an operator reads off a running process: `stats`, and the same as metrics of Prometheus and OpenTelemetry."""

from __future__ import annotations

import gc
import logging
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.metrics import get_meter_provider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import REGISTRY, CollectorRegistry, Gauge, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from sitemap_middleware import OptionError, SitemapMiddleware, prometheus_and_opentelemetry, sitemap
from sitemap_middleware.prometheus_and_opentelemetry import METRICS
from sitemap_middleware.request_filter.reasons import IGNORE_REASONS
from sitemap_middleware.stores.sqlite.memory import MemoryStore
from sitemap_middleware.stores.sqlite.store import SQLiteStore

from ..support.sample_sites import Clock, Page, SampleSite

BASE = "https://bakery.example"
PROTOCOLS = pytest.mark.parametrize("protocol", ["wsgi", "asgi"])


def bakery(protocol: str = "wsgi", **options: Any) -> SampleSite:
    pages = {"/": Page(), "/menu": Page(), "/bread/{name}": Page()}
    return SampleSite(protocol, pages, **{"base_url": BASE, "learn": "/bread/{name}", **options})


def exposed(registry: CollectorRegistry) -> dict[str, dict[str, float]]:
    """The samples of a registry as Prometheus reads them: by name, and then by sitemap."""
    samples: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        for sample in family.samples:
            assert sample.labels["sitemap"] not in samples.setdefault(sample.name, {})
            samples[sample.name][sample.labels["sitemap"]] = sample.value
    return samples


def collected(reader: InMemoryMetricReader) -> dict[str, dict[str, float]]:
    """The points that a meter's reader collects, likewise."""
    data = reader.get_metrics_data()
    return {
        metric.name: {str((point.attributes or {})["sitemap"]): point.value for point in metric.data.data_points}  # type: ignore[union-attr]
        for resource in (data.resource_metrics if data else [])
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


# stats


@PROTOCOLS
def test_stats_count_events_and_current_values(protocol: str) -> None:
    sample = bakery(protocol)
    sample.request("/")
    assert sample.app.stats()["pending"] == 2  # the answer, and its body
    sample.visit("/menu", "/bread/rye")
    assert sample.request("/sitemap.xml").status == 200
    stats = sample.app.stats()
    assert {name: stats[name] for name in ("seen", "merged", "pending", "rendered", "listed", "documents")} == {
        "seen": 3,
        "merged": 6,
        "pending": 0,
        "rendered": 1,
        "listed": 3,
        "documents": 1,
    }


STATS_OF_A_NEW_PROCESS = """
import sys
before = set(sys.modules)  # a tool that measures coverage is there
import flask
from sitemap_middleware import SitemapMiddleware
app = flask.Flask("small")
site = SitemapMiddleware(app.wsgi_app, base_url="https://bakery.example", store="memory://")
print({value for value in site.stats().values()})
print({"sqlite3", "sitemap_middleware.rendering", "sitemap_middleware.listing"} & (set(sys.modules) - before))
"""


def test_stats_of_a_process_that_has_answered_nothing_are_zero_and_import_nothing_that_answers() -> None:
    command = [sys.executable, "-c", STATS_OF_A_NEW_PROCESS]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n") == [
        "{0}",
        "set()",
        "",
    ]


def test_flush_age_grows_while_the_store_fails(tmp_path: Path) -> None:
    file = tmp_path / "pages.sqlite3"
    sample = bakery(store=SQLiteStore(file))
    assert sample.app.stats()["last_flush_age_seconds"] == 0
    sample.request("/")
    assert sample.app.stats()["last_flush_age_seconds"] == 0
    sample.visit("/menu")
    file.unlink()
    with sqlite3.connect(file) as other:
        other.execute("CREATE TABLE of_another_program (x)")
    sample.clock.pass_(60)
    sample.visit("/menu")
    stats = sample.app.stats()
    assert stats["last_flush_age_seconds"] == 60
    assert stats["pending"] > 0
    assert stats["store_failures"] == 1
    other.close()
    file.unlink()
    sample.app.flush()
    stats = sample.app.stats()
    assert (stats["last_flush_age_seconds"], stats["pending"], stats["store_failures"]) == (0, 0, 1)


def test_a_middleware_that_was_closed_is_late_with_nothing() -> None:
    sample = bakery()
    sample.visit("/")
    sample.app.close()
    sample.clock.pass_(3600)
    assert sample.app.stats()["last_flush_age_seconds"] == 0


def test_every_figure_has_a_name_in_the_docstring_and_is_a_metric() -> None:
    stats = bakery().app.stats()
    assert sorted(metric.stat for metric in METRICS) == sorted(stats)
    for name in stats:
        assert f"``{name}``: " in (SitemapMiddleware.stats.__doc__ or "")


# Prometheus


@PROTOCOLS
def test_prometheus_gets_every_figure_by_its_conventions(protocol: str) -> None:
    registry = CollectorRegistry()
    sample = bakery(protocol, metrics=registry)
    sample.visit("/", "/bread/rye")
    sample.locs()
    sample.request("/")
    exported = exposed(registry)
    assert {name: samples[f"{BASE}/sitemap.xml"] for name, samples in exported.items()} == {
        "sitemap_responses_seen_total": 3,
        "sitemap_responses_dropped_total": 0,
        "sitemap_responses_merged_total": 4,
        "sitemap_responses_unwritable_total": 0,
        "sitemap_responses_pending": 1,
        "sitemap_pages_refused_total": 0,
        "sitemap_blocks_rendered_total": 1,
        "sitemap_store_failures_total": 0,
        "sitemap_responses_unavailable_total": 0,
        "sitemap_crawler_visits_dropped_total": 0,
        **{f"sitemap_requests_ignored_{reason}_total": 0 for reason in IGNORE_REASONS},
        "sitemap_last_flush_age_seconds": 0,
        "sitemap_values_age_seconds": 0,
        "sitemap_entries_listed": 3,
        "sitemap_entries_skipped": 0,
        "sitemap_documents": 1,
    }


def test_middlewares_of_one_process_share_a_registry() -> None:
    registry = CollectorRegistry()
    shop = bakery(metrics=registry)
    blog = bakery(metrics=registry, base_url=None, path="/blog.xml")
    again = bakery(metrics=registry)
    shop.visit("/", "/menu")
    again.visit("/")
    blog.visit("/")
    shop.locs()
    exported = exposed(registry)
    assert exported["sitemap_responses_seen_total"] == {f"{BASE}/sitemap.xml": 3, "/blog.xml": 1}
    assert exported["sitemap_entries_listed"] == {f"{BASE}/sitemap.xml": 2, "/blog.xml": 0}


def test_garbage_collected_middleware_is_not_reported() -> None:
    registry = CollectorRegistry()
    store = MemoryStore()  # held here: in a cycle, SQLite's handle would be freed first and warn
    sample = bakery(metrics=registry, store=store)
    assert exposed(registry)
    del sample
    gc.collect()
    assert exposed(registry) == {}


def test_failing_middleware_does_not_fail_the_scrape(caplog: pytest.LogCaptureFixture) -> None:
    registry = CollectorRegistry()
    Gauge("of_the_app", "Another metric.", ["sitemap"], registry=registry).labels("none").set(1)
    moment: list[float] = [1_750_000_000.0]
    sample = bakery(metrics=registry, clock=lambda: moment[0])
    sample.visit("/")
    moment.clear()
    with caplog.at_level(logging.DEBUG, "sitemap_middleware"):
        assert exposed(registry) == {"of_the_app": {"none": 1}}
    assert "no metrics: " in caplog.text
    moment.append(0.0)


def test_a_registry_that_has_a_metric_of_that_name_is_refused() -> None:
    registry = CollectorRegistry()
    Gauge("sitemap_documents", "The app's own.", registry=registry)
    for _ in range(2):
        with pytest.raises(OptionError, match="rejects these metrics: Duplicated timeseries"):
            bakery(metrics=registry)


def test_prometheus_by_name_is_its_global_registry() -> None:
    sample = bakery(metrics="prometheus", path="/by-name.xml")
    sample.visit("/")
    assert REGISTRY.get_sample_value("sitemap_responses_seen_total", {"sitemap": f"{BASE}/by-name.xml"}) == 1


# OpenTelemetry


def test_opentelemetry_gets_every_figure_by_its_conventions() -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    sample = bakery(metrics=provider.get_meter("shop"))
    other = bakery(metrics=provider.get_meter("shop"), path="/other.xml")
    sample.visit("/", "/bread/rye")
    sample.locs()
    sample.clock.pass_(5)
    other.visit("/")
    exported = collected(reader)
    assert set(exported) == {metric.name for metric in METRICS if not metric.is_by_crawler}
    assert exported["sitemap.responses.seen"] == {f"{BASE}/sitemap.xml": 2, f"{BASE}/other.xml": 1}
    assert exported["sitemap.entries.listed"] == {f"{BASE}/sitemap.xml": 3, f"{BASE}/other.xml": 0}
    assert exported["sitemap.last_flush.age"] == {f"{BASE}/sitemap.xml": 5, f"{BASE}/other.xml": 0}
    provider.shutdown()


def test_opentelemetry_reports_counters_with_units() -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    sample = bakery(metrics=provider.get_meter("shop"))
    sample.visit("/")
    data = reader.get_metrics_data()
    assert data is not None
    (scope,) = data.resource_metrics[0].scope_metrics
    units = {metric.name: (metric.unit, getattr(metric.data, "is_monotonic", False)) for metric in scope.metrics}
    assert units == {metric.name: (metric.unit, metric.is_counter) for metric in METRICS if not metric.is_by_crawler}
    provider.shutdown()


BY_NAME = """
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from sitemap_middleware import SitemapMiddleware

def app(environ, start_response): ...
kept = [SitemapMiddleware(app, store="memory://", path=path, metrics="opentelemetry") for path in ("/a.xml", "/b.xml")]
reader = InMemoryMetricReader()
metrics.set_meter_provider(MeterProvider([reader], shutdown_on_exit=False))   # later than the app, as is often so
kept.append(SitemapMiddleware(app, store="memory://", path="/c.xml", metrics="opentelemetry"))
(scope,) = reader.get_metrics_data().resource_metrics[0].scope_metrics
print(scope.scope.name, sorted({point.attributes["sitemap"] for one in scope.metrics for point in one.data.data_points}))
"""


def test_opentelemetry_by_name_finds_a_provider_set_later() -> None:
    answer = subprocess.run([sys.executable, "-c", BY_NAME], capture_output=True, text=True, check=False)
    assert answer.stdout == "sitemap_middleware ['/a.xml', '/b.xml', '/c.xml']\n"
    assert answer.stderr == ""


def test_opentelemetry_by_name_needs_no_provider() -> None:
    assert "Proxy" in type(get_meter_provider()).__name__
    sample = bakery(metrics="opentelemetry")
    assert len(sample.locs()) == 2


# What is asked for


@pytest.mark.parametrize("bad", ["statsd", "", 1, True, object(), Clock(), b"prometheus"])
def test_what_collects_nothing_is_refused_with_the_cure(bad: Any) -> None:
    with pytest.raises(
        OptionError, match=r'does not collect metrics; give "prometheus", "opentelemetry", a prometheus'
    ):
        bakery(metrics=bad)


MISSING = """
import sys
sys.modules["{module}"] = None
from sitemap_middleware import OptionError, SitemapMiddleware
try:
    SitemapMiddleware(lambda environ, start_response: None, metrics="{extra}")
except OptionError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("extra", "module", "library"),
    [
        ("prometheus", "prometheus_client", "prometheus-client"),
        ("opentelemetry", "opentelemetry.metrics", "opentelemetry-api"),
    ],
)
def test_missing_library_is_named_with_its_extra(extra: str, module: str, library: str) -> None:
    code = MISSING.format(module=module, extra=extra)
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    cure = f'pip install "sitemap-middleware[{extra}]"'
    assert answer.stdout == f'SitemapMiddleware: metrics="{extra}" needs {library}: {cure}\n'
    assert answer.stderr == ""


@pytest.mark.parametrize(
    ("extra", "module", "find"),
    [
        ("prometheus", "prometheus_client", prometheus_and_opentelemetry.prometheus_registry),
        (
            "opentelemetry",
            "opentelemetry.metrics",
            prometheus_and_opentelemetry.opentelemetry_meter.__wrapped__,
        ),  # whose meter is kept
    ],
)
def test_a_library_that_is_missing_is_an_option_error(
    extra: str, module: str, find: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(OptionError, match=re.escape(f'pip install "sitemap-middleware[{extra}]"')):
        find()


def test_metrics_libraries_are_imported_on_demand() -> None:
    code = (
        "import sys\nfrom sitemap_middleware import SitemapMiddleware\n"
        "app = SitemapMiddleware(lambda environ, start_response: None, store='memory://')\napp.stats()\n"
        "print({'prometheus_client', 'opentelemetry'} & set(sys.modules))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert answer.stdout == "set()\n"


@pytest.mark.parametrize("fails", ["at once", "later"])
def test_values_that_fail_for_a_day_show_in_their_age(fails: str) -> None:
    failing = fails == "at once"

    def posts() -> list[dict[str, str]]:
        if failing:
            raise RuntimeError("the database is down")
        return [{"slug": "one"}]

    sample = SampleSite("wsgi", {"/posts/{slug}": Page()}, marks={"/posts/{slug}": sitemap(values=posts)}, verify=False)
    assert sample.app.stats()["values_age_seconds"] == 0
    sample.request("/sitemap.xml")
    assert sample.app.stats()["values_age_seconds"] == 0
    failing = True
    for _ in range(24):
        sample.clock.pass_(3600)
        assert sample.request("/sitemap.xml").status == (503 if fails == "at once" else 200)
    assert sample.app.stats()["values_age_seconds"] == 24 * 3600
    assert sample.app.stats()["unavailable_responses"] == (25 if fails == "at once" else 0)
    failing = False
    sample.clock.pass_(3600)
    assert sample.request("/sitemap.xml").status == 200
    assert sample.app.stats()["values_age_seconds"] == 0
