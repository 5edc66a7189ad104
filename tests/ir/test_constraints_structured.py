"""One ill-typed node for every numbered constraint of structured operations and of special functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tlir.ir.graph import Body, Graph, Node, Ref
from tlir.ir.ops import OPERATIONS, Accumulate
from tlir.ir.tensor import Tensor
from tlir.ir.types import TensorType, parse_dtype
from tlir.ir.verify import type_errors, verify_structure

FAMILIES = ("indexing", "sorting", "windows", "control", "special", "transforms", "linalg")

Row = tuple[str, str, dict[str, Any], tuple[Body, ...]]


def parse(text: str) -> tuple[TensorType, ...]:
    """Types such as ``float32[2,3] int32[]``."""
    found = re.findall(r"([a-z0-9]+)\[([0-9,]*)\]", text)
    return tuple(TensorType(tuple(int(n) for n in sizes.split(",") if n), parse_dtype(name)) for name, sizes in found)


def graph_of(op: str, operands: str, results: str, attrs: dict[str, Any], regions: Sequence[Body] = ()) -> Graph:
    nodes = [Node(k, "input", (), {}, (type,)) for k, type in enumerate(parse(operands))]
    count = len(nodes)
    refs = tuple(Ref(k) for k in range(count))
    nodes.append(Node(count, op, refs, attrs, parse(results), regions=tuple(regions)))
    return Graph(Body(tuple(nodes), tuple(range(count)), ()))


def region(inputs: str, *outputs: int) -> Body:
    """A region that returns some of its inputs."""
    nodes = tuple(Node(k, "input", (), {}, (type,)) for k, type in enumerate(parse(inputs)))
    return Body(nodes, tuple(range(len(nodes))), tuple(Ref(k) for k in outputs))


def gather(**changes: Any) -> dict[str, Any]:
    return {
        "offset_dims": (1,),
        "collapsed_slice_dims": (0,),
        "operand_batching_dims": (),
        "start_indices_batching_dims": (),
        "start_index_map": (0,),
        "index_vector_dim": 1,
        "slice_sizes": (1, 3),
        "mode": "clip",
    } | changes


def scatter(**changes: Any) -> dict[str, Any]:
    return {
        "update_window_dims": (1,),
        "inserted_window_dims": (0,),
        "input_batching_dims": (),
        "scatter_indices_batching_dims": (),
        "scatter_dims_to_operand_dims": (0,),
        "index_vector_dim": 1,
        "mode": "drop",
        "reducer": "add",
    } | changes


def window(**changes: Any) -> dict[str, Any]:
    return {
        "reducer": "add",
        "window_dimensions": (2,),
        "window_strides": (1,),
        "base_dilations": (1,),
        "window_dilations": (1,),
        "padding_low": (0,),
        "padding_high": (0,),
    } | changes


def pool(**changes: Any) -> dict[str, Any]:
    ones = {"window_dimensions": (2,), "window_strides": (1,), "padding_low": (0,), "padding_high": (0,)}
    return {"select": "GE"} | ones | changes


def convolution(**changes: Any) -> dict[str, Any]:
    return {
        "lhs_dimensions": (0, 1, 2),
        "rhs_dimensions": (0, 1, 2),
        "output_dimensions": (0, 1, 2),
        "window_strides": (1,),
        "padding_low": (0,),
        "padding_high": (0,),
        "lhs_dilation": (1,),
        "rhs_dilation": (1,),
        "window_reversal": (0,),
    } | changes


def scan(**changes: Any) -> dict[str, Any]:
    return {"length": 4, "num_consts": 1, "num_carry": 1} | changes


SLICE = {"slice_sizes": (2,)}
GATHER = ("float32[4,3] int32[5,1]", "float32[5,3]")
SCATTER = ("float32[4,3] int32[5,1] float32[5,3]", "float32[4,3]")
CONVOLUTION = ("float32[2,3,8] float32[4,3,2]", "float32[2,4,7]")
LOOP = "float32[] int32[]"
TRUE = region("float32[] int32[] bool[]", 2)
STEP = region("float32[] float32[] float32[2]", 0, 2)
FLOAT16 = Tensor.from_numpy(np.float16(0))

SQUARE, BAND = "float32[2,3,3]", "float32[2,3]"
TRIANGULAR = {"left_side": True, "lower": True}

GOOD: dict[str, Row] = {
    "dynamic_slice": ("float32[4] int32[]", "float32[2]", SLICE, ()),
    "dynamic_update_slice": ("float32[4] float32[2] int32[]", "float32[4]", {}, ()),
    "gather": (*GATHER, gather(), ()),
    "scatter": (*SCATTER, scatter(), ()),
    "sort": ("float32[4] int32[4]", "float32[4] int32[4]", {"dimension": 0}, ()),
    "top_k": ("float32[4]", "float32[2] int32[2]", {"dimension": 0, "k": 2}, ()),
    "cumulative": ("float32[4]", "float32[4]", {"reducer": "add", "dimension": 0}, ()),
    "reduce_window": ("float32[4]", "float32[3]", window(), ()),
    "select_and_scatter": ("float32[4] float32[3]", "float32[4]", pool(), ()),
    "convolution": (*CONVOLUTION, convolution(), ()),
    "while": (LOOP, LOOP, {}, (Body((), (), ()), Body((), (), ()))),
    "case": ("int32[] float32[]", "float32[]", {}, (region("float32[]", 0), region("float32[]", 0))),
    "scan": ("float32[] float32[] float32[4,2]", "float32[] float32[4,2]", scan(), (STEP,)),
    "cholesky": (SQUARE, SQUARE, {}, ()),
    "triangular_solve": (f"{SQUARE} float32[2,3,5]", "float32[2,3,5]", TRIANGULAR, ()),
    "lu": ("float32[2,3,4]", "float32[2,3,4] int32[2,3] int32[2,3]", {}, ()),
    "geqrf": ("float32[2,3,4]", "float32[2,3,4] float32[2,3]", {}, ()),
    "householder_product": ("float32[2,4,3] float32[2,2]", "float32[2,4,3]", {}, ()),
    "tridiagonal_solve": (f"{BAND} {BAND} {BAND} float32[2,3,5]", "float32[2,3,5]", {}, ()),
    "eigh": ("complex64[2,3,3]", "float32[2,3] complex64[2,3,3]", {}, ()),
    "svd": ("complex64[2,3,4]", "complex64[2,3,3] float32[2,3] complex64[2,3,4]", {}, ()),
    "fft": ("complex64[2,4]", "complex64[2,4]", {"fft_type": "FFT", "fft_length": (4,)}, ()),
}


def _condition(inputs: str, answer: str) -> Body:
    """A region that returns a constant of type ``answer``."""
    nodes = [Node(k, "input", (), {}, (type,)) for k, type in enumerate(parse(inputs))]
    (type,) = parse(answer)
    zeros = Tensor(type, np.zeros(type.shape, type.dtype.word_dtype))
    nodes.append(Node(len(nodes), "constant", (), {"value": zeros}, (type,)))
    return Body(tuple(nodes), tuple(range(len(nodes) - 1)), (Ref(len(nodes) - 1),))


GOOD["while"] = (LOOP, LOOP, {}, (_condition(LOOP, "bool[]"), region(LOOP, 0, 1)))

BAD: dict[tuple[str, str], Row] = {
    ("dynamic_slice", "C1"): ("float32[4] int32[] int32[]", "float32[2]", SLICE, ()),
    ("dynamic_slice", "C2"): ("float32[4] float32[]", "float32[2]", SLICE, ()),
    ("dynamic_slice", "C3"): ("float32[4] int32[]", "float32[5]", {"slice_sizes": (5,)}, ()),
    ("dynamic_update_slice", "C1"): ("float32[4] float32[2] int32[1]", "float32[4]", {}, ()),
    ("dynamic_update_slice", "C2"): ("float32[4,4] float32[2,2] int32[] int64[]", "float32[4,4]", {}, ()),
    ("dynamic_update_slice", "C3"): ("float32[4] float64[2] int32[]", "float32[4]", {}, ()),
    ("gather", "C1"): ("float32[4,3] float32[5,1]", "float32[5,3]", gather(), ()),
    ("gather", "C2"): ("float32[4,3] int32[5,2]", "float32[5,3]", gather(), ()),
    ("gather", "C3"): (*GATHER, gather(collapsed_slice_dims=(2,)), ()),
    ("gather", "C4"): (*GATHER, gather(operand_batching_dims=(1,), start_indices_batching_dims=()), ()),
    ("gather", "C5"): (*GATHER, gather(slice_sizes=(2, 3)), ()),
    ("gather", "C6"): (*GATHER, gather(offset_dims=(2,)), ()),
    ("gather", "C7"): (*GATHER, gather(mode="fill", fill_value=FLOAT16), ()),
    ("scatter", "C1"): ("float32[4,3] bool[5,1] float32[5,3]", "float32[4,3]", scatter(), ()),
    ("scatter", "C2"): (*SCATTER, scatter(index_vector_dim=3), ()),
    ("scatter", "C3"): (*SCATTER, scatter(inserted_window_dims=(7,)), ()),
    ("scatter", "C4"): (*SCATTER, scatter(scatter_indices_batching_dims=(0,)), ()),
    ("scatter", "C5"): ("float32[4,3] int32[5,1] float32[5,4]", "float32[4,3]", scatter(), ()),
    ("scatter", "C6"): ("float32[4,3] int32[5,1] float32[6,3]", "float32[4,3]", scatter(), ()),
    ("scatter", "C7"): ("float32[4,3] int32[5,1] int32[5,3]", "float32[4,3]", scatter(), ()),
    ("scatter", "C8"): ("bool[4,3] int32[5,1] bool[5,3]", "bool[4,3]", scatter(), ()),
    ("sort", "C1"): ("float32[4] int32[5]", "float32[4] int32[5]", {"dimension": 0}, ()),
    ("sort", "C2"): ("float32[4]", "float32[4]", {"dimension": 1}, ()),
    ("sort", "C3"): ("float32[4]", "float32[4]", {"dimension": 0, "num_keys": 2}, ()),
    ("top_k", "C1"): ("float32[4]", "float32[2] int32[2]", {"dimension": 1, "k": 2}, ()),
    ("top_k", "C2"): ("complex64[4]", "complex64[2] int32[2]", {"dimension": 0, "k": 2}, ()),
    ("top_k", "C3"): ("float32[4]", "float32[5] int32[5]", {"dimension": 0, "k": 5}, ()),
    ("top_k", "C4"): ("float32[4]", "float32[2] float32[2]", {"dimension": 0, "k": 2}, ()),
    ("cumulative", "C1"): ("float32[4]", "float32[4]", {"reducer": "add", "dimension": 1}, ()),
    ("cumulative", "C2"): ("bool[4]", "bool[4]", {"reducer": "add", "dimension": 0}, ()),
    ("cumulative", "C3"): (
        "float32[4]",
        "float32[4]",
        {"reducer": "add", "dimension": 0, "accumulate": Accumulate(parse("int32[]")[0].dtype)},
        (),
    ),
    ("cumulative", "C4"): (
        "float32[4]",
        "float32[4]",
        {"reducer": "add", "dimension": 0, "accumulate": Accumulate(order="pairwise")},
        (),
    ),
    ("reduce_window", "C1"): ("float32[4]", "float32[3]", window(padding_low=(0, 0)), ()),
    ("reduce_window", "C2"): ("float32[4]", "float32[3]", window(reducer="and"), ()),
    ("reduce_window", "C3"): (
        "float32[4]",
        "float32[3]",
        window(accumulate=Accumulate(parse("complex64[]")[0].dtype)),
        (),
    ),
    ("reduce_window", "C4"): ("float32[4]", "float32[3]", window(reducer="maximum", accumulate=Accumulate()), ()),
    ("select_and_scatter", "C1"): ("float32[4] float32[3]", "float32[4]", pool(window_strides=()), ()),
    ("select_and_scatter", "C2"): ("float32[4] float64[3]", "float32[4]", pool(), ()),
    ("select_and_scatter", "C3"): ("float32[4] float32[4]", "float32[4]", pool(), ()),
    ("convolution", "C1"): (*CONVOLUTION, convolution(lhs_dimensions=(0, 1, 1)), ()),
    ("convolution", "C2"): (*CONVOLUTION, convolution(rhs_dilation=(1, 1)), ()),
    ("convolution", "C3"): (*CONVOLUTION, convolution(feature_group_count=2), ()),
    ("convolution", "C4"): ("float32[2,3,8] float64[4,3,2]", "float32[2,4,7]", convolution(), ()),
    ("convolution", "C5"): ("float32[2,3,8] float32[4,3,2]", "int32[2,4,7]", convolution(), ()),
    ("convolution", "C6"): (*CONVOLUTION, convolution(accumulate=Accumulate(order="pairwise", fma=True)), ()),
    ("while", "C1"): (LOOP, LOOP, {}, (_condition("float32[]", "bool[]"), region(LOOP, 0, 1))),
    ("while", "C2"): (LOOP, LOOP, {}, (_condition(LOOP, "bool[1]"), region(LOOP, 0, 1))),
    ("while", "C3"): (LOOP, LOOP, {}, (_condition(LOOP, "bool[]"), region(LOOP, 1, 0))),
    ("case", "C1"): ("float32[] float32[]", "float32[]", {}, (region("float32[]", 0),)),
    ("case", "C2"): ("int32[] float32[]", "float32[]", {}, ()),
    ("case", "C3"): ("int32[] float32[]", "float32[]", {}, (region("float32[2]", 0),)),
    ("case", "C4"): (
        "int32[] float32[] float32[2]",
        "float32[]",
        {},
        (region("float32[] float32[2]", 0), region("float32[] float32[2]", 1)),
    ),
    ("scan", "C1"): ("float32[] float32[] float32[4,2]", "float32[] float32[4,2]", scan(num_consts=3), (STEP,)),
    ("scan", "C2"): ("float32[] float32[] float32[3,2]", "float32[] float32[4,2]", scan(), (STEP,)),
    ("scan", "C3"): (
        "float32[] float32[] float32[4,2]",
        "float32[] float32[4,2]",
        scan(),
        (region("float32[] float32[] float32[4,2]", 0, 2),),
    ),
    ("scan", "C4"): (
        "float32[] float32[] float32[4,2]",
        "float32[4,2] float32[4]",
        scan(),
        (region("float32[] float32[] float32[2]", 2, 0),),
    ),
}
BAD |= {
    ("cholesky", "C1"): ("float32[2,3,4]", "float32[2,3,4]", {}, ()),
    ("cholesky", "C2"): ("int32[3,3]", "int32[3,3]", {}, ()),
    ("triangular_solve", "C1"): ("float32[3] float32[3,5]", "float32[3,5]", TRIANGULAR, ()),
    ("triangular_solve", "C2"): (f"{SQUARE} float32[2,5,3]", "float32[2,5,3]", TRIANGULAR, ()),
    ("triangular_solve", "C3"): (f"{SQUARE} float64[2,3,5]", "float64[2,3,5]", TRIANGULAR, ()),
    ("lu", "C1"): ("float32[3]", "float32[3] int32[3] int32[3]", {}, ()),
    ("lu", "C2"): ("int32[3,3]", "int32[3,3] int32[3] int32[3]", {}, ()),
    ("lu", "C3"): ("float32[3,3]", "float32[3,3] int32[3] int64[3]", {}, ()),
    ("geqrf", "C1"): ("float32[3]", "float32[3] float32[3]", {}, ()),
    ("geqrf", "C2"): ("bool[3,3]", "bool[3,3] bool[3]", {}, ()),
    ("householder_product", "C1"): ("float32[3,4] float32[2]", "float32[3,4]", {}, ()),
    ("householder_product", "C2"): ("float32[4,3] float32[4]", "float32[4,3]", {}, ()),
    ("householder_product", "C3"): ("float32[4,3] complex64[2]", "float32[4,3]", {}, ()),
    ("tridiagonal_solve", "C1"): (f"{BAND} {BAND} float32[2,2] float32[2,3,5]", "float32[2,3,5]", {}, ()),
    ("tridiagonal_solve", "C2"): (f"{BAND} {BAND} float16[2,3] float32[2,3,5]", "float32[2,3,5]", {}, ()),
    ("eigh", "C1"): ("float32[3,4]", "float32[3] float32[3,4]", {}, ()),
    ("eigh", "C2"): ("int32[3,3]", "int32[3] int32[3,3]", {}, ()),
    ("svd", "C1"): ("float32[3]", "float32[3] float32[3] float32[3]", {}, ()),
    ("svd", "C2"): ("int32[3,3]", "int32[3,3] int32[3] int32[3,3]", {}, ()),
    ("fft", "C1"): ("complex64[4]", "complex64[4]", {"fft_type": "FFT", "fft_length": (1, 4)}, ()),
    ("fft", "C2"): ("float32[4]", "float32[4]", {"fft_type": "FFT", "fft_length": (4,)}, ()),
    ("fft", "C3"): ("complex64[4]", "float32[4]", {"fft_type": "IRFFT", "fft_length": (4,)}, ()),
}

for _name, _operation in OPERATIONS.items():
    if _operation.family == "special":
        _rest = "float32[2] " * (len(_operation.operands) - 1)
        GOOD[_name] = (f"{_rest} float32[2]", "float32[2]", {}, ())
        BAD[_name, "C3"] = (f"{_rest} float32[2]".replace("float", "int"), "float32[2]", {}, ())
        if _rest:
            BAD[_name, "C1"] = (f"{_rest} float32[3]", "float32[2]", {}, ())
            BAD[_name, "C2"] = (f"{_rest} float64[2]", "float32[2]", {}, ())


@pytest.mark.parametrize("op", sorted(GOOD))
def test_the_node_that_the_others_vary_is_well_typed(op: str) -> None:
    graph = graph_of(op, *GOOD[op])
    verify_structure(graph)
    assert [str(error) for error in type_errors(graph)] == []


@pytest.mark.parametrize(("op", "rule"), sorted(BAD))
def test_the_constraint_is_named(op: str, rule: str) -> None:
    graph = graph_of(op, *BAD[op, rule])
    verify_structure(graph)
    messages = [error.message for error in type_errors(graph)]
    assert len(messages) == 1
    assert messages[0].endswith(f"(constraint {rule} of {op})")


def test_every_constraint_has_an_ill_typed_node() -> None:
    operations = [operation for operation in OPERATIONS.values() if operation.family in FAMILIES]
    assert set(BAD) == {(operation.name, rule) for operation in operations for rule in operation.constraints}
    assert set(GOOD) == {operation.name for operation in operations}
