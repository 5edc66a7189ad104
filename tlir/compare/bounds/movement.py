"""Operations that move elements, applied to the ends and tags of enclosures by the reference's own evaluators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.backends.reference import EVALUATORS, SEVERAL
from tlir.backends.reference.invocation import Invocation
from tlir.compare.bounds.enclosure import Enclosure, certain
from tlir.compare.bounds.step import Step
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, DType, TensorType

PARTS = ("lo", "hi", "tag")


def carrier(dtype: DType, part: str) -> DType:
    """A dtype whose words hold the part of an enclosure, with the axes that the dtype's elements have."""
    if dtype.is_complex:
        return NAMED["complex64" if part == "tag" else "complex128"]
    return NAMED["uint32" if part == "tag" else "float64"]


def held(array: NDArray[Any], shape: tuple[int, ...], dtype: DType, part: str) -> Tensor:
    """The part of an enclosure as a tensor of its carrier."""
    words = array.view(np.uint64) if part != "tag" and array.flags.c_contiguous else array
    if part != "tag" and words.dtype != np.uint64:
        words = np.asarray(array, order="C").view(np.uint64)
    return Tensor(TensorType(shape, carrier(dtype, part)), words.reshape(array.shape))


def moved(
    step: Step,
    data: Sequence[int],
    enclosures: Mapping[int, Enclosure] | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> Enclosure:
    """The result where operands ``data`` are moved as the others, which are indices, say. ``enclosures`` replace
    operands; ``attributes`` hold tensors that are moved too."""
    parts: list[Any] = []
    operands = [(enclosures or {}).get(k, operand) for k, operand in enumerate(step.operands)]
    fillers = {name: certain(tensor) for name, tensor in (attributes or {}).items()}
    dtype = step.result.dtype
    for part in PARTS:
        given = tuple(
            held(getattr(operand, part), operand.tensor.shape, dtype, part) if k in data else operand.tensor
            for k, operand in enumerate(operands)
        )
        attrs = dict(step.node.attrs)
        for name, filler in fillers.items():
            attrs[name] = held(np.asarray(getattr(filler, part), order="C"), filler.tensor.shape, dtype, part)
        type = TensorType(step.result.shape, carrier(dtype, part))
        node = replace(step.node, attrs=attrs, types=(type,))
        words = np.asarray(EVALUATORS[node.op](Invocation(node, given)))
        # a view of the operand where that is all there is to it
        parts.append(words if part == "tag" else words.view(np.float64))
    return Enclosure(step.result, parts[0], parts[1], parts[2])


def evaluated(step: Step, operands: Sequence[tuple[NDArray[Any], tuple[int, ...]]], **attributes: Any) -> NDArray[Any]:
    """The operation on float64 arrays in the place of its operands, as the reference computes it."""
    given = tuple(held(np.asarray(array, order="C"), shape, NAMED["float64"], "lo") for array, shape in operands)
    type = TensorType(step.result.shape, NAMED["float64"])
    node = replace(step.node, attrs={**step.node.attrs, **attributes}, types=(type,))
    words = np.asarray(EVALUATORS[node.op](Invocation(node, given)))
    return np.asarray(words, order="C").view(np.float64)


__all__ = ["EVALUATORS", "SEVERAL", "carrier", "evaluated", "held", "moved"]
