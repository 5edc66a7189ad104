"""Control flow on a GPU: what data decides is read, and regions run on arrays that stay there.

The meanings are those of ``tlir.backends.reference.control``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tlir.backends.reference import integers
from tlir.ir.graph import Body, Node
from tlir.ir.tensor import words_shape
from tlir.ir.types import DType

Run = Callable[[Body, Sequence[Any]], Sequence[Any]]


def run_regions(
    node: Node, index: DType, operands: Sequence[Any], run: Run, empty: Callable[..., Any]
) -> Sequence[Any]:
    """The results of a ``while``, ``case`` or ``scan`` on arrays of words; ``run`` runs a region on arrays, ``empty``
    makes one. ``index`` is the dtype of the first operand."""
    match node.op:
        case "while":
            return _while(node, operands, run)
        case "case":
            number = int(integers.to_values(index, operands[0].get()))
            last = len(node.regions) - 1
            return run(node.regions[number if 0 <= number <= last else last], operands[1:])
        case _:
            return _scan(node, operands, run, empty)


def _while(node: Node, values: Sequence[Any], run: Run) -> Sequence[Any]:
    condition, body = node.regions
    while run(condition, values)[0].get():
        values = run(body, values)
    return values


def _scan(node: Node, operands: Sequence[Any], run: Run, empty: Callable[..., Any]) -> Sequence[Any]:
    consts, carries, length = (node.attrs[name] for name in ("num_consts", "num_carry", "length"))
    given, stacked = operands[:consts], operands[consts + carries :]
    carried = operands[consts : consts + carries]
    results = [empty(words_shape(type), type.dtype.word_dtype) for type in node.types[carries:]]
    for step in range(length - 1, -1, -1) if node.attrs.get("reverse", False) else range(length):
        # copies, because kernels take arrays to begin at addresses for wide reads
        slices = [x[step : step + 1].reshape(x.shape[1:]).copy() for x in stacked]
        outputs = run(node.regions[0], [*given, *carried, *slices])
        carried = outputs[:carries]
        for result, output in zip(results, outputs[carries:], strict=True):
            result[step] = output
    return [*carried, *results]
