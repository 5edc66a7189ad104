"""What an evaluator sees of a node, and where the exceptions it raises are noted.

An evaluator takes an ``Invocation`` and returns the words of the node's result in any memory order; the interpreter
makes them a ``Tensor`` of the declared type.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.floatlib.format import Format
from tlir.ir.graph import Node
from tlir.ir.ops import OPERATIONS
from tlir.ir.tensor import Tensor, Words
from tlir.ir.types import DType, TensorType

FlagArray = NDArray[np.uint8]


class FlagRecord:
    """The IEEE 754 flags raised at each element of a result, as the bits of ``tlir.floatlib.rounding.Flags``."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.array: FlagArray = np.zeros(shape, np.uint8)
        self.noted = False

    def note(self, flags: FlagArray) -> None:
        """Add flags; an array with one axis more than the result has the parts of complex numbers there."""
        if flags.ndim > self.array.ndim:
            flags = np.bitwise_or.reduce(flags, axis=-1)
        self.array |= flags
        self.noted = True


class CollectedFlags(FlagRecord):
    """The flags of many steps that lead to each output: arrays that broadcast over the outputs, or that have more steps
    along axes in front of theirs."""

    def note(self, flags: FlagArray) -> None:
        if self.array.size == 0:
            return
        steps = flags[(np.newaxis,) * max(0, self.array.ndim + 1 - flags.ndim)]
        for _ in range(steps.ndim - self.array.ndim):
            steps = np.bitwise_or.reduce(steps, axis=0)
        self.array |= steps
        self.noted = True


@dataclass(frozen=True)
class Invocation:
    """A node with the values of its operands; ``flags`` is None where nobody asked for them."""

    node: Node
    operands: tuple[Tensor, ...]
    flags: FlagRecord | None = None

    @property
    def result(self) -> TensorType:
        return self.node.type

    @property
    def dtype(self) -> DType:
        """The dtype of the first operand."""
        return self.operands[0].dtype

    @property
    def words(self) -> tuple[Words, ...]:
        return tuple(operand.words for operand in self.operands)

    def attr(self, name: str) -> Any:
        """The attribute's value, or its default."""
        return OPERATIONS[self.node.op].attr(self.node.attrs, name)

    def rounded(self, function: Callable[..., Any], fmt: Format, *words: Words, **options: Any) -> Words:
        """``function(fmt, *words, **options)`` of ``tlir.floatlib``, its flags noted where they are asked for."""
        if self.flags is None:
            result: Words = function(fmt, *words, **options)
            return result
        result, flags = function(fmt, *words, flags=True, **options)
        self.flags.note(flags)
        return result


Evaluator = Callable[[Invocation], Words]

SeveralEvaluator = Callable[[Invocation], tuple[Words, ...]]
"""An evaluator of an operation with several results."""
