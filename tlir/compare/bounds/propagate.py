"""Enclosures through a graph: one rule per operation, beside the reference's own evaluation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tlir.backends.liveness import last_uses
from tlir.backends.reference import evaluate_node
from tlir.compare.bounds import (
    arithmetic,
    complex_numbers,
    contraction,
    control,
    data,
    elementary,
    indexing,
    linalg,
    logic,
    reduction,
    shape,
    sorting,
    special,
    transforms,
    windows,
)
from tlir.compare.bounds.enclosure import Enclosure, Reasons, certain
from tlir.compare.bounds.intervals import FLOAT32, Interval, hull, nearest
from tlir.compare.bounds.policy import Freedoms
from tlir.compare.bounds.step import Step
from tlir.ir.graph import Body, Node, Ref
from tlir.ir.remember import remembered
from tlir.ir.tensor import Tensor

_ONE = (
    data,
    arithmetic,
    elementary,
    special,
    logic,
    complex_numbers,
    shape,
    reduction,
    contraction,
    indexing,
    windows,
    transforms,
)

RULES: dict[str, Callable[[Step], Enclosure]] = {name: rule for family in _ONE for name, rule in family.RULES.items()}
"""The rules of operations with one result."""

SEVERAL_RULES: dict[str, Callable[[Step], Sequence[Enclosure]]] = sorting.RULES | linalg.RULES | control.RULES

UNBOUNDED: dict[str, str] = linalg.UNBOUNDED
"""Operations without a bound, and the reason that the verdict gives."""

Observe = Callable[[Node, tuple[Enclosure, ...]], None]

_SUMS = ("add", "subtract", "reduce", "cumulative", "reduce_window", "scatter", "select_and_scatter")
_MOVES = (
    "negate", "broadcast_in_dim", "reshape", "transpose", "slice", "reverse", "concatenate", "pad", "select",
    "dynamic_slice", "dynamic_update_slice", "gather",
)  # fmt: skip


def propagate(
    body: Body,
    inputs: Sequence[Enclosure],
    freedoms: Freedoms,
    reasons: Reasons,
    observe: Observe | None = None,
    place: str = "",
    keep: Callable[[Node], bool] | None = None,
) -> list[Enclosure]:
    """The enclosures of a body's outputs, in their own formats, for those of its inputs.

    ``observe`` is called after each node of the body (not of regions) with its enclosures. Numbers of ``reasons`` are
    those of the enclosures. Raises what the reference raises.
    """
    given = dict(zip(body.input_ids, inputs, strict=True))
    values: dict[Ref, Enclosure] = {}
    dropped = last_uses(body)
    fused = fusable(body)
    soft = softened(body)
    constant = shared(body)

    def run(region: Body, operands: list[Enclosure]) -> list[Enclosure]:
        return propagate(region, operands, freedoms, reasons, place=f"{place}{node.id}.")

    with np.errstate(all="ignore"):
        for node in body.nodes:
            if node.op == "input":
                results: tuple[Enclosure, ...] = (given[node.id],)
            else:
                operands = tuple(values[ref] for ref in node.inputs)
                fixed = tuple(ref.node in constant for ref in node.inputs)
                results = _node(node, operands, freedoms, reasons, place, node.id in fused, node.id in soft, fixed, run)
            for k, enclosure in enumerate(results):
                values[Ref(node.id, k)] = enclosure
            if observe is not None:
                observe(node, results)
            for ref in dropped[node.id]:
                del values[ref]
        return [values[ref].stored() for ref in body.outputs]


def _node(
    node: Node,
    operands: tuple[Enclosure, ...],
    freedoms: Freedoms,
    reasons: Reasons,
    place: str,
    fused: bool,
    soft: bool,
    fixed: tuple[bool, ...],
    run: Callable[[Body, list[Enclosure]], list[Enclosure]],
) -> tuple[Enclosure, ...]:
    tensors = tuple(operand.tensor for operand in operands)
    results = evaluate_node(node, tensors)
    step = Step(node, operands, results, freedoms, reasons, f"{place}{node.id}", fused, soft, fixed, run)
    made = (RULES[node.op](step),) if node.op in RULES else tuple(SEVERAL_RULES[node.op](step))
    return tuple(_also_rounded(enclosure, freedoms) for enclosure in made)


def _also_rounded(enclosure: Enclosure, freedoms: Freedoms) -> Enclosure:
    """Where results may be kept in float32, any of them may be rounded to that, or to its own format."""
    dtype = enclosure.dtype
    if dtype.format is None or not freedoms.keeps_excess(dtype.float_format) or enclosure.all_sure:
        return enclosure
    fmt = dtype.float_format
    every = enclosure.interval
    for stored in (FLOAT32, fmt):
        every = hull(every, Interval(nearest(stored, enclosure.lo), nearest(stored, enclosure.hi)))
    return Enclosure(enclosure.tensor, every.lo, every.hi, enclosure.tag)


def enclose(
    body: Body, inputs: Sequence[Tensor], freedoms: Freedoms, observe: Observe | None = None
) -> tuple[list[Enclosure], Reasons]:
    """The enclosures of the outputs for inputs that every execution is given, and the reasons that their tags name."""
    reasons = Reasons()
    return propagate(body, [certain(tensor) for tensor in inputs], freedoms, reasons, observe), reasons


def local(
    body: Body,
    node: Node,
    operands: Sequence[Enclosure],
    freedoms: Freedoms,
    reasons: Reasons,
    *,
    recorded: bool = True,
) -> tuple[Enclosure, ...]:
    """The enclosures of one node of a body on given operands, such as those that a frontend recorded.

    ``recorded``: the frontend stored the result by itself, so that it is in its own format; otherwise what it computed
    may have gone on into the next operation as it was."""
    fixed = shared(body)

    def run(region: Body, given: list[Enclosure]) -> list[Enclosure]:
        return propagate(region, given, freedoms, reasons, place=f"{node.id}.")

    with np.errstate(all="ignore"):
        enclosures = _node(
            node,
            tuple(operands),
            freedoms,
            reasons,
            "",
            not recorded and node.id in fusable(body),
            not recorded and node.id in softened(body),
            tuple(ref.node in fixed for ref in node.inputs),
            run,
        )
    return tuple(enclosure.stored() for enclosure in enclosures) if recorded else enclosures


@remembered()
def fusable(body: Body) -> frozenset[int]:
    """The multiplications whose product goes into an addition, perhaps after being moved: those that may be fused."""
    reach: set[int] = set()
    adds: set[int] = set()
    for node in reversed(body.nodes):
        uses = node.id in adds
        if node.op == "multiply" and uses:
            reach.add(node.id)
        if node.op in _SUMS or (node.op in _MOVES and uses):
            adds.update(ref.node for ref in node.inputs)
    return frozenset(reach)


@remembered()
def softened(body: Body) -> frozenset[int]:
    """The conversions whose result an operation takes, perhaps after it has been moved (a selection is an operation: a
    compiler makes it on what is wide): not only another conversion, or whoever is given the outputs."""
    wanted: set[int] = set()
    found: set[int] = set()
    for node in reversed(body.nodes):
        if node.op == "convert" and node.id in wanted:
            found.add(node.id)
        moves = node.op in _MOVES and node.op not in ("select", "negate")
        if node.op != "convert" and (not moves or node.id in wanted):
            wanted.update(ref.node for ref in node.inputs)
    return frozenset(found)


def constants(body: Body) -> frozenset[int]:
    """Nodes that depend on no input."""
    found: set[int] = set()
    for node in body.nodes:
        if node.op != "input" and all(ref.node in found for ref in node.inputs) and not node.regions:
            found.add(node.id)
    return frozenset(found)


def shared(body: Body) -> frozenset[int]:
    """Nodes by whose reciprocal a compiler may multiply: those that depend on no input, and those that repeat values,
    whose reciprocals are fewer than the quotients."""
    repeated: set[int] = set()
    for node in body.nodes:
        grows = node.op == "broadcast_in_dim" and node.type.size > body.operand_types(node)[0].size
        if grows or (node.op in _MOVES and any(ref.node in repeated for ref in node.inputs)):
            repeated.add(node.id)
    return constants(body) | repeated
