"""Enclosures through a graph: one rule per operation, beside the reference's own evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

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
from tlir.compare.bounds.blocks import Run, alone, follow, joins, returned, schedule
from tlir.compare.bounds.enclosure import NAN, Enclosure, Kept, Reasons, certain, evenly_tagged
from tlir.compare.bounds.intervals import also_rounded, complete, limits, missing
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
Known = Mapping[int, tuple[Enclosure, ...]]

_SUMS = ("add", "subtract", "reduce", "cumulative", "reduce_window", "scatter", "select_and_scatter")
_MOVES = (
    "negate", "broadcast_in_dim", "reshape", "transpose", "slice", "reverse", "concatenate", "pad", "select",
    "dynamic_slice", "dynamic_update_slice", "gather",
)  # fmt: skip


class _Nodes:
    """The nodes of a body, each enclosed from the enclosures of its operands."""

    def __init__(
        self, body: Body, freedoms: Freedoms, reasons: Reasons, place: str = "", known: Known | None = None
    ) -> None:
        self.freedoms, self.reasons, self.place, self.known = freedoms, reasons, place, known or {}
        self.fused, self.soft, self.constant = fusable(body), softened(body), shared(body)
        self.folds = folded(body) if freedoms.compiled else {}

    def enclose(self, node: Node, operands: tuple[Enclosure, ...], stays: bool = True) -> tuple[Enclosure, ...]:
        """The enclosures of a node's results. ``stays``: what it computes may go on as it is, unrounded say."""

        def run(region: Body, given: list[Enclosure]) -> list[Enclosure]:
            return propagate(region, given, self.freedoms, self.reasons, place=f"{self.place}{node.id}.")

        known = self.known.get(node.id)
        if known is not None and all(enclosure.all_sure for enclosure in known):
            return known
        step = Step(
            node,
            operands,
            tuple(enclosure.tensor for enclosure in known)
            if known is not None
            else evaluate_node(node, tuple(operand.tensor for operand in operands)),
            self.freedoms,
            self.reasons,
            f"{self.place}{node.id}",
            stays and node.id in self.fused,
            stays and node.id in self.soft,
            tuple(ref.node in self.constant for ref in node.inputs),
            run,
            self.folds.get(node.id) if stays else None,
        )
        made = (RULES[node.op](step),) if node.op in RULES else tuple(SEVERAL_RULES[node.op](step))
        return tuple(evenly_tagged(_in_words(_also_rounded(enclosure, self.freedoms))) for enclosure in made)


def propagate(
    body: Body,
    inputs: Sequence[Enclosure],
    freedoms: Freedoms,
    reasons: Reasons,
    observe: Observe | None = None,
    place: str = "",
    progress: Callable[[Node], None] | None = None,
    known: Known | None = None,
) -> list[Enclosure]:
    """The enclosures of a body's outputs, in their own formats, for those of its inputs.

    ``observe`` is called after each node of the body (not of regions) with its enclosures, and ``progress`` without
    them, which saves to store those that nothing needs. Numbers of ``reasons`` are those of the enclosures. Raises what
    the reference raises.
    """
    values = {Ref(i): given for i, given in zip(body.input_ids, inputs, strict=True)}
    nodes = _Nodes(body, freedoms, reasons, place, known)
    with np.errstate(all="ignore"):
        for item in schedule(body):
            task = item.task
            if isinstance(task, Run):
                passed: Sequence[Node] = task.nodes
                values |= follow(task, values, nodes.enclose, observe is not None)
            else:
                passed = (task,)
                if task.op != "input":
                    made = nodes.enclose(task, tuple(values[ref] for ref in task.inputs))
                    values |= {Ref(task.id, k): enclosure for k, enclosure in enumerate(made)}
            for node in passed:
                if observe is not None:
                    observe(node, tuple(values[Ref(node.id, k)] for k in range(len(node.types))))
                if progress is not None:
                    progress(node)
            for ref in item.dropped:
                values.pop(ref, None)
            if observe is not None and isinstance(task, Run):
                for node in task.nodes:
                    if node.id not in task.needed:
                        del values[Ref(node.id)]
        done = set() if observe is not None else {Ref(i) for item in schedule(body) for i in returned(item)}
        return [values[ref] if ref in done else values[ref].stored() for ref in body.outputs]


def _also_rounded(enclosure: Enclosure, freedoms: Freedoms) -> Enclosure:
    """Where results may be kept in float32, any of them may be rounded to that, or to its own format."""
    dtype = enclosure.dtype
    done = isinstance(enclosure, Kept)
    if done or dtype.format is None or not freedoms.keeps_excess(dtype.float_format) or enclosure.all_sure:
        return enclosure
    return Enclosure(enclosure.tensor, *also_rounded(dtype.float_format, enclosure.interval), enclosure.tag)


