"""What an operator reads off a running process: `stats`, and the same as metrics of Prometheus and OpenTelemetry."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from sitemap_middleware import OptionError, SitemapMiddleware
from sitemap_middleware.adapters.metrics import default_target
from sitemap_middleware.report.figures import FIGURES

from ...support.sample_sites import Clock, Page, SampleSite

STATS_PAGE = Path(__file__).parents[3] / "docs" / "reference" / "stats.md"
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


# Prometheus


@PROTOCOLS
def test_prometheus_gets_every_figure_by_its_conventions(protocol: str) -> None:
    registry = CollectorRegistry()
    sample = bakery(protocol, metrics=registry)
    sample.visit("/", "/bread/rye")
    sample.locs()
    sample.request("/")
    exported = {name: samples[f"{BASE}/sitemap.xml"] for name, samples in exposed(registry).items()}
    assert {name: value for name, value in exported.items() if value} == {
        "sitemap_responses_seen_total": 3,
        "sitemap_responses_merged_total": 2,
        "sitemap_responses_pending": 1,
        "sitemap_store_in_memory": 1,
        "sitemap_entries_listed": 3,
        "sitemap_documents": 1,
    }
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", STATS_PAGE.read_text("utf-8"), re.MULTILINE)
    assert {stat for stat, _ in rows} == sample.app.stats().keys()
    assert {name for _, name in rows} == exported.keys()


def test_the_label_has_the_root_path_that_the_app_declares() -> None:
    registry = CollectorRegistry()
    app = FastAPI()
    app.root_path = "/api"
    site = SitemapMiddleware(app, base_url=BASE, store="memory://", metrics=registry)
    assert [*exposed(registry)["sitemap_documents"]] == [f"{BASE}/api/sitemap.xml"]
    site.close()


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
    assert set(exported) == {metric.name for metric in FIGURES}
    assert exported["sitemap.responses.seen"] == {f"{BASE}/sitemap.xml": 2, f"{BASE}/other.xml": 1}
    assert exported["sitemap.entries.listed"] == {f"{BASE}/sitemap.xml": 3, f"{BASE}/other.xml": 0}
    assert exported["sitemap.last_flush.age"] == {f"{BASE}/sitemap.xml": 5, f"{BASE}/other.xml": 0}
    provider.shutdown()


# What is asked for


@pytest.mark.parametrize("bad", ["statsd", "", 1, True, object(), Clock(), b"prometheus"])
def test_what_collects_nothing_is_refused_with_the_cure(bad: Any) -> None:
    with pytest.raises(
        OptionError, match=r'does not collect metrics; give "prometheus", "opentelemetry", a prometheus'
    ):
        bakery(metrics=bad)


@pytest.mark.parametrize(
    ("extra", "module", "library"),
    [
        ("prometheus", "prometheus_client", "prometheus-client"),
        ("opentelemetry", "opentelemetry.metrics", "opentelemetry-api"),
    ],
)
def test_missing_library_is_named_with_its_extra(
    extra: str, module: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    default_target.cache_clear()
    cure = re.escape(f'metrics="{extra}" needs {library}: pip install "sitemap-middleware[{extra}]"')
    with pytest.raises(OptionError, match=f"^SitemapMiddleware: {cure}$"):
        bakery(metrics=extra)
