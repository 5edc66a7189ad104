"""Convolutions, indexing, sorting, windows, control flow and complex numbers: permitted executions stay inside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from bounds_graphs import Builder, numpy_type

from tlir.compare.bounds import POLICIES, Enclosure, enclose, resolve
from tlir.compare.executions import execute
from tlir.ir.graph import Body, Graph, Node, Producer, Ref
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, TensorType
from tlir.ir.verify import type_errors

PRODUCERS = (
    Producer("jax", "0.10.2"),
    Producer("torch", "2.13.0"),
    Producer("jax", "0.10.2", outputs="compiled"),
)
Case = tuple[Builder, tuple[Ref, ...]]


def typed(shape: tuple[int, ...], dtype: str) -> TensorType:
    return TensorType(shape, NAMED[dtype])


def several(build: Builder, op: str, inputs: tuple[Ref, ...], *types: TensorType, **options: Any) -> list[Ref]:
    """A node with several results, or with regions."""
    regions = options.pop("regions", ())
    build.nodes.append(Node(len(build.nodes), op, inputs, options, types, regions=regions))
    return [Ref(len(build.nodes) - 1, k) for k in range(len(types))]


def convolutions(dtype: str) -> Case:
    build = Builder()
    x, w = build.input(typed((1, 2, 6, 5), dtype)), build.input(typed((3, 2, 3, 2), dtype))

    def convolution(data: Ref) -> Ref:
        return build.node(
            "convolution",
            (data, w),
            typed((1, 3, 6, 4), dtype),
            lhs_dimensions=(0, 1, 2, 3),
            rhs_dimensions=(0, 1, 2, 3),
            output_dimensions=(0, 1, 2, 3),
            window_strides=(1, 1),
            padding_low=(1, 0),
            padding_high=(1, 0),
            lhs_dilation=(1, 1),
            rhs_dilation=(1, 1),
            window_reversal=(0, 0),
        )

    return build, (convolution(x), convolution(build.like("tanh", x)))


def places(dtype: str) -> Case:
    build = Builder()
    x = build.input(typed((6, 4), dtype))
    u = build.like("tanh", x)
    indices = build.constant(np.array([[0], [2], [0], [5]], np.int32))

    def top(rows: int, columns: int) -> Ref:
        return build.node(
            "slice",
            (u,),
            typed((rows, columns), dtype),
            start_indices=(0, 0),
            limit_indices=(rows, columns),
            strides=(1, 1),
        )

    outputs = [
        build.like(
            "scatter",
            u,
            indices,
            top(4, 4),
            update_window_dims=(1,),
            inserted_window_dims=(0,),
            input_batching_dims=(),
            scatter_indices_batching_dims=(),
            scatter_dims_to_operand_dims=(0,),
            index_vector_dim=1,
            mode="drop",
            reducer=reducer,
        )
        for reducer in ("add", "replace", "maximum", "minimum")
    ]
    fill = Tensor.from_numpy(np.array(np.nan).astype(numpy_type(dtype)))
    outputs.append(
        build.node(
            "gather",
            (u, indices),
            typed((4, 4), dtype),
            offset_dims=(1,),
            collapsed_slice_dims=(0,),
            operand_batching_dims=(),
            start_indices_batching_dims=(),
            start_index_map=(0,),
            index_vector_dim=1,
            slice_sizes=(1, 4),
            mode="fill",
            fill_value=fill,
        )
    )
    zero, one, three = (build.constant(np.int32(k)) for k in (0, 1, 3))
    part = build.node("dynamic_slice", (u, one, one), typed((2, 2), dtype), slice_sizes=(2, 2))
    outputs += [part, build.like("dynamic_update_slice", u, part, three, zero)]
    outputs.append(
        build.like(
            "select_and_scatter",
            x,
            top(3, 2),
            select="GE",
            window_dimensions=(2, 2),
            window_strides=(2, 2),
            padding_low=(0, 0),
            padding_high=(0, 0),
        )
    )
    return build, tuple(outputs)


def orders(dtype: str) -> Case:
    build = Builder()
    x = build.input(typed((6, 4), dtype))
    u = build.like("tanh", x)
    whole = typed((6, 4), "int32")
    outputs = several(build, "top_k", (u,), typed((6, 2), dtype), typed((6, 2), "int32"), k=2, dimension=1)
    counted = build.node("iota", (), whole, iota_dimension=1)
    types = (build.type(u), whole, build.type(x))
    outputs += several(build, "sort", (u, counted, x), *types, dimension=1, num_keys=1, descending=True)
    for reducer in ("add", "maximum", "logaddexp", "multiply"):
        outputs += [
            build.like("cumulative", u, reducer=reducer, dimension=0, reverse=turned) for turned in (False, True)
        ]
    return build, tuple(outputs)


def control(dtype: str) -> Case:
    build = Builder()
    x = build.input(typed((5, 3), dtype))
    u = build.like("exponential", x)
    row = build.node("slice", (u,), typed((1, 3), dtype), start_indices=(0, 0), limit_indices=(1, 3), strides=(1, 1))
    row = build.node("reshape", (row,), typed((3,), dtype))

    def region(make: Callable[[Builder, list[Ref]], tuple[Ref, ...]], count: int) -> Body:
        inner = Builder()
        given = [inner.input(typed((3,), dtype)) for _ in range(count)]
        outputs = make(inner, given)
        return Body(tuple(inner.nodes), tuple(inner.inputs), outputs)

    def total(inner: Builder, value: Ref, limit: float) -> Ref:
        sum_ = inner.reduce(value, "add", 0)
        return inner.compare(sum_, inner.filled(sum_, limit), "LT")

    step = region(lambda b, given: (b.like("add", b.like("multiply", *given), b.like("tanh", given[1])), given[0]), 2)
    types = (typed((3,), dtype), typed((5, 3), dtype))
    scanned = several(
        build, "scan", (row, u), *types, regions=(step,), length=5, num_consts=0, num_carry=1, reverse=True
    )
    going = region(lambda b, given: (total(b, given[0], 30.0),), 1)

    def grow(inner: Builder, given: list[Ref]) -> tuple[Ref, ...]:
        larger = inner.like("multiply", given[0], inner.filled(given[0], 1.3))
        return (inner.like("add", larger, inner.filled(given[0], 0.5)),)

    grown = region(grow, 1)
    looped = several(build, "while", (scanned[0],), types[0], regions=(going, grown))
    branches = tuple(
        region(lambda b, given, op=op: (b.like(op, *given * (2 if op == "multiply" else 1)),), 1)
        for op in ("negate", "multiply")
    )
    chosen = several(build, "case", (total(build, row, 3.0), row), types[0], regions=branches)
    return build, (*scanned, *looped, *chosen)


def complexes(dtype: str) -> Case:
    pair = {"float32": "complex64", "float64": "complex128"}[dtype]
    build = Builder()
    x, y = build.input(typed((4, 4), dtype)), build.input(typed((4, 4), dtype))
    z = build.node("complex", (x, build.like("tanh", y)), typed((4, 4), pair))
    product = build.dot(z, z)
    scaled = build.like("multiply", z, product)
    differs = build.compare(scaled, z, "NE")
    outputs = [
        product,
        scaled,
        build.like("divide", scaled, z),
        build.node("abs", (scaled,), typed((4, 4), dtype)),
        build.node("real", (scaled,), typed((4, 4), dtype)),
        build.node("imag", (scaled,), typed((4, 4), dtype)),
        build.reduce(scaled, "add", 1),
        build.like("conjugate", scaled),
        build.like("subtract", scaled, z),
        differs,
        build.node("transpose", (scaled,), typed((4, 4), pair), permutation=(1, 0)),
        build.node("select", (differs, scaled, z), typed((4, 4), pair)),
        build.like("cumulative", scaled, reducer="add", dimension=0),
        build.convert(scaled, dtype),
        build.like("exponential", z),
        build.node("fft", (z,), typed((4, 4), pair), fft_type="FFT", fft_length=(4,)),
    ]
    return build, tuple(outputs)


FLOATS = ("float32", "float64", "float16", "bfloat16")
CASES = [(make, dtype) for make in (convolutions, places, orders, control) for dtype in FLOATS]
CASES += [(complexes, dtype) for dtype in ("float32", "float64")]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("make", "dtype"), CASES, ids=[f"{make.__name__}-{dtype}" for make, dtype in CASES])
def test_executions_stay_inside(make: Callable[[str], Case], dtype: str, policy: str) -> None:
    build, outputs = make(dtype)
    for producer in PRODUCERS:
        graph: Graph = build.graph(*outputs, producer=producer)
        assert type_errors(graph) == []
        rng = np.random.default_rng(1)
        inputs = [
            Tensor.from_numpy(rng.normal(size=type.shape).astype(numpy_type(dtype))) for type in graph.body.input_types
        ]
        freedoms = resolve(policy, producer)
        kept: dict[int, tuple[Enclosure, ...]] = {}
        enclose(graph.body, inputs, freedoms, lambda node, made, kept=kept: kept.__setitem__(node.id, made))
        for seed in range(3):

            def check(node: Node, tensors: tuple[Tensor, ...], kept: dict[int, Any] = kept) -> None:
                for tensor, enclosure in zip(tensors, kept[node.id], strict=True):
                    assert enclosure.lo.shape == enclosure.tag.shape == enclosure.values.lo.shape
                    assert enclosure.contains(enclosure.tensor).all(), node
                    assert enclosure.contains(tensor).all(), node

            execute(graph.body, inputs, freedoms, seed, check)


def test_a_loop_whose_end_is_open_gives_the_union_and_says_so() -> None:
    build, outputs = control("float32")
    graph = build.graph(outputs[2], producer=replace(PRODUCERS[1]))
    inputs = [Tensor.from_numpy(np.zeros((5, 3), np.float32))]
    (decided,), _ = enclose(graph.body, inputs, resolve("reorder"))
    assert not decided.reasons.any()
    # a total of 0.6 up to rounding is above float32's 0.6 in some orders only
    inner = Builder()
    x = inner.input(typed((3,), "float32"))
    loop = Builder()
    given = loop.input(typed((3,), "float32"))
    total = inner.reduce(x, "add", 0)
    going = Body(
        (*inner.nodes, Node(2, "constant", (), {"value": Tensor.from_numpy(np.float32(0.6))}, (typed((), "float32"),)),
         Node(3, "compare", (total, Ref(2)), {"comparison_direction": "LE"}, (typed((), "bool"),))),
        (0,),
        (Ref(3),),
    )  # fmt: skip
    body = Builder()
    v = body.input(typed((3,), "float32"))
    grown = Body((*body.nodes, Node(1, "add", (v, v), {}, (typed((3,), "float32"),))), (0,), (Ref(1),))
    (result,) = several(loop, "while", (given,), typed((3,), "float32"), regions=(going, grown))
    array = np.array([0.1, 0.2, 0.3], np.float32)
    (open_end,), reasons = enclose(loop.graph(result).body, [Tensor.from_numpy(array)], resolve("reorder"))
    assert [reason.text for reason in reasons.entries if reason.kind == "branch"][-1] == "how often a loop runs"
    assert open_end.reasons.all()
    for number in (1, 2):
        assert open_end.contains(Tensor.from_numpy(array * np.float32(number))).all()
    assert not open_end.contains(Tensor.from_numpy(array * np.float32(4))).any()
