"""What a request asks for, as far as both protocols tell it in one form."""

from __future__ import annotations

from ..exchange import Question


class Asked:
    """A request by its question: the part of `exchange.Request` that the adapters have in common."""

    __slots__ = ("question",)

    question: Question
    """Path, host, scheme, root, method and query, each as the protocol gives it."""

    @property
    def method(self) -> str:
        method: str = self.question[4]
        return method

    @property
    def query(self) -> bool:
        return bool(self.question[5])

    @property
    def scheme(self) -> str:
        scheme: str = self.question[2]
        return scheme
