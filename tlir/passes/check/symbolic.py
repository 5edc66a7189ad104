"""What a graph computes, element by element, as expressions: straight from the meanings in ``docs/ops.md``.

Nothing here is shared with the lowering: this is what the lowering is checked against.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from tlir.ir.graph import Body, Node, Ref
from tlir.passes.check import matrices
from tlir.passes.check.expressions import Expressions, Ids, Key
from tlir.passes.check.ordered import Ordered
from tlir.passes.check.placed import Placed
from tlir.passes.check.step import constant, same_words
from tlir.passes.check.windowed import Windowed


def evaluate(
    table: Expressions, body: Body, inputs: Sequence[Ids], opaque: Collection[int] = (), region: bool = False
) -> list[Ids]:
    """The expressions of the outputs for those of the inputs. The nodes in ``opaque`` are taken as a whole: each of
    their results is an unknown function of all elements of the operands; so are others that are the same function of
    the same operands."""
    given = dict(zip(body.input_ids, inputs, strict=True))
    values: dict[Ref, Ids] = {}
    functions: set[Key] = set()
    for node in body.nodes:
        operands = [values[ref] for ref in node.inputs]
        if node.op == "input":
            results = [given[node.id]]
        elif node.op == "constant":
            results = [constant(table, node.attrs["value"], None if region else node.id)]
        elif not region and (node.id in opaque or (functions and _applied(node, operands) in functions)):
            functions.add(_applied(node, operands))
            results = whole(table, node, operands)
        else:
            results = _Step(table, body, node, operands).results()
        for k, result in enumerate(results):
            if result.shape != node.types[k].shape:
                raise AssertionError(f"{node}: {result.shape} for {node.types[k]}")
            values[Ref(node.id, k)] = result
    return [values[ref] for ref in body.outputs]


def whole(table: Expressions, node: Node, operands: Sequence[Ids]) -> list[Ids]:
    """The results of a node of which nothing is said but that they depend on the operands."""
    what = _applied(node, operands)
    results = []
    for k, type in enumerate(node.types):
        ids = [table.opaque((*what, k), position, type.dtype) for position in range(type.size)]
        results.append(np.array(ids, np.int64).reshape(type.shape))
    return results


def _applied(node: Node, operands: Sequence[Ids]) -> Key:
    """What nodes that are the same function of the same operands have in common."""
    attrs = tuple((name, same_words(value)) for name, value in sorted(node.attrs.items()))
    function = node.id if node.regions else (attrs, node.types)
    return (node.op, function, *(tuple(operand.reshape(-1).tolist()) for operand in operands))


class _Step(Ordered, Windowed, Placed):
    """One node: its operands as arrays of expressions, and the results that its operation has."""

    def results(self) -> list[Ids]:
        if self.node.op in ("case", "scan", "while", "sort", "top_k"):
            several: list[Ids] = getattr(self, f"_{self.node.op}")()
            return several
        if self.node.op in matrices.MEANINGS:
            shapes = [type.shape for type in self.node.types]
            return matrices.evaluated(self.table, self.node.op, self.attr, self.dtypes[0], self.operands, shapes)
        method = getattr(self, f"_{self.node.op}", None)
        if method is None:
            return [self._elementwise()]
        return [np.asarray(method(*self.operands), np.int64)]

    # ---- regions ----------------------------------------------------------------------------------------------------

    def _region(self, number: int, inputs: Sequence[Ids]) -> list[Ids]:
        return evaluate(self.table, self.node.regions[number], inputs, region=True)

    def _case(self) -> list[Ids]:
        index, last = self.table.value(int(self.operands[0])), len(self.node.regions) - 1
        return self._region(index if 0 <= index <= last else last, self.operands[1:])

    def _while(self) -> list[Ids]:
        values = list(self.operands)
        while self.table.value(int(self._region(0, values)[0])):
            values = self._region(1, values)
        return values

    def _scan(self) -> list[Ids]:
        consts, carries, length = (self.attr(name) for name in ("num_consts", "num_carry", "length"))
        fixed, carried, stacked = (
            list(self.operands[:consts]),
            list(self.operands[consts : consts + carries]),
            self.operands[consts + carries :],
        )
        results = [np.empty(type.shape, np.int64) for type in self.node.types[carries:]]
        for step in reversed(range(length)) if self.attr("reverse") else range(length):
            outputs = self._region(0, [*fixed, *carried, *(np.asarray(x[step]) for x in stacked)])
            carried = outputs[:carries]
            for result, output in zip(results, outputs[carries:], strict=True):
                result[step] = output
        return [*carried, *results]
