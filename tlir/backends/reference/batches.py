"""Batches of matrices as carriers: the axes of a matrix in front, one axis for the batch behind them.

Flags collect per matrix: every element of its results counts what any step raised.
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from tlir.backends.reference.invocation import CollectedFlags, Invocation
from tlir.backends.reference.layout import tail
from tlir.backends.reference.numbers import Carrier, field
from tlir.floatlib.words import constant
from tlir.ir.tensor import Words
from tlir.ir.types import DType

Mask = NDArray[np.bool_]


class Batch:
    """The operands of a node whose last ``axes`` axes are a matrix (or vector), and the arithmetic of their dtype."""

    def __init__(self, call: Invocation, first: int = 0, axes: int = 2) -> None:
        operand = call.operands[first]
        self.call = call
        self.dtype: DType = operand.dtype
        self.shape = operand.shape[: operand.type.rank - axes]
        self.size = prod(self.shape)
        self.flags = CollectedFlags((self.size,)) if call.flags is not None else None
        self.field = field(self.dtype, self.flags)
        self.real = self.field.real()

    def load(self, index: int, axes: int = 2) -> Carrier:
        """Operand ``index``, of shape (axes..., batch)."""
        words = self.call.words[index]
        sizes = self.call.operands[index].shape[len(self.shape) :]
        flat = words.reshape((self.size, *sizes, *tail(self.dtype)))
        return np.array(self.field.load(np.ascontiguousarray(np.moveaxis(flat, 0, axes))))

    def store(self, carrier: Carrier, axes: int = 2, real: bool = False) -> Words:
        """The words of (axes..., batch), the batch in front in its own shape."""
        words = (self.real if real else self.field).store(carrier)
        return self.unbatched(words, axes)

    def unbatched(self, values: Words, axes: int) -> Words:
        front = np.moveaxis(values, axes, 0)
        return front.reshape((*self.shape, *front.shape[1:]))

    def note(self) -> None:
        """Hand the flags to the node, after the last step."""
        if self.flags is not None and self.call.flags is not None and self.flags.noted:
            target = self.call.flags.array.shape
            raised = self.flags.array.reshape(self.shape + (1,) * (len(target) - len(self.shape)))
            self.call.flags.note(np.broadcast_to(raised, target))

    def zeros(self, *sizes: int) -> Carrier:
        return self._filled(sizes, 0)

    def nan(self, *sizes: int) -> Carrier:
        return self._filled(sizes, self.dtype.float_format.invalid_word)

    def identity(self, rows: int, columns: int) -> Carrier:
        result = self.zeros(rows, columns)
        diagonal = np.arange(min(rows, columns))
        result[diagonal, diagonal] = self.field.identity("multiply")
        return result

    def _filled(self, sizes: tuple[int, ...], word: int) -> Carrier:
        behind = tail(self.dtype)
        words = np.empty((*sizes, self.size, *behind), self.dtype.word_dtype)
        words[...] = constant(self.dtype.float_format, word)
        return np.array(self.field.load(words))

    def finite(self, carrier: Carrier) -> Mask:
        """Which matrices (axes..., batch) have finite elements only."""
        ok = np.ones(self.size, np.bool_)
        for part in self.field.parts(carrier):
            mask = self.real.finite(np.asarray(part))
            ok &= mask.all(axis=tuple(range(mask.ndim - 1)))
        return ok

    def adjoint(self, carrier: Carrier) -> Carrier:
        return np.array(self.field.conjugate(np.swapaxes(carrier, 0, 1)))

    def greatest_part(self, carrier: Carrier) -> Carrier:
        """The greatest magnitude of a part of each matrix's elements, (batch); 0 of none."""
        best = np.array(np.broadcast_to(self.real.identity("add"), (self.size, *self.real.identity("add").shape)))
        for part in self.field.parts(carrier):
            array = np.asarray(part)
            count = prod(array.shape[: array.ndim - best.ndim])
            for value in array.reshape((count, *best.shape)):
                magnitude = self.real.absolute(value)
                best = self.real.choose(self.real.greater(magnitude, best), magnitude, best)
        return best
