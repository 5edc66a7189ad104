"""Large graphs are checked at small shapes of the same structure."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lower_graphs import Builder, random_graph

from tlir.ir.graph import Body, Graph, Node, Ref
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, TensorType
from tlir.ir.verify import type_errors
from tlir.passes.check.lowering import check_lowering, work
from tlir.passes.check.shrink import shrunk

F32 = NAMED["float32"]


def heads(tokens: int = 128, width: int = 512, count: int = 8) -> Body:
    """Self-attention with ``count`` heads, weights being constants, the result cut to its first half."""
    builder = Builder(np.random.default_rng(0))
    random = builder.random
    flat, split = TensorType((4, tokens, width), F32), TensorType((4, tokens, count, width // count), F32)
    x = builder.input(flat)

    def projected(value: Ref) -> Ref:
        words = Tensor.from_numpy(random.standard_normal((width, width)).astype(np.float32))
        weights = builder.add("constant", (), words.type, value=words)
        attrs = {"lhs_contracting_dimensions": (2,), "rhs_contracting_dimensions": (0,)}
        return builder.add("dot_general", (value, weights), flat, **none_batched(), **attrs)

    def none_batched() -> dict[str, Any]:
        return {"lhs_batching_dimensions": (), "rhs_batching_dimensions": ()}

    query, key, value = (builder.add("reshape", (projected(x),), split) for _ in range(3))
    batched = {"lhs_batching_dimensions": (0, 2), "rhs_batching_dimensions": (0, 2)}
    scores_type = TensorType((4, count, tokens, tokens), F32)
    scores = builder.add(
        "dot_general",
        (query, key),
        scores_type,
        **batched,
        lhs_contracting_dimensions=(3,),
        rhs_contracting_dimensions=(3,),
    )
    row = TensorType((4, count, tokens), F32)
    total = builder.add("reduce", (scores,), row, reducer="add", dimensions=(3,))
    below = builder.add("broadcast_in_dim", (total,), scores_type, broadcast_dimensions=(0, 1, 2))
    weights = builder.add("divide", (scores, below), scores_type)
    mixed = builder.add(
        "dot_general",
        (weights, value),
        TensorType((4, count, tokens, width // count), F32),
        lhs_batching_dimensions=(0, 1),
        rhs_batching_dimensions=(0, 2),
        lhs_contracting_dimensions=(3,),
        rhs_contracting_dimensions=(1,),
    )
    turned = builder.add("transpose", (mixed,), split, permutation=(0, 2, 1, 3))
    joined = builder.add("add", (builder.add("reshape", (turned,), flat), x), flat)
    attrs = {"start_indices": (0, 0, 0), "limit_indices": (2, tokens, width), "strides": (1, 1, 1)}
    return builder.body([builder.add("slice", (joined,), TensorType((2, tokens, width), F32), **attrs)])


def test_attention_becomes_small_and_passes() -> None:
    body = heads()
    assert work(body) > 10**8
    check = check_lowering(Graph(body))
    assert check.status == "passed"
    assert "at small shapes of the same structure (input0 float32[4," in check.covered


def test_axes_that_belong_together_still_do() -> None:
    small = shrunk(heads())
    (x,) = small.input_types
    assert x.shape[0] == 4  # the slice takes two of four
    query, key, value, joined = (node.type.shape for node in small.nodes if node.op == "reshape")
    assert query == key
    assert query[:3] == value[:3] == (*x.shape[:2], value[2])
    assert joined == x.shape
    assert prod(value[2:]) == x.shape[2] <= 9
    constants = [node for node in small.nodes if node.op == "constant"]
    assert all(node.type == node.attrs["value"].type for node in constants)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_random_graphs_stay_well_typed(seed: int) -> None:
    body, _ = random_graph(seed, 12)
    small = shrunk(body)
    assert not type_errors(Graph(small))
    assert [node.op for node in small.nodes] == [node.op for node in body.nodes]
    pairs = zip(body.nodes, small.nodes, strict=True)
    assert all(0 <= b <= a or not a for old, new in pairs for a, b in zip(old.type.shape, new.type.shape, strict=True))


def test_what_cannot_become_small_is_said() -> None:
    builder = Builder(np.random.default_rng(0))
    type, longer = TensorType((400_000,), F32), TensorType((400_002,), F32)
    x, value = builder.input(type), builder.input(TensorType((), F32))
    attrs = {"edge_padding_low": (1,), "edge_padding_high": (1,), "interior_padding": (0,)}
    check = check_lowering(Graph(builder.body([builder.add("pad", (x, value), longer, **attrs)])))
    assert check.status == "not applicable"
    assert "small enough" in check.covered


@pytest.mark.parametrize("sizes", [((6, 4), (8, 3)), ((12,), (3, 4)), ((2, 3, 4), (4, 6))])
def test_reshapes_that_split_and_join(sizes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    before, after = (tuple(100 * n if k == 0 else n for k, n in enumerate(shape)) for shape in sizes)
    builder = Builder(np.random.default_rng(0))
    x = builder.input(TensorType(before, F32))
    body = builder.body([builder.add("reshape", (x,), TensorType(after, F32))])
    assert not type_errors(Graph(shrunk(body)))


@pytest.mark.parametrize(
    ("lengths", "small"), [((64, 64, 64), (8, 8, 8)), ((136, 136), (8, 8)), ((68, 68), (4, 4)), ((10007,), (17,))]
)
def test_transforms_of_several_axes(lengths: tuple[int, ...], small: tuple[int, ...]) -> None:
    builder = Builder(np.random.default_rng(0))
    type = TensorType(lengths, NAMED["complex64"])
    transformed = builder.add("fft", (builder.input(type),), type, fft_type="FFT", fft_length=lengths)
    check = check_lowering(Graph(builder.body([transformed])))
    assert check.status == "passed"
    assert str(TensorType(small, type.dtype)) in check.covered


@pytest.mark.parametrize(
    ("size", "count", "small"), [(20_000, 20_000, 40), (20_000, 10_000, 72), (20_000, 19_999, 72), (20_000, 36, 72)]
)
def test_many_greatest_elements(size: int, count: int, small: int) -> None:
    builder = Builder(np.random.default_rng(0))
    types = TensorType((2, count), F32), TensorType((2, count), NAMED["int32"])
    operand = builder.input(TensorType((2, size), F32))
    builder.nodes.append(Node(1, "top_k", (operand,), {"dimension": 1, "k": count}, types))
    flat = builder.add("reshape", (Ref(1),), TensorType((2 * count,), F32))
    check = check_lowering(Graph(builder.body([flat, Ref(1, 1)])))
    assert check.status == "passed"
    assert f"float32[2,{small}]" in check.covered


def test_a_branch_that_is_left_to_the_reference_is_no_work() -> None:
    type, count = TensorType((9, 9), F32), TensorType((), NAMED["int32"])
    region = Builder(np.random.default_rng(0))
    region.nodes.append(Node(1, "eigh", (region.input(type),), {}, (TensorType((9,), F32), type)))
    inside = region.body([Ref(1, 1)])
    builder = Builder(np.random.default_rng(0))
    index, x = builder.input(count), builder.input(type)
    builder.nodes.append(Node(2, "case", (index, x), {}, (type,), regions=(inside, inside)))
    check = check_lowering(Graph(builder.body([builder.add("negate", (Ref(2),), type)])))
    assert check.status == "passed"
    assert "left to the reference: case" in check.covered
