"""What was found out of a body, kept while the body is among the last that were asked about."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar

from tlir.ir.graph import Body

T = TypeVar("T")


class _Identity:
    """A body as a key: the same object, not an equal one, since to compare every node costs more than most answers."""

    __slots__ = ("body",)

    def __init__(self, body: Body) -> None:
        self.body = body

    def __hash__(self) -> int:
        return id(self.body)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.body is self.body


def remembered(kept: int = 64) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Decorates a function of a body, and of further arguments that are hashable, so that its results for the last
    ``kept`` are remembered. What it raises is not."""

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        @lru_cache(maxsize=kept)
        def known(key: _Identity, *arguments: Any) -> T:
            return function(key.body, *arguments)

        @wraps(function)
        def call(body: Body, *arguments: Any) -> T:
            return known(_Identity(body), *arguments)

        return call

    return decorate
