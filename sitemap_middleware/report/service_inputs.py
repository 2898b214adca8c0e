"""`ServiceInputs`: the parts of the service that the report reads."""

from __future__ import annotations

from dataclasses import dataclass

from ..documents.handler import SitemapHandler
from ..explanations_and_statistics import ServiceInspection
from ..hosts import SiteResolver
from ..stores.base import Store


@dataclass(frozen=True, slots=True)
class ServiceInputs:
    """The parts of a service that the report reads."""

    service: ServiceInspection
    store: Store
    site_resolver: SiteResolver
    sitemap: SitemapHandler
