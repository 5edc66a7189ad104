"""Control flow: regions evaluated as data decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tlir.backends.reference import integers
from tlir.ir.graph import Body, Node
from tlir.ir.tensor import Tensor, words_shape
from tlir.ir.types import TensorType

Run = Callable[[Body, Sequence[Tensor]], list[Tensor]]
RegionEvaluator = Callable[[Node, tuple[Tensor, ...], Run], Sequence[Tensor]]


def _while(node: Node, operands: tuple[Tensor, ...], run: Run) -> Sequence[Tensor]:
    condition, body = node.regions
    values: Sequence[Tensor] = operands
    while run(condition, values)[0].words:
        values = run(body, values)
    return values


def _case(node: Node, operands: tuple[Tensor, ...], run: Run) -> Sequence[Tensor]:
    index = int(integers.to_values(operands[0].dtype, operands[0].words))
    last = len(node.regions) - 1
    return run(node.regions[index if 0 <= index <= last else last], operands[1:])


def _scan(node: Node, operands: tuple[Tensor, ...], run: Run) -> Sequence[Tensor]:
    consts, carries, length = (node.attrs[name] for name in ("num_consts", "num_carry", "length"))
    given, stacked = operands[:consts], operands[consts + carries :]
    carried: Sequence[Tensor] = operands[consts : consts + carries]
    results = [np.empty(words_shape(type), type.dtype.word_dtype) for type in node.types[carries:]]
    steps = range(length - 1, -1, -1) if node.attrs.get("reverse", False) else range(length)
    for step in steps:
        slices = [Tensor(TensorType(x.shape[1:], x.dtype), np.asarray(x.words[step])) for x in stacked]
        outputs = run(node.regions[0], [*given, *carried, *slices])
        carried = outputs[:carries]
        for result, output in zip(results, outputs[carries:], strict=True):
            result[step] = output.words
    made = (Tensor(type, words) for type, words in zip(node.types[carries:], results, strict=True))
    return [*carried, *made]


REGION_EVALUATORS: dict[str, RegionEvaluator] = {"while": _while, "case": _case, "scan": _scan}