def _in_words(enclosure: Enclosure) -> Enclosure:
    """What is a number that the format does not have (zero, say, in some) is a NaN once it is stored; and what is a NaN
    is a number in a format without NaN, from which operations go on."""
    dtype = enclosure.dtype
    if dtype.format is None or enclosure.all_sure:
        return enclosure
    fmt = dtype.float_format
    if complete(fmt) and fmt.infinities and fmt.has_nan:
        return enclosure
    (lo, hi), tag = enclosure.interval, enclosure.tag
    if fmt.has_nan:
        nan = missing(fmt, enclosure.interval)
        if not nan.any():
            return enclosure
        return Enclosure(enclosure.tensor, lo, hi, np.where(nan & enclosure.unsure, tag | NAN, tag))
    open = enclosure.nan & enclosure.unsure
    if not open.any():
        return enclosure
    wild = open & ~(np.isfinite(lo) & np.isfinite(hi))
    instead = 0.0 if fmt.has_zero else limits(fmt).least
    lo = np.where(wild, -np.inf, np.where(open, np.minimum(lo, instead), lo))
    hi = np.where(wild, np.inf, np.where(open, np.maximum(hi, instead), hi))
    return Enclosure(enclosure.tensor, lo, hi, tag)


def enclose(
    body: Body,
    inputs: Sequence[Tensor],
    freedoms: Freedoms,
    observe: Observe | None = None,
    progress: Callable[[Node], None] | None = None,
    known: Known | None = None,
) -> tuple[list[Enclosure], Reasons]:
    """The enclosures of the outputs for inputs that every execution is given, and the reasons that their tags name.

    ``known``: the enclosures of nodes of the body, by number, that freedoms with more executions give for the same
    inputs. What is sure there is sure here too, and the reference's values are not computed again."""
    reasons = Reasons()
    given = [certain(tensor) for tensor in inputs]
    return propagate(body, given, freedoms, reasons, observe, progress=progress, known=known), reasons


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
    nodes = _Nodes(body, freedoms, reasons)
    with np.errstate(all="ignore"):
        if joins(body, node):
            values = dict(zip(node.inputs, operands, strict=True))
            made = follow(alone(body, node), values, partial(nodes.enclose, stays=not recorded), False)
            enclosures: tuple[Enclosure, ...] = (made[Ref(node.id)],)
        else:
            enclosures = nodes.enclose(node, tuple(operands), not recorded)
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


_FOLDS = {"add": ("add", "subtract"), "subtract": ("add", "subtract"), "multiply": ("multiply",)}


@remembered()
def folded(body: Body) -> dict[int, float]:
    """Sums and products of a constant and such a sum or product of another constant, with a bound of the latter: a
    compiler may combine the constants first."""
    found: dict[int, float] = {}
    for node in body.nodes:
        if node.op not in _FOLDS or not node.type.dtype.is_float:
            continue
        for k, other in ((0, 1), (1, 0)):
            inner = body.nodes[node.inputs[other].node]
            sizes = [_size(body, ref) for ref in inner.inputs] if inner.op in _FOLDS[node.op] else []
            size = max((size for size in sizes if size is not None), default=None)
            if size is not None and _size(body, node.inputs[k]) is not None:
                found[node.id] = size + found.get(inner.id, 0.0)
    return found


def _size(body: Body, ref: Ref) -> float | None:
    """The greatest magnitude in a constant, perhaps after it has been moved; None of what is none."""
    node = body.nodes[ref.node]
    while node.op in ("broadcast_in_dim", "reshape", "transpose"):
        node = body.nodes[node.inputs[0].node]
    if node.op != "constant" or not node.type.size:
        return None
    ends = certain(node.attrs["value"]).interval
    return float(max(np.abs(ends.lo).max(), np.abs(ends.hi).max()))


@remembered()
def constants(body: Body) -> frozenset[int]:
    """Nodes that depend on no input."""
    found: set[int] = set()
    for node in body.nodes:
        if node.op != "input" and all(ref.node in found for ref in node.inputs) and not node.regions:
            found.add(node.id)
    return frozenset(found)


@remembered()
def shared(body: Body) -> frozenset[int]:
    """Nodes by whose reciprocal a compiler may multiply: those that depend on no input, and those that repeat values,
    whose reciprocals are fewer than the quotients."""
    repeated: set[int] = set()
    for node in body.nodes:
        grows = node.op == "broadcast_in_dim" and node.type.size > body.operand_types(node)[0].size
        if grows or (node.op in _MOVES and any(ref.node in repeated for ref in node.inputs)):
            repeated.add(node.id)
    return constants(body) | frozenset(repeated)
