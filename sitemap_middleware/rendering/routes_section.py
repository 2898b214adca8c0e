"""The section of static routes: rendered whole, in memory."""

from __future__ import annotations

from ..routing.route_table import ROUTES_SECTION
from .chunked_document import Chunk, RenderKey
from .chunking import group_chunks, make_chunks
from .section import RefreshContext, RenderingResources, SectionDocument


class RoutesSection:
    """The static routes of one site."""

    def __init__(self, resources: RenderingResources) -> None:
        self._resources = resources
        self._chunks: list[Chunk] = []
        self._key: RenderKey | None = None
        self._rendered_at = 0.0
        self._mark = b""

    def refresh(self, context: RefreshContext) -> bool:
        """Render all after a change, `refresh()` or `max_age`: a view's lastmod may be a callable."""
        now, mark = self._resources.clock(), context.marks.everything
        if self._key != context.key or self._mark != mark or not 0 <= now - self._rendered_at < self._resources.max_age:
            self._chunks = list(make_chunks([self._resources.entries.route_entries(context.evaluation)]))
            self._key, self._rendered_at, self._mark = context.key, now, mark
        return True

    def documents(self) -> list[SectionDocument]:
        """One document for each 50,000 routes."""
        return [
            SectionDocument(f"{ROUTES_SECTION}-{number}", chunks)
            for number, chunks in enumerate(group_chunks(self._chunks), 1)
        ]
