"""Control flow: loops of a known number of steps over elements that are independent of each other, and branches.

A scan, or a ``while`` that only counts, whose steps compute each element from the same element of what they carry, is
one ordered loop in one kernel: nothing is stored between two steps but what the steps give as results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tlir.ir.graph import Body, Node, Ref
from tlir.ir.tensor import Tensor
from tlir.ir.types import BOOL, DType
from tlir.kernel import index as ix
from tlir.kernel.index import Index, flatten
from tlir.kernel.ir import Value
from tlir.passes.lower import elementwise, shape
from tlir.passes.lower.emitter import Compute, Emitter, Frame, Given, Refused, Scope
from tlir.passes.lower.places import Place
from tlir.passes.lower.words import integer_word, is_splat, word_at

_STEP_OPS = elementwise.NAMES | shape.VIEWS | {"input", "constant", "iota", "bitcast_convert", "case"}


def region_reason(region: Body) -> str | None:
    """Why a region's results are not computed element by element; None if they may be."""
    for node in region.nodes:
        if node.op not in _STEP_OPS:
            return f"its region holds {node.op}"
        if node.op == "constant" and not is_splat(node.attrs["value"]):
            return "its region holds an array of constants"
        if node.op == "bitcast_convert" and elementwise.bitcast_reason(Frame(region), node):
            return "its region takes words apart or joins them"
        if node.inputs and (
            why := elementwise.element_reason(node.op, node.attrs, region.type_of(node.inputs[0]).dtype)
        ):
            return f"its region holds {node.op}: {why}"
        if node.op == "case" and (why := case_reason(region, node)) is not None:
            return why
    return None


def _in_order(emitter: Emitter, frame: Frame, outputs: Sequence[Ref], shape: Sequence[int], place: Place) -> None:
    """Compute the elementwise operations that outputs of this shape come from, in the graph's order, so that no long
    chain is followed at once."""
    body = frame.body
    waiting, seen = list(outputs), set(outputs)
    while waiting:
        for ref in body.nodes[waiting.pop().node].inputs:
            if ref not in seen:
                seen.add(ref)
                waiting.append(ref)
    for ref in sorted(seen):
        own = body.type_of(ref).shape
        if body.nodes[ref.node].op in elementwise.NAMES and own in ((), tuple(shape)):
            emitter.element(frame, ref, place if own else ())


# ---- case -----------------------------------------------------------------------------------------------------------


def case_reason(body: Body, node: Node) -> str | None:
    """Why the node has no kernel, if it has none."""
    index = body.type_of(node.inputs[0]).dtype
    if len(node.regions) > 1 << (index.bits - index.is_signed):
        return "it has more regions than its index has values"
    return next((why for region in node.regions if (why := region_reason(region)) is not None), None)


def _case(emitter: Emitter, frame: Frame, node: Node, result: int, place: Place) -> Value:
    index, *operands = node.inputs
    dtype = node.types[result].dtype

    def given(position: int) -> Given:
        """An operand, computed once and before the branch: in each block anew, cases that follow each other would grow
        exponentially. Where a block reads it under guards of its own it may lie outside of its buffer elsewhere."""

        def element(emitter: Emitter, inner: Place) -> Value:
            outside, active = emitter.branching[id(frame), node.id]
            with emitter.within(outside if emitter.active == active else emitter.current):
                return emitter.element(frame, operands[position], inner)

        return element

    def taken(number: int) -> Value:
        region = node.regions[number]
        known = emitter.regions.get((id(frame), node.id, number))
        if known is None:
            inputs = {Ref(node_id): given(k) for k, node_id in enumerate(region.input_ids)}
            known = Frame(region, inputs.get, outermost=False)
            emitter.regions[id(frame), node.id, number] = known
        _in_order(emitter, known, [region.outputs[result]], node.types[result].shape, place)
        return emitter.element(known, region.outputs[result], place)

    def among(number: int) -> Value:
        if number == len(node.regions) - 1:
            return taken(number)
        here = emitter.apply(
            "compare",
            (chosen, emitter.literal(chosen.dtype, integer_word(chosen.dtype, number))),
            BOOL,
            {"comparison_direction": "EQ"},
        )
        return emitter.either(here, lambda: taken(number), lambda: among(number + 1), dtype)

    chosen = emitter.element(frame, index, ())
    emitter.branching[id(frame), node.id] = emitter.current, emitter.active
    return among(0)


