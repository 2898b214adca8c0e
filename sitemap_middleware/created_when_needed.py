"""Parts of an object that are created, and their modules imported, when they are needed first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class created_when_needed(Generic[T]):  # noqa: N801 (a decorator)
    """A property that is computed once for each object, and kept.

    If several threads need it at the same time, each may compute it, but all get the same result: what is decorated
    only creates an object. So no lock is taken, and none has to be replaced in a forked child.
    """

    def __init__(self, create: Callable[[Any], T]) -> None:
        self._create = create
        self._name = create.__name__
        self.__doc__ = create.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...
    @overload
    def __get__(self, owner: object, kind: type) -> T: ...
    def __get__(self, owner: object | None, kind: type) -> Self | T:
        if owner is None:
            return self
        # From now on the attribute is found in the object, before this is called.
        created: T = vars(owner).setdefault(self._name, self._create(owner))
        return created


def created_part(owner: object, name: str) -> Any:
    """A part of an object if it was created; None if nothing has needed it."""
    return vars(owner).get(name)
