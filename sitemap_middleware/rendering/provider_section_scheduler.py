"""Renders the sections of all providers of one site in the background, one after the other."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Final

from ..exceptions import StoreError, ValuesError
from ..listing.provider_item_queue import as_values_error
from ..models import Provider, Route, Site
from ..request_response import TEST_CLIENT_WAIT_SECONDS
from .provider_section import AlreadyRunning, ProcessEnding, ProviderSection
from .section import (
    FIRST_WAIT_SECONDS,
    WAIT_SECONDS,
    BackgroundJob,
    BeingGenerated,
    RefreshContext,
    RenderingResources,
    SectionDocument,
    Unavailable,
)

log: logging.Logger = logging.getLogger("sitemap_middleware")

PROVIDER_FAILING_REASON: Final = "the values of a route fail, and the log says why"
"""What clients are told if there is no document because a provider fails."""


class ProviderSections:
    """The items of each `values=` of one site, each provider in documents named after it."""

    def __init__(self, resources: RenderingResources, site: Site) -> None:
        self._resources = resources
        self._site = site
        self._sections: dict[Provider, ProviderSection] = {}
        self._job: BackgroundJob | None = None
        self._failing = False
        """Whether a provider fails, and that was logged."""

    @property
    def age(self) -> float:
        """The age in seconds of the oldest items when a request last needed them; 0 if there are no providers."""
        return max((section.age for section in list(self._sections.values())), default=0.0)

    def refresh(self, context: RefreshContext) -> bool:
        """Call the providers that are due, and wait a moment. Earlier documents stay until new ones are complete."""
        providers = context.evaluation.providers
        routes = dict(providers.values())
        self._sections = {
            provider: self._sections.get(provider)
            or ProviderSection(
                self._resources.store,
                self._site.base_url,
                name,
                self._resources.worker_id,
                self._resources.clock,
                is_named=provider.section is not None,
            )
            for name, (provider, _) in providers.items()
        }
        by_test = context.request.wait_seconds == TEST_CLIENT_WAIT_SECONDS
        for section in self._sections.values():
            section.refresh(mark=context.marks.token_of(section.name), expired=by_test)
        due = self._due(context)
        if due:
            if self._job is None or self._job.done.is_set():
                self._job = self._resources.run_in_background(
                    context.request, lambda: self._render(due, routes, context)
                )
            self._job.done.wait(self._wait_seconds(by_test=by_test))
            self._raise_if_nothing_to_serve(self._job)
        return not self._due(context)

    def documents(self) -> list[SectionDocument]:
        """The documents of each provider."""
        return [document for section in self._sections.values() for document in section.documents()]

    def _due(self, context: RefreshContext) -> dict[Provider, ProviderSection]:
        return {
            provider: section
            for provider, section in self._sections.items()
            if section.is_due(context.key, self._resources.max_age)
        }

    def _wait_seconds(self, *, by_test: bool) -> float:
        rendered = [section.rendered for section in self._sections.values()]
        if by_test or None in rendered:
            return FIRST_WAIT_SECONDS
        is_slow = sum(last.seconds for last in rendered if last is not None) > WAIT_SECONDS
        return 0.0 if is_slow else WAIT_SECONDS

    def _raise_if_nothing_to_serve(self, job: BackgroundJob) -> None:
        if any(section.rendered is None for section in self._sections.values()):
            if isinstance(job.error, ValuesError | StoreError):
                raise job.error
            raise Unavailable(PROVIDER_FAILING_REASON) if self._failing else BeingGenerated

    def _render(
        self,
        due: Mapping[Provider, ProviderSection],
        routes: Mapping[Provider, Sequence[Route]],
        context: RefreshContext,
    ) -> None:
        """Render each section, even if another one fails; then raise the first error."""
        resources = self._resources
        busy: list[Exception] = []
        failed: list[Exception] = []
        for provider, section in due.items():
            try:
                with closing(
                    resources.entries.provider_entries(context.evaluation, provider, routes[provider])
                ) as entries:
                    section.render(entries, context.key, resources.max_age, resources.closing.is_set)
            except ProcessEnding:
                raise
            except AlreadyRunning as error:
                busy.append(error)
            except StoreError as error:
                failed.append(error)
            except Exception as error:  # nor may a fault of the middleware remove earlier documents
                failed.append(as_values_error(error))
                self._log_failure(as_values_error(error))
        if failed or busy:
            raise (failed + busy)[0]
        self._log_recovery()

    def _log_failure(self, error: ValuesError) -> None:
        """Log that a provider fails, once until all work again."""
        if not self._failing:
            self._failing = True
            log.warning("the sitemap shows its last good state, or none: %s", error, exc_info=error.__cause__)

    def _log_recovery(self) -> None:
        if self._failing:
            self._failing = False
            log.warning("the sitemap's values can be read again")
