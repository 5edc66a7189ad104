"""Windows: pooling and convolutions on demand; running totals and gradients of pooling as kernels of their own."""

from __future__ import annotations

from collections.abc import Callable

from tlir.ir.graph import Node, Ref
from tlir.ir.ops import Accumulate
from tlir.kernel import index as ix
from tlir.kernel.index import Index, flatten, from_value
from tlir.kernel.ir import Bound, Value
from tlir.passes.lower.accumulation import Terms, accumulate
from tlir.passes.lower.contraction import contract
from tlir.passes.lower.emitter import INT64, Compute, Emit, Emitter, Frame
from tlir.passes.lower.places import Place
from tlir.passes.lower.reduction import beats, compare
from tlir.passes.lower.shape import dilated
from tlir.passes.lower.words import blank_word, identity_word, integer_word


def _reduce_window(emitter: Emitter, frame: Frame, node: Node, result: int, place: Place) -> Value:
    emitter.anchor(frame, node, place, "row")
    attrs, operand, dtype = node.attrs, node.inputs[0], node.type.dtype
    shape = frame.type(operand).shape
    order = attrs.get("accumulate") or Accumulate()
    wide = order.dtype or dtype

    def term(offsets: Place) -> Value:
        bounds: list[Bound] = []
        inner: list[Index] = []
        for axis, (index, offset) in enumerate(zip(place, offsets, strict=True)):
            at = ix.total([(attrs["window_strides"][axis], index), (attrs["window_dilations"][axis], offset)])
            inside, limits = dilated(at, shape[axis], attrs["padding_low"][axis], attrs["base_dilations"][axis])
            inner.append(inside)
            bounds += limits
        element = emitter.choose(
            bounds,
            lambda: emitter.operand(frame, operand, tuple(inner)),
            lambda: emitter.literal(dtype, identity_word(dtype, attrs["reducer"])),
            dtype,
        )
        return emitter.convert(element, wide)

    terms = Terms(emitter, attrs["window_dimensions"], wide, attrs["reducer"], term)
    return emitter.convert(accumulate(terms, order), dtype)


