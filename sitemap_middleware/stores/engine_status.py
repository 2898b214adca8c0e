"""What an engine tells of itself, to people, besides what the contract asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class LeaseStatus(NamedTuple):
    """A job that one worker has to itself."""

    site: str
    """The base of its sitemap."""
    name: str
    until: int
    """POSIX seconds."""


class EngineStatus(NamedTuple):
    """What an engine's `status` says. What it does not know is None."""

    engine: str
    version: str | None
    """Of the engine, and of what we made in it."""
    size: int | None
    """Bytes that all of it takes there."""
    sites: list[str]
    """The keys of the sites in question: those named, else all that there are."""
    last_changed: Mapping[str, int]
    """Since when the newest document of each base is what it is."""
    leases: list[LeaseStatus] | None
    """Those that have not ended."""
