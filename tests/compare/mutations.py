"""Faults that can be planted in any graph: what a frontend would record that has dropped a cast, swapped an axis, lost
a term and so on. Each finds the places where it applies by the operations that stand there.

A fault replaces what single nodes give, computed by the reference from other operations, operands or formats; the rest
of the graph follows. Nodes that the faulty program does not have are hidden: nothing is recorded of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from tlir.backends.reference import evaluate_node
from tlir.ir.graph import Graph, Node, Ref
from tlir.ir.ops import Accumulate
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, DType, TensorType

Give = Callable[[Node, tuple[Tensor, ...]], Tensor]
"""What the frontend has for a node, from its own values of the node's operands."""


@dataclass(frozen=True)
class Fault:
    """``gives`` are the nodes that are computed otherwise, by number; nothing is recorded of the ``hidden`` ones."""

    gives: Mapping[int, Give]
    hidden: frozenset[int] = field(default_factory=frozenset)


Mutation = Callable[[Graph], Iterator[Fault]]

NARROWER = {"float64": "float32", "float32": "bfloat16", "float16": "float8_e5m2", "bfloat16": "float8_e4m3fn"}
ARITHMETIC = ("add", "subtract", "multiply", "divide", "exponential", "tanh", "sqrt", "rsqrt", "erf", "dot_general",
              "reduce", "integer_pow", "fma", "maximum")  # fmt: skip


# ---- computing it ---------------------------------------------------------------------------------------------------


def frontend_values(graph: Graph, inputs: tuple[Tensor, ...], fault: Fault) -> dict[Ref, Tensor]:
    """The frontend's value of everything."""
    values: dict[Ref, Tensor] = dict(zip((Ref(k) for k in graph.body.input_ids), inputs, strict=True))
    for node in graph.nodes:
        if node.op == "input":
            continue
        operands = tuple(values[ref] for ref in node.inputs)
        if node.id in fault.gives:
            values[Ref(node.id)] = fault.gives[node.id](node, operands)
        else:
            values |= {Ref(node.id, k): made for k, made in enumerate(evaluate_node(node, operands))}
    return values


def convert(tensor: Tensor, dtype: DType) -> Tensor:
    node = Node(0, "convert", (Ref(0),), {}, (TensorType(tensor.shape, dtype),))
    return tensor if tensor.dtype == dtype else evaluate_node(node, (tensor,))[0]


def rounded(tensor: Tensor, *formats: str) -> Tensor:
    """Rounded to these formats in turn, and back."""
    made = tensor
    for name in formats:
        made = convert(made, NAMED[name])
    return convert(made, tensor.dtype)


def changed(node: Node, operands: tuple[Tensor, ...], **attrs: Any) -> Tensor:
    return evaluate_node(replace(node, attrs={**node.attrs, **attrs}), operands)[0]


def array_of(tensor: Tensor, change: Callable[[Any], Any]) -> Tensor:
    made = Tensor.from_numpy(np.asarray(change(tensor.to_numpy()), order="C"))
    assert made.type == tensor.type
    return made


def floats(graph: Graph, *ops: str) -> Iterator[Node]:
    """Nodes of these operations with one floating-point result."""
    for node in graph.nodes:
        if node.op in ops and len(node.types) == 1 and node.types[0].dtype.is_float:
            yield node


def behind(graph: Graph, ref: Ref) -> Node:
    """The node that a value comes from, through nodes that only repeat, reshape or turn it."""
    node = graph.nodes[ref.node]
    while node.op in ("broadcast_in_dim", "reshape", "transpose"):
        node = graph.nodes[node.inputs[0].node]
    return node


def scalar(graph: Graph, ref: Ref) -> float | None:
    """The number that a value has at every element, None where it is not one repeated constant."""
    node = behind(graph, ref)
    if node.op != "constant" or node.types[0].shape:
        return None
    return float(node.attrs["value"].to_numpy())


def consumers(graph: Graph, number: int) -> list[Node]:
    return [node for node in graph.nodes if any(ref.node == number for ref in node.inputs)]


def on(position: int, change: Callable[[Tensor], Tensor]) -> Give:
    """The node itself, on another value of one operand."""

    def give(node: Node, operands: tuple[Tensor, ...]) -> Tensor:
        other = (*operands[:position], change(operands[position]), *operands[position + 1 :])
        return evaluate_node(node, other)[0]

    return give


# ---- casts ----------------------------------------------------------------------------------------------------------