# ---- loops ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recurrence:
    """A loop of ``length`` steps: what the inputs and the outputs of its body are.

    The body's inputs are the operands ``given``, then the carried ones ``start``, then a slice of each of ``stacked``.
    """

    node: Node
    body: Body
    length: int
    given: tuple[Ref, ...]
    start: tuple[Ref, ...]
    stacked: tuple[Ref, ...]
    reverse: bool = False

    def step_index(self, counter: Index) -> Index:
        return ix.total([(-1, counter)], self.length - 1) if self.reverse else counter


def recurrence(body: Body, node: Node) -> Recurrence | str:
    """The loop that a node is, or why it is none of a known number of steps over independent elements."""
    if node.op == "scan":
        consts, carries = node.attrs["num_consts"], node.attrs["num_carry"]
        parts = node.inputs[:consts], node.inputs[consts : consts + carries], node.inputs[consts + carries :]
        region = node.regions[0]
        found = Recurrence(node, region, node.attrs["length"], *parts, node.attrs.get("reverse", False))
    else:
        length = trip_count(body, node)
        if length is None:
            return "data decides how many steps it takes"
        found = Recurrence(node, node.regions[1], length, (), node.inputs, ())
    return region_reason(found.body) or found


class _More(Exception):
    """One more carried value is needed to compute those of a kernel."""

    def __init__(self, position: int) -> None:
        self.position = position


def result_groups(loop: Recurrence) -> list[tuple[int, ...]]:
    """The results that one kernel fills: those of equal shape, a step's slice of a stacked one counting."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for k, ref in enumerate(loop.body.outputs):
        groups.setdefault(loop.body.type_of(ref).shape, []).append(k)
    return [tuple(group) for group in groups.values()]


def emit_loop(make: Callable[[], tuple[Emitter, Frame]], loop: Recurrence, results: Sequence[int]) -> Emitter:
    """Write the kernel that fills these results of the loop. ``Refused`` where elements depend on other elements."""
    carried = [k for k in results if k < len(loop.start)]
    while True:
        try:
            emitter, frame = make()
            _emit(emitter, frame, loop, results, carried)
            return emitter
        except _More as more:
            carried = sorted({*carried, more.position})


def _emit(emitter: Emitter, frame: Frame, loop: Recurrence, results: Sequence[int], carried: list[int]) -> None:
    body, node = loop.body, loop.node
    space_shape = body.type_of(body.outputs[results[0]]).shape
    buffers = {k: emitter.output(Ref(node.id, k), node.types[k]) for k in results}
    if not all(node.types[k].size for k in results if k < len(loop.start)) or 0 in space_shape:
        return
    place = emitter.space(space_shape)
    outside = emitter.current

    def own_place(of: Sequence[int]) -> Place:
        """Where an iteration of the space finds its element of a value of this shape: a scalar is everyone's."""
        if tuple(of) == space_shape:
            return place
        if not of:
            return ()
        raise Refused("its steps mix shapes")

    start = [
        emitter.element(frame, loop.start[k], own_place(body.input_types[len(loop.given) + k].shape)) for k in carried
    ]

    def step(counter: Index, values: tuple[Value, ...]) -> tuple[Value, ...]:
        known = dict(zip(carried, values, strict=True))
        inputs: dict[Ref, Given] = {}
        for position, node_id in enumerate(body.input_ids):
            inputs[Ref(node_id)] = _input(loop, frame, outside, position, known, own_place, loop.step_index(counter))
        region = Frame(body, inputs.get, outermost=False)
        _in_order(emitter, region, [body.outputs[k] for k in sorted({*results, *carried})], space_shape, place)
        for k in results:
            if k >= len(loop.start):
                value = emitter.element(region, body.outputs[k], place)
                at = (loop.step_index(counter), *place)
                emitter.store(buffers[k], flatten(at, node.types[k].shape), value)
        return tuple(
            emitter.element(region, body.outputs[k], own_place(body.type_of(body.outputs[k]).shape)) for k in carried
        )

    ends = emitter.loop(loop.length, start, step, barrier=True)
    for k, value in zip(carried, ends, strict=True):
        if k in results:
            emitter.store(buffers[k], flatten(place, node.types[k].shape), value)


