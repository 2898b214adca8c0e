"""The signature of SitemapMiddleware that `inspect.signature` shows, though its `__new__` takes any arguments."""

from __future__ import annotations

import inspect
from typing import Any


class ConstructorSignature:
    """The `__signature__` of a class, from its `__init__`. An instance has the signature of its `__call__`."""

    def __get__(self, instance: object, owner: Any) -> inspect.Signature:
        if instance is not None:
            raise AttributeError("__signature__")
        return inspect.Signature(list(inspect.signature(owner.__init__).parameters.values())[1:])