def dropped_cast(graph: Graph) -> Iterator[Fault]:
    """What takes the value of a conversion computes in the format before it."""
    for cast in floats(graph, "convert"):
        source = graph.nodes[cast.inputs[0].node].types[cast.inputs[0].result].dtype
        users = consumers(graph, cast.id)
        if not source.is_float or Ref(cast.id) in graph.body.outputs or not users:
            continue

        originals: dict[int, Tensor] = {}

        def give(
            node: Node,
            operands: tuple[Tensor, ...],
            source: DType = source,
            cast: Node = cast,
            originals: dict[int, Tensor] = originals,
        ) -> Tensor:
            given = [convert(x, source) if x.dtype.is_float else x for x in operands]
            for k, ref in enumerate(node.inputs):
                given[k] = originals[cast.id] if ref.node == cast.id else given[k]
            if node.op == "convert":
                return evaluate_node(node, tuple(given))[0]
            attrs = {name: value for name, value in node.attrs.items() if name != "accumulate"}
            wide = replace(node, attrs=attrs, types=tuple(replace(type, dtype=source) for type in node.types))
            return convert(evaluate_node(wide, tuple(given))[0], node.types[0].dtype)

        def keep(node: Node, operands: tuple[Tensor, ...], originals: dict[int, Tensor] = originals) -> Tensor:
            originals[node.id] = operands[0]
            return evaluate_node(node, operands)[0]

        yield Fault({cast.id: keep} | {user.id: give for user in users}, frozenset({cast.id}))


def added_cast(graph: Graph) -> Iterator[Fault]:
    """A result goes through a narrower format. (Not the maximum of a softmax, which the result does not depend on.)"""
    for node in floats(graph, *ARITHMETIC):
        if node.op == "reduce" and node.attrs["reducer"] == "maximum":
            continue
        narrow = NARROWER[node.types[0].dtype.name]
        yield Fault({node.id: lambda n, xs, narrow=narrow: rounded(evaluate_node(n, xs)[0], narrow)})


def double_rounding(graph: Graph) -> Iterator[Fault]:
    """A conversion by way of a format between the two."""
    between = {("float64", "float16"): "float32", ("float64", "bfloat16"): "float32"}
    for cast in floats(graph, "convert"):
        source = graph.nodes[cast.inputs[0].node].types[cast.inputs[0].result].dtype
        middle = between.get((source.name, cast.types[0].dtype.name))
        if middle is not None:
            yield Fault({cast.id: on(0, lambda x, middle=middle: rounded(x, middle))})


def sum_in_float16(graph: Graph) -> Iterator[Fault]:
    for node in floats(graph, "reduce"):
        if node.attrs["reducer"] == "add" and node.types[0].dtype.name == "float32":
            yield Fault({node.id: partial(changed, accumulate=Accumulate(NAMED["float16"]))})


# ---- axes -----------------------------------------------------------------------------------------------------------


def swapped_axis(graph: Graph) -> Iterator[Fault]:
    """A transposition or repetition along another axis of the same size."""
    for node in floats(graph, "transpose", "broadcast_in_dim"):
        operand = graph.nodes[node.inputs[0].node].types[node.inputs[0].result]
        name = "permutation" if node.op == "transpose" else "broadcast_dimensions"
        axes, shape = list(node.attrs[name]), node.types[0].shape
        for a in range(len(axes)):
            if node.op == "transpose":
                others = [b for b in range(a) if operand.shape[axes[a]] == operand.shape[axes[b]]]
                swaps = [(*axes[:b], axes[a], *axes[b + 1 : a], axes[b], *axes[a + 1 :]) for b in others]
            else:  # the order of the axes is kept
                low, high = ([-1, *axes][a], [*axes, len(shape)][a + 1])
                free = [d for d in range(low + 1, high) if d != axes[a] and shape[d] == shape[axes[a]]]
                swaps = [(*axes[:a], d, *axes[a + 1 :]) for d in free if operand.shape[a] > 1]
            for swap in swaps:
                yield Fault({node.id: partial(changed, **{name: tuple(swap)})})


def _squares(tensor: Tensor) -> Tensor:
    return array_of(tensor, lambda a: np.swapaxes(a, -1, -2))


def transposed_weight(graph: Graph) -> Iterator[Fault]:
    for node in floats(graph, "dot_general"):
        for position, ref in enumerate(node.inputs):
            type = graph.nodes[ref.node].types[ref.result]
            weight = behind(graph, ref).op in ("constant", "input") and position == 1
            if weight and len(type.shape) == 2 and type.shape[0] == type.shape[1]:
                yield Fault({node.id: on(position, _squares)})


def other_axis(graph: Graph) -> Iterator[Fault]:
    """A sum that is divided afterwards, over another axis of the same size."""
    for node in floats(graph, "reduce"):
        shape = graph.nodes[node.inputs[0].node].types[node.inputs[0].result].shape
        means = [user for user in _users_through(graph, node.id) if user.op in ("divide", "multiply")]
        if node.attrs["reducer"] != "add" or not means or len(node.attrs["dimensions"]) != 1:
            continue
        (axis,) = node.attrs["dimensions"]
        for other in range(len(shape)):
            if other != axis and shape[other] == shape[axis]:
                yield Fault({node.id: partial(changed, dimensions=(other,))})