def _input(
    loop: Recurrence,
    frame: Frame,
    outside: Scope,
    position: int,
    known: dict[int, Value],
    own_place: Callable[[Sequence[int]], Place],
    step: Index,
) -> Given:
    """How the elements of an input of the body come about in one step."""

    def given(emitter: Emitter, place: Place) -> Value:
        if position < len(loop.given):
            with emitter.within(outside):
                return emitter.element(frame, loop.given[position], place)
        k = position - len(loop.given)
        if k >= len(loop.start):
            return emitter.element(frame, loop.stacked[k - len(loop.start)], (step, *place))
        if place != own_place(loop.body.input_types[position].shape):
            raise Refused("an element of a step depends on other elements")
        if k not in known:
            raise _More(k)
        return known[k]

    return given


# ---- counting -------------------------------------------------------------------------------------------------------


def trip_count(body: Body, node: Node) -> int | None:
    """How many steps a ``while`` takes whose condition compares a counter with a constant; None for any other."""
    condition = node.regions[0]
    test = condition.nodes[condition.outputs[0].node]
    if test.op != "compare":
        return None
    left, right = (_counted(body, node, condition, ref) for ref in test.inputs)
    direction = test.attrs["comparison_direction"]
    if left is None or right is None:
        return None
    (first, by), (limit, other) = left, right
    if other and not by:
        (first, by), (limit, other) = (limit, other), (first, by)
        direction = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE"}.get(direction, direction)
    if other or not by:
        return None
    dtype = condition.type_of(test.inputs[0]).dtype
    strict = {"LT": 1, "LE": 0} if by > 0 else {"GT": 1, "GE": 0}
    if direction not in strict:
        return None
    distance = (limit - first) * (1 if by > 0 else -1) - strict[direction]
    steps = 0 if distance < 0 else distance // abs(by) + 1
    end = first + steps * by
    least = -(1 << (dtype.bits - 1)) if dtype.is_signed else 0
    # a counter that would wrap around before it reaches the limit goes on
    return steps if least <= end < least + (1 << dtype.bits) else None


def _counted(body: Body, node: Node, condition: Body, ref: Ref) -> tuple[int, int] | None:
    """The value of an integer scalar of the condition at the first step and what each step adds to it, both known."""
    at = condition.nodes[ref.node]
    if at.op == "constant":
        value = _constant(at)
        return None if value is None else (value, 0)
    if at.op != "input":
        return None
    position = condition.input_ids.index(ref.node)
    first = _constant(body.nodes[node.inputs[position].node])
    step = node.regions[1]
    if first is None:
        return None
    after = step.outputs[position]
    own = Ref(step.input_ids[position])
    if after == own:
        return first, 0
    update = step.nodes[after.node]
    if update.op not in ("add", "subtract") or len(update.inputs) != 2:
        return None
    left, right = update.inputs
    if update.op == "add" and right == own:
        left, right = right, left
    amount = _constant(step.nodes[right.node]) if left == own else None
    if amount is None:
        return None
    return first, amount if update.op == "add" else -amount


def _constant(node: Node) -> int | None:
    """The value of an integer scalar that is a constant."""
    if node.op != "constant" or not node.type.dtype.is_integer or node.type.size != 1:
        return None
    tensor: Tensor = node.attrs["value"]
    word = word_at(tensor, 0)
    assert isinstance(word, int)
    dtype: DType = tensor.dtype
    return word - (1 << dtype.bits) if dtype.is_signed and word >> (dtype.bits - 1) else word


COMPUTES: dict[str, Compute] = {"case": _case}
COUNTED = ("scan", "while")
"""Operations that may be loops of a known number of steps."""
