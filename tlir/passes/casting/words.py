"""Tensors of words in another format: each element rounded once, and what that changed counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tlir.floatlib.arrays import convert, to_ints
from tlir.floatlib.rounding import Flags
from tlir.floatlib.words import is_nan
from tlir.ir.tensor import Tensor, words_shape
from tlir.ir.types import DType, TensorType


@dataclass(frozen=True)
class Rounding:
    """What became of one tensor. ``what`` is "constant", "input" or "output"; ``place`` the node's id (in a region
    ``12.0.3``), or the number of the sample and the position (``0/2``). The counts are of numbers, of which a complex
    element has two: those that raised each flag, and the NaNs whose payload was lost."""

    what: str
    place: str
    name: str | None
    before: TensorType
    after: TensorType
    numbers: int
    inexact: int
    overflow: int
    underflow: int
    invalid: int
    payloads: int

    @property
    def exact(self) -> bool:
        """Every number is the same as before."""
        return not (self.inexact or self.invalid or self.payloads)

    def counts(self) -> dict[str, int]:
        return {
            "inexact": self.inexact,
            "overflow": self.overflow,
            "underflow": self.underflow,
            "invalid": self.invalid,
            "payloads": self.payloads,
        }

    def to_json(self) -> dict[str, Any]:
        parts: dict[str, Any] = {"what": self.what, "place": self.place}
        parts |= {"name": self.name} if self.name is not None else {}
        return parts | {"from": self.before.dtype.name, "numbers": self.numbers, **self.counts()}


def cast_tensor(tensor: Tensor, dtype: DType, what: str, place: str, name: str | None) -> tuple[Tensor, Rounding]:
    """The tensor in another floating-point or complex dtype of the same kind, rounded once to nearest even, and the
    account of it. NaN becomes the canonical NaN of the format."""
    source, target = tensor.dtype.float_format, dtype.float_format
    words, raised = convert(source, target, tensor.words, flags=True)
    type = TensorType(tensor.shape, dtype)
    lost = 0
    if source != target and source.nan is not None:
        # signs and payloads of NaN are in the words of the source alone
        nan = is_nan(source, tensor.words)
        if nan.any():
            lost = sum(1 for word in to_ints(source, tensor.words[nan]).reshape(-1) if int(word) != source.nan)

    def count(flag: Flags) -> int:
        return int(np.count_nonzero(raised & int(flag)))

    return Tensor(type, np.ascontiguousarray(words).reshape(words_shape(type))), Rounding(
        what,
        place,
        name,
        tensor.type,
        type,
        int(np.asarray(raised).size),
        count(Flags.INEXACT),
        count(Flags.OVERFLOW),
        count(Flags.UNDERFLOW),
        count(Flags.INVALID),
        lost,
    )