def _users_through(graph: Graph, number: int) -> Iterator[Node]:
    """Nodes that take a value, also repeated or reshaped."""
    for user in consumers(graph, number):
        if user.op in ("broadcast_in_dim", "reshape"):
            yield from _users_through(graph, user.id)
        else:
            yield user


def missing_term(graph: Graph) -> Iterator[Fault]:
    """A sum, or each of a product's, lacks its last term."""

    def without(tensor: Tensor, axis: int) -> Tensor:
        def cut(a: Any) -> Any:
            a = a.copy()
            a[(slice(None),) * axis + (-1,)] = 0
            return a

        return array_of(tensor, cut)

    for node in floats(graph, "reduce", "dot_general"):
        if node.op == "reduce" and node.attrs["reducer"] != "add":
            continue
        axes = node.attrs["dimensions" if node.op == "reduce" else "lhs_contracting_dimensions"]
        if axes:
            yield Fault({node.id: on(0, partial(without, axis=axes[-1]))})


# ---- formulas -------------------------------------------------------------------------------------------------------


def epsilon_outside(graph: Graph) -> Iterator[Fault]:
    """root(v) + epsilon for root(v + epsilon), and its reciprocal for that of the sum."""
    for root in floats(graph, "sqrt", "rsqrt"):
        total = graph.nodes[root.inputs[0].node]
        epsilon = [k for k, ref in enumerate(total.inputs) if 0 < (scalar(graph, ref) or 0) < 0.1]
        if total.op != "add" or not epsilon:
            continue
        kept: dict[int, tuple[Tensor, ...]] = {}

        def keep(node: Node, operands: tuple[Tensor, ...], kept: dict[int, tuple[Tensor, ...]] = kept) -> Tensor:
            kept[node.id] = operands
            return evaluate_node(node, operands)[0]

        def give(
            node: Node,
            operands: tuple[Tensor, ...],
            kept: dict[int, tuple[Tensor, ...]] = kept,
            total: Node = total,
            k: int = epsilon[0],
        ) -> Tensor:
            own = kept[total.id]
            plain = replace(node, op="sqrt")
            outside = evaluate_node(total, (evaluate_node(plain, (own[1 - k],))[0], own[k]))[0]
            if node.op == "sqrt":
                return outside
            one = array_of(outside, np.ones_like)
            return evaluate_node(replace(node, op="divide", inputs=(Ref(0), Ref(1))), (one, outside))[0]

        yield Fault({total.id: keep, root.id: give}, frozenset({total.id}))


def count_less_one(graph: Graph) -> Iterator[Fault]:
    """A mean divides by n - 1."""
    for node in floats(graph, "divide"):
        count, total = scalar(graph, node.inputs[1]), behind(graph, node.inputs[0])
        if total.op != "reduce" or total.attrs["reducer"] != "add" or count is None:
            continue
        shape = graph.nodes[total.inputs[0].node].types[total.inputs[0].result].shape
        if count == np.prod([shape[axis] for axis in total.attrs["dimensions"]]) and count > 1:
            yield Fault({node.id: on(1, partial(array_of, change=lambda a: (a - 1).astype(a.dtype)))})


def mask_off_by_one(graph: Graph) -> Iterator[Fault]:
    """The choice between scores and a low number uses the mask of the row before, or a comparison that excludes the
    diagonal."""
    other = {"GE": "GT", "LE": "LT", "GT": "GE", "LT": "LE"}
    for node in graph.nodes:
        if node.op == "compare" and node.attrs["comparison_direction"] in other:
            if graph.nodes[node.inputs[0].node].types[node.inputs[0].result].dtype.format is None:
                direction = other[node.attrs["comparison_direction"]]
                yield Fault({node.id: partial(changed, comparison_direction=direction)})
        elif node.op == "select" and behind(graph, node.inputs[0]).op in ("input", "not"):
            yield Fault({node.id: on(0, partial(array_of, change=lambda a: np.roll(a, 1, axis=-2)))})


def other_gelu(graph: Graph) -> Iterator[Fault]:
    """The gate of a gelu by tanh for erf, or by erf for tanh."""

    def cubic(a: Any) -> Any:
        x = a.astype(np.float64) * np.sqrt(2.0)
        return np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)).astype(a.dtype)

    for node in floats(graph, "erf"):
        yield Fault({node.id: lambda n, xs: array_of(xs[0], cubic)})
    for node in floats(graph, "tanh"):
        inner = graph.nodes[node.inputs[0].node]
        if inner.op != "multiply" or scalar(graph, inner.inputs[0]) is None:
            continue
        kept: dict[str, Tensor] = {}
        total = graph.nodes[inner.inputs[1].node]

        def keep(node: Node, operands: tuple[Tensor, ...], kept: dict[str, Tensor] = kept) -> Tensor:
            kept["x"] = operands[0]
            return evaluate_node(node, operands)[0]

        def give(node: Node, operands: tuple[Tensor, ...], kept: dict[str, Tensor] = kept) -> Tensor:
            half = array_of(kept["x"], lambda a: (a.astype(np.float64) * np.sqrt(0.5)).astype(a.dtype))
            return evaluate_node(replace(node, op="erf"), (half,))[0]

        yield Fault({total.id: keep, node.id: give})


