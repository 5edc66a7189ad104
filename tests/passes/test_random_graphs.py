"""The random graphs that every device is compared on have what they are meant to have."""

from __future__ import annotations

from functools import cache

import numpy as np
from lower_graphs import SERIES, STEPS, TABLE, random_graph

from tlir.backends.interpreter import run_program
from tlir.backends.reference import evaluate
from tlir.ir.graph import Body, Graph
from tlir.ir.ops import linalg
from tlir.ir.tensor import Tensor
from tlir.ir.verify import type_errors
from tlir.kernel.verify import verify_program
from tlir.passes.lower import LOWERED, PLANS, lower
from tlir.passes.lower.elementwise import NAMES
from tlir.passes.lower.shape import VIEWS

GRAPHS = 500


@cache
def graphs() -> list[tuple[Body, list[Tensor]]]:
    return [random_graph(seed, 12) for seed in range(GRAPHS)]


def test_they_are_well_typed() -> None:
    assert not any(type_errors(Graph(body)) for body, _ in graphs())


def test_every_dtype_rank_and_kind_of_axis_occurs_in_what_is_computed() -> None:
    types = [type for body, _ in graphs() for node in body.nodes if node.inputs for type in node.types]
    assert {type.dtype.name for type in types} >= TABLE.keys()
    assert {type.rank for type in types} >= set(range(6))
    assert {size for type in types for size in type.shape} >= {0, 1, 2, 3}


def test_views_of_views_occur_in_every_order() -> None:
    pairs = {
        (node.op, body.nodes[node.inputs[0].node].op) for body, _ in graphs() for node in body.nodes if node.op in VIEWS
    }
    assert {(outer, inner) for outer, inner in pairs if inner in VIEWS} == {(a, b) for a in VIEWS for b in VIEWS}


def test_operations_of_every_kind_occur() -> None:
    found = {node.op for body, _ in graphs() for node in body.nodes}
    # functions have tests of their own, and loops, branches and what takes several kernels graphs of their own
    matrices = {operation.name for operation in linalg.OPERATIONS}
    assert LOWERED - found <= NAMES | PLANS.keys() | matrices | {"case", "scan", "while", "bitcast_convert"}


def test_operations_that_take_several_kernels_among_others() -> None:
    found = set()
    for seed in range(100):
        body, inputs = random_graph(seed, 8, (*STEPS, *SERIES * 4))
        found |= {node.op for node in body.nodes}
        program = lower(body)
        assert verify_program(program, body).ok
        with np.errstate(all="ignore"):
            expected, results = evaluate(body, inputs), run_program(program, body, inputs)
        assert all(a.same_words(b) for a, b in zip(expected, results, strict=True))
    assert found >= PLANS.keys()


def test_inputs_hold_special_words() -> None:
    found = set()
    for _, inputs in graphs():
        for tensor in inputs:
            if tensor.dtype.name == "float32" and tensor.type.size:
                values = tensor.words.view(np.float32)
                found |= {kind for kind, there in kinds(values).items() if there}
    assert found == set(kinds(np.zeros(1, np.float32)))


def kinds(values: np.ndarray) -> dict[str, bool]:
    """Which kinds of words are among float32 numbers."""
    words = values.view(np.uint32)
    tiny = (np.abs(values) < np.finfo(np.float32).tiny) & (values != 0)
    return {
        "NaN": bool(np.isnan(values).any()),
        "a NaN that is not canonical": bool((np.isnan(values) & (words != 0x7FC00000)).any()),
        "infinity": bool(np.isposinf(values).any()),
        "-infinity": bool(np.isneginf(values).any()),
        "0": bool((words == 0).any()),
        "-0": bool((words == 0x80000000).any()),
        "a subnormal": bool(tiny.any()),
        "the greatest": bool((np.abs(values) == np.finfo(np.float32).max).any()),
        "one": bool((values == 1).any()),
    }