def _convolution(emitter: Emitter, frame: Frame, node: Node, result: int, place: Place) -> Value:
    emitter.anchor(frame, node, place, "contraction")
    attrs = node.attrs
    lhs, rhs = node.inputs
    left, right = frame.type(lhs), frame.type(rhs)
    batch, output, *positions = (place[axis] for axis in attrs["output_dimensions"])
    outputs, inputs, *window = (right.shape[axis] for axis in attrs["rhs_dimensions"])
    images, _, *space = (left.shape[axis] for axis in attrs["lhs_dimensions"])
    groups, batch_groups = attrs.get("feature_group_count", 1), attrs.get("batch_group_count", 1)
    group = ix.quotient(output, max(outputs // max(groups, batch_groups), 1))

    def factors(summed: Place) -> tuple[Value, Value]:
        feature, *offsets = summed
        if batch_groups > 1:
            image, channel = ix.total([(images // batch_groups, group), (1, batch)]), feature
        else:
            image, channel = batch, ix.total([(inputs, group), (1, feature)])
        bounds: list[Bound] = []
        at_left, at_right = [image, channel], [output, feature]
        for axis, (position, offset) in enumerate(zip(positions, offsets, strict=True)):
            at = ix.total([(attrs["window_strides"][axis], position), (attrs["rhs_dilation"][axis], offset)])
            inside, limits = dilated(at, space[axis], attrs["padding_low"][axis], attrs["lhs_dilation"][axis])
            bounds += limits
            at_left.append(inside)
            backward = attrs["window_reversal"][axis]
            at_right.append(ix.total([(-1, offset)], window[axis] - 1) if backward else offset)
        zero = emitter.literal(left.dtype, blank_word(left.dtype))
        value = emitter.choose(
            bounds,
            lambda: emitter.operand(frame, lhs, _placed(at_left, attrs["lhs_dimensions"])),
            lambda: zero,
            left.dtype,
        )
        return value, emitter.operand(frame, rhs, _placed(at_right, attrs["rhs_dimensions"]))

    return contract(emitter, node, [inputs, *window], factors)


def _placed(indices: list[Index], axes: tuple[int, ...]) -> Place:
    """The indices of logical axes at the axes that hold them."""
    by_axis = dict(zip(axes, indices, strict=True))
    return tuple(by_axis[axis] for axis in range(len(axes)))


def _cumulative(emitter: Emitter, frame: Frame, node: Node) -> None:
    attrs, operand, type = node.attrs, node.inputs[0], node.type
    buffer = emitter.output(Ref(node.id), type)
    if not type.size:
        return
    axis, reducer = attrs["dimension"], attrs["reducer"]
    order = attrs.get("accumulate") or Accumulate()
    wide, count = order.dtype or type.dtype, type.shape[axis]
    around = emitter.space([size for a, size in enumerate(type.shape) if a != axis])

    def at(step: Index) -> Place:
        index = ix.total([(-1, step)], count - 1) if attrs.get("reverse", False) else step
        return (*around[:axis], index, *around[axis:])

    def term(step: Index) -> Value:
        return emitter.convert(emitter.element(frame, operand, at(step)), wide)

    def keep(step: Index, total: Value) -> tuple[Value]:
        emitter.store(buffer, flatten(at(step), type.shape), emitter.convert(total, type.dtype))
        return (total,)

    if reducer == "logaddexp":
        first = term(ix.ZERO)
        # the greater of an element and itself: the element, a NaN made the canonical one
        keep(ix.ZERO, canonical := emitter.apply("maximum", (first, first)))

        def following(step: Index, carried: tuple[Value, ...]) -> tuple[Value, ...]:
            here = ix.add(step, 1)
            return keep(here, emitter.apply("log_add_exp", (carried[0], term(here))))

        emitter.loop(count - 1, (canonical,), following)
        return
    start = emitter.literal(wide, identity_word(wide, reducer))
    emitter.loop(count, (start,), lambda step, carried: keep(step, emitter.apply(reducer, (carried[0], term(step)))))


def _select_and_scatter(emitter: Emitter, frame: Frame, node: Node) -> None:
    attrs, type = node.attrs, node.type
    operand, source = node.inputs
    buffer = emitter.output(Ref(node.id), type)
    if not type.size:
        return
    windows, strides, low = attrs["window_dimensions"], attrs["window_strides"], attrs["padding_low"]
    # along these axes every window is one element of its own
    alone = [
        axis
        for axis in range(type.rank)
        if windows[axis] == strides[axis] == 1 and not low[axis] and not attrs["padding_high"][axis]
    ]
    rest = [axis for axis in range(type.rank) if axis not in alone]
    space = dict(zip(alone, emitter.space([type.shape[axis] for axis in alone]), strict=True))
    zero = emitter.literal(type.dtype, integer_word(type.dtype, 0))

    def whole(indices: Place) -> Place:
        by_axis = space | dict(zip(rest, indices, strict=True))
        return tuple(by_axis[axis] for axis in range(type.rank))

    emitter.each(
        [type.shape[axis] for axis in rest],
        lambda indices: emitter.store(buffer, flatten(whole(indices), type.shape), zero),
    )
    direction = "GT" if attrs["select"] == "GE" else "LT"

    def visit(window: Place, nothing: tuple[Value, ...]) -> tuple[Value, ...]:
        """One window: the place of its best element, and what is added there."""

        def candidate(offsets: Place, carried: tuple[Value, ...]) -> tuple[Value, ...]:
            best, chosen = carried
            bounds: list[Bound] = []
            inner = dict(space)
            for axis, index, offset in zip(rest, window, offsets, strict=True):
                inside, limits = dilated(
                    ix.total([(strides[axis], index), (1, offset)]), type.shape[axis], low[axis], 1
                )
                bounds += limits
                inner[axis] = inside
            at = tuple(inner[axis] for axis in range(type.rank))
            value = emitter.choose(bounds, lambda: emitter.element(frame, operand, at), lambda: zero, type.dtype)
            none_yet = compare(emitter, chosen, emitter.literal(INT64, 0), "LT")
            better = emitter.apply("or", (none_yet, beats(emitter, value, best, direction)))
            better = emitter.apply("and", (emitter.holds(bounds), better))
            position = emitter.position(flatten(at, type.shape))
            return (
                emitter.apply("select", (better, value, best), type.dtype),
                emitter.apply("select", (better, position, chosen), INT64),
            )

        none = emitter.literal(INT64, 2**64 - 1)
        _, chosen = _nested(emitter, [windows[axis] for axis in rest], (zero, none), candidate)
        found = compare(emitter, chosen, emitter.literal(INT64, 0), "GE")

        def update() -> None:
            clamped = emitter.apply("maximum", (chosen, emitter.literal(INT64, 0)))
            offset = from_value(clamped, 0, type.size - 1)
            total = emitter.apply("add", (emitter.load(buffer, offset), emitter.element(frame, source, whole(window))))
            emitter.store(buffer, offset, total)

        emitter.only(found, update)
        return nothing

    counts = [frame.type(source).shape[axis] for axis in rest]
    _nested(emitter, counts, (), visit)


Step = Callable[[Place, tuple[Value, ...]], tuple[Value, ...]]


def _nested(emitter: Emitter, extents: list[int], start: tuple[Value, ...], step: Step) -> tuple[Value, ...]:
    """A loop per extent, each inside the one before, around ``step(indices, carried)``."""

    def along(outer: Place, carried: tuple[Value, ...]) -> tuple[Value, ...]:
        if len(outer) == len(extents):
            return step(outer, carried)
        return emitter.loop(extents[len(outer)], carried, lambda index, now: along((*outer, index), now))

    return along((), start)


COMPUTES: dict[str, Compute] = {"reduce_window": _reduce_window, "convolution": _convolution}
EMITS: dict[str, Emit] = {"cumulative": _cumulative, "select_and_scatter": _select_and_scatter}