def by_reciprocal(graph: Graph) -> Iterator[Fault]:
    """x * (1 / y) for x / y."""

    def give(node: Node, operands: tuple[Tensor, ...]) -> Tensor:
        x, y = operands
        inverse = evaluate_node(node, (array_of(x, np.ones_like), y))[0]
        return evaluate_node(replace(node, op="multiply"), (x, inverse))[0]

    for node in floats(graph, "divide"):
        yield Fault({node.id: give})


# ---- constants ------------------------------------------------------------------------------------------------------


def _parameters(graph: Graph) -> Iterator[Node]:
    """Constants, and inputs other than the last, that are no small epsilon."""
    inputs = [k for k in graph.body.input_ids if graph.nodes[k].types[0].dtype.is_float]
    for node in graph.nodes:
        if not node.types[0].dtype.is_float or not consumers(graph, node.id):
            continue
        if node.op == "constant":
            values = np.abs(node.attrs["value"].to_numpy().astype(np.float64))
            if np.isfinite(values).all() and values.min(initial=1.0) > 0 and values.max(initial=0.0) > 0.01:
                yield node
        elif node.op == "input" and node.id in inputs[:-1]:
            yield node


def _other_value(graph: Graph, node: Node, change: Callable[[Any], Any]) -> Fault:
    """Whatever takes a parameter takes another value of it."""
    gives: dict[int, Give] = {}
    for user in consumers(graph, node.id):
        positions = [k for k, ref in enumerate(user.inputs) if ref.node == node.id]

        def give(user: Node, operands: tuple[Tensor, ...], positions: list[int] = positions) -> Tensor:
            given = list(operands)
            for k in positions:
                given[k] = array_of(given[k], change)
            return evaluate_node(user, tuple(given))[0]

        gives[user.id] = give
    return Fault(gives)


def stale_constant(graph: Graph) -> Iterator[Fault]:
    """The element of the largest magnitude of a parameter is 1 in 1000 larger."""

    def older(a: Any) -> Any:
        wide = a.astype(np.float64).reshape(-1)
        place = int(np.argmax(np.abs(wide)))
        wide[place] *= 1.001 if a.dtype.itemsize > 2 else 1.02
        return wide.reshape(a.shape).astype(a.dtype)

    for node in _parameters(graph):
        yield _other_value(graph, node, older)


def flipped(a: Any, bit: int) -> Any:
    """An array with fraction bit ``bit`` of the element of the most average size inverted; 1 is the highest."""
    a = a.copy()
    sizes = np.abs(a.astype(np.float64)).reshape(-1)
    place = int(np.argmin(np.abs(sizes - sizes.mean())))
    word = a.view(f"u{a.itemsize}").reshape(-1)
    fraction = {2: 10, 4: 23, 8: 52}[a.itemsize]
    word[place] ^= word.dtype.type(1 << (fraction - bit))
    return a


def weights(graph: Graph) -> Iterator[Node]:
    """Parameters in float32 that are a matrix of a product."""
    for node in _parameters(graph):
        products = {user.op for user in _users_through_all(graph, node.id)}
        if "dot_general" in products and len(node.types[0].shape) == 2 and node.types[0].dtype.name == "float32":
            yield node


def _users_through_all(graph: Graph, number: int) -> Iterator[Node]:
    for user in consumers(graph, number):
        if user.op in ("broadcast_in_dim", "reshape", "transpose"):
            yield from _users_through_all(graph, user.id)
        else:
            yield user


def flipped_bit(graph: Graph, bit: int = 12) -> Iterator[Fault]:
    for node in weights(graph):
        yield _other_value(graph, node, partial(flipped, bit=bit))


MUTATIONS: dict[str, Mutation] = {
    "dropped cast": dropped_cast,
    "added cast": added_cast,
    "double rounding": double_rounding,
    "axis swapped": swapped_axis,
    "transposed weight": transposed_weight,
    "missing term": missing_term,
    "epsilon outside the root": epsilon_outside,
    "n - 1 for n": count_less_one,
    "mean over the wrong axis": other_axis,
    "mask off by one": mask_off_by_one,
    "the other gelu": other_gelu,
    "sum in float16": sum_in_float16,
    "x * (1 / y) for x / y": by_reciprocal,
    "stale constant": stale_constant,
    "flipped bit": flipped_bit,
}
