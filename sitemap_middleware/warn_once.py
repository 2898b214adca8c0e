"""Logs each warning once."""

from __future__ import annotations

import logging
from collections.abc import Hashable

log: logging.Logger = logging.getLogger("sitemap_middleware")


class WarnOnce:
    """Logs a warning on each topic, once for each object of this class."""

    def __init__(self) -> None:
        self._topics = set[Hashable]()

    def __call__(self, topic: Hashable, message: str, *arguments: object) -> None:
        """Log a warning, unless one on the same topic was logged."""
        if topic not in self._topics:
            self._topics.add(topic)
            log.warning(message, *arguments)
