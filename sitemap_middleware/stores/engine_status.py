"""Details of an engine for the `status` command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class LeaseStatus(NamedTuple):
    """A job that only one worker may do at a time."""

    site: str
    """The base URL or the store key that the job is about."""
    name: str
    until: int
    """POSIX seconds."""


class EngineStatus(NamedTuple):
    """The optional part of a store's status; None stands for what the engine does not know."""

    engine: str
    version: str | None
    """Versions of the engine and of the schema."""
    size: int | None
    """Bytes on disk or in memory."""
    sites: list[str]
    """Store keys: of the requested sites, or of all."""
    last_changed: Mapping[str, int]
    """For each base URL, since when its newest document is unchanged, in POSIX seconds."""
    leases: list[LeaseStatus] | None
    """The leases that have not ended."""
