"""Closes the database connections that Django opens for each thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from django.core.exceptions import SynchronousOnlyOperation
from django.db import connections


@contextmanager
def own_connections() -> Iterator[None]:
    """A context for the project's code on a thread of the middleware. Its end closes the thread's connections."""
    try:
        yield
    finally:
        with suppress(SynchronousOnlyOperation):  # on an event loop, Django's async queries use other threads
            connections.close_all()
