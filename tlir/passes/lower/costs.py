"""What an element of a value costs where it is computed in place, in units of one native addition."""

from __future__ import annotations

from tlir.ir.graph import Body, Node, Ref
from tlir.ir.ops import complex_numbers, elementary, special
from tlir.ir.types import DType
from tlir.passes.lower.shape import VIEWS

CHEAP = 2
"""Up to so much is computed again rather than stored and read."""

HEAVY = 100

_FREE = VIEWS | {"constant", "input", "iota", "real", "imag", "complex", "bitcast_convert"}
_FUNCTIONS = frozenset(operation.name for family in (elementary, special) for operation in family.OPERATIONS) | {
    "integer_pow",
    "remainder",
    "next_after",
}
_SLOW = frozenset({"divide", "sqrt"})
_LOOPS = frozenset(
    {
        "reduce",
        "argmax",
        "argmin",
        "dot_general",
        "convolution",
        "reduce_window",
        "gather",
        "dynamic_slice",
        "case",
        "scan",
        "while",
    }
)
PROCESSOR = frozenset({"float16", "bfloat16", "float32", "float64"})
"""Formats whose sums, products and comparisons are a few instructions."""

_NATIVE = frozenset({"float32", "float64"})
_MOVES = frozenset(operation.name for operation in complex_numbers.OPERATIONS) | {"select", "negate", "abs", "copysign"}


def own_cost(node: Node, operand: DType) -> int:
    """Of the operation itself, on elements of this dtype."""
    if node.op in _FREE:
        return 0
    if node.op in _LOOPS or node.op in _FUNCTIONS:
        return HEAVY
    if operand.is_complex:
        return HEAVY if node.op in ("divide", "sqrt", "sign", "abs") else 4
    if operand.is_float and operand.name not in _NATIVE and node.op not in _MOVES:
        return 2 if operand.bits <= 16 and node.op in ("convert", "compare") else 20
    return 8 if node.op in _SLOW else 1


class Costs:
    """The cost of an element of each value with all that is computed in place below it, and how deep that is."""

    def __init__(self, body: Body) -> None:
        self.body = body
        self._known: dict[Ref, tuple[int, int]] = {}

    def update(self, stored: set[Ref]) -> None:
        """Compute anew, for these values being arrays, which cost nothing to read."""
        self._known = {}
        for node in self.body.nodes:
            below = [(0, 0) if ref in stored else self._known[ref] for ref in node.inputs]
            dtype = self.body.type_of(node.inputs[0]).dtype if node.inputs else node.type.dtype
            cost = own_cost(node, dtype) + sum(cost for cost, _ in below)
            depth = 1 + max((depth for _, depth in below), default=0)
            for result in range(len(node.types)):
                self._known[Ref(node.id, result)] = (min(cost, HEAVY * HEAVY), depth)

    def of(self, ref: Ref) -> int:
        return self._known[ref][0]

    def depth(self, ref: Ref) -> int:
        return self._known[ref][1]
