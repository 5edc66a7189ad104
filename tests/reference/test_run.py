"""``run``: what it refuses and how it says so, what it observes, and when it lets values go."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tracemalloc
import weakref
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from conformance import evaluate, single, tensor, tensor_type

from tlir.backends import DEVICES, available_memory, run
from tlir.backends.liveness import peak_memory
from tlir.errors import ArtifactError, TlirError, UnsupportedError, UsageError
from tlir.floatlib.rounding import Flags
from tlir.ir.graph import Body, Graph, Node, Ref, Sample
from tlir.ir.tensor import Tensor
from tlir.ir.types import TensorType, parse_dtype

VECTOR = tensor_type("float32[3]")


def sum_of_squares() -> Graph:
    nodes = (
        Node(0, "input", (), {}, (VECTOR,), "x"),
        Node(1, "multiply", (Ref(0), Ref(0)), {}, (VECTOR,)),
        Node(2, "reduce", (Ref(1),), {"reducer": "add", "dimensions": (0,)}, (tensor_type("float32[]"),)),
    )
    return Graph(Body(nodes, (0,), (Ref(2),)), "sum_of_squares")


def vector(*values: float) -> Tensor:
    return Tensor.from_numpy(np.array(values, np.float32))


def refused(kind: type[TlirError], code: str, graph: Graph, *arguments: Any, **options: Any) -> TlirError:
    with pytest.raises(kind) as caught:
        run(graph, *arguments, **options)
    assert caught.value.code == code
    return caught.value


def test_a_graph_runs() -> None:
    assert [output.to_numpy().tolist() for output in run(sum_of_squares(), [vector(1, 2, 3)])] == [14.0]


def test_the_sample_is_what_runs_without_inputs() -> None:
    sample = Sample((vector(1, 2, 4),), (Tensor.from_numpy(np.array(21, np.float32)),))
    graph = replace(sum_of_squares(), samples=(sample,))
    assert run(graph)[0].to_numpy() == 21.0


def test_without_sample_and_inputs() -> None:
    error = refused(UsageError, "TL0602", sum_of_squares())
    assert error.hint == "give the inputs: x: float32[3]"


def test_a_graph_without_inputs_needs_none() -> None:
    graph = single("iota", [], tensor_type("int32[3]"), {"iota_dimension": 0})
    assert run(graph)[0].to_numpy().tolist() == [0, 1, 2]


def test_inputs_that_do_not_fit() -> None:
    graph = sum_of_squares()
    assert refused(UsageError, "TL0601", graph, []).hint == "its inputs are x: float32[3]"
    wrong_shape = refused(UsageError, "TL0601", graph, [vector(1, 2)])
    assert wrong_shape.message == "the input x is float32[3], and float32[2] was given"
    wrong_dtype = refused(UsageError, "TL0601", graph, [Tensor.from_numpy(np.zeros(3))])
    assert wrong_dtype.message == "the input x is float32[3], and float64[3] was given"


def test_ill_typed_graphs() -> None:
    graph = sum_of_squares()
    wrong = Node(1, "multiply", (Ref(0), Ref(0)), {}, (tensor_type("float64[3]"),))
    edited = replace(graph, body=replace(graph.body, nodes=(graph.nodes[0], wrong, graph.nodes[2])))
    error = refused(ArtifactError, "TL0301", edited, [vector(1, 2, 3)])
    assert error.node == "1 multiply"
    assert "insert convert to float64" in (error.hint or "")


def test_devices() -> None:
    graph = sum_of_squares()
    (result,) = run(graph, [vector(1, 2, 3)], device="cpu")
    assert result.same_words(run(graph, [vector(1, 2, 3)])[0])
    unknown = refused(UsageError, "TL0901", graph, [vector(1, 2, 3)], device="tpu")
    assert unknown.hint == "the devices are " + ", ".join(DEVICES)


def test_a_small_artifact_that_asks_for_a_terabyte() -> None:
    graph = single("iota", [], tensor_type(f"int64[{1 << 39}]"), {"iota_dimension": 0})
    error = refused(UnsupportedError, "TL0603", graph)
    assert error.node == "0 iota"
    assert "TiB" in error.message


def test_what_a_region_asks_for_counts() -> None:
    large = tensor_type(f"int64[{1 << 39}]")
    region = Body(
        (
            Node(0, "iota", (), {"iota_dimension": 0}, (large,)),
            Node(1, "reduce", (Ref(0),), {"reducer": "add", "dimensions": (0,)}, (tensor_type("int64[]"),)),
        ),
        (),
        (Ref(1),),
    )
    index = Node(0, "input", (), {}, (tensor_type("int32[]"),))
    node = Node(1, "case", (Ref(0),), {}, (tensor_type("int64[]"),), regions=(region, region))
    graph = Graph(Body((index, node), (0,), (Ref(1),)))
    error = refused(UnsupportedError, "TL0603", graph, [Tensor.from_numpy(np.array(0, np.int32))])
    assert error.node == "1 case"


def test_the_memory_limit_is_the_callers() -> None:
    graph = sum_of_squares()
    error = refused(UnsupportedError, "TL0603", graph, [vector(1, 2, 3)], memory_limit=10)
    assert error.message.endswith("and 10 B are available")
    run(graph, [vector(1, 2, 3)], memory_limit=1000)


def test_memory_is_that_of_values_alive_together() -> None:
    """A chain holds two values at a time, however long it is; a fan holds all of them."""
    type = tensor_type(f"float32[{1 << 20}]")

    def chain(length: int) -> Body:
        nodes = [Node(0, "input", (), {}, (type,))]
        nodes += [Node(k, "negate", (Ref(k - 1),), {}, (type,)) for k in range(1, length)]
        return Body(tuple(nodes), (0,), (Ref(length - 1),))

    def fan(length: int) -> Body:
        nodes = [Node(0, "input", (), {}, (type,))]
        nodes += [Node(k, "negate", (Ref(0),), {}, (type,)) for k in range(1, length)]
        return Body(tuple(nodes), (0,), tuple(Ref(k) for k in range(1, length)))

    short, _ = peak_memory(chain(4))
    long, _ = peak_memory(chain(40))
    wide, node = peak_memory(fan(40))
    assert short == long
    assert wide - long >= 35 * type.nbytes
    assert node is not None
    assert node.id == 39


LARGE = 50_000
ORDER = {"comparison_direction": "LT"}
ARITHMETIC = ["add", "divide", "remainder", "maximum", "next_after"]


@pytest.mark.parametrize(
    ("op", "operands", "result", "attrs"),
    [
        *((op, [name, name], name, {}) for op in ARITHMETIC for name in ("float32", "float64", "bfloat16")),
        *((op, [name, name], name, {}) for op in ("add", "divide", "power") for name in ("int8", "int64")),
        *(("fma", [name] * 3, name, {}) for name in ("float16", "float32")),
        *(("convert", [a], b, {}) for a, b in (("float64", "bfloat16"), ("int64", "float32"), ("float32", "int8"))),
        ("iota", [], "float32", {"iota_dimension": 0}),
        ("compare", ["float64", "float64"], "bool", ORDER),
        ("reduce_precision", ["float32"], "float32", {"exponent_bits": 5, "mantissa_bits": 10}),
    ],
)
def test_the_estimate_is_not_below_what_is_taken(
    op: str, operands: list[str], result: str, attrs: dict[str, Any]
) -> None:
    rng = np.random.default_rng(1)
    given = []
    for name in operands:
        dtype = parse_dtype(name)
        words = rng.integers(0, 1 << dtype.bits, LARGE, dtype=np.uint64, endpoint=False).astype(dtype.word_dtype)
        given.append(Tensor(TensorType((LARGE,), dtype), words))
    graph = single(op, given, tensor_type(f"{result}[{LARGE}]"), attrs)
    run(graph, given)  # tables and modules are loaded once
    tracemalloc.start()
    run(graph, given)
    _, taken = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    estimate, _ = peak_memory(graph.body)
    assert taken <= estimate + 100_000


def test_shapes_beyond_numpy() -> None:
    axes = tensor_type("complex64[" + ",".join(["1"] * 64) + "]")
    graph = single("iota", [], axes, {"iota_dimension": 0})
    assert refused(UnsupportedError, "TL0801", graph).node == "0 iota"
    empty = TensorType((0, *(1 << 40 for _ in range(3))), parse_dtype("float32"))
    assert refused(UnsupportedError, "TL0801", single("iota", [], empty, {"iota_dimension": 0})).node == "0 iota"


def test_64_axes_are_possible() -> None:
    shape = (1,) * 63 + (2,)
    operand = tensor(TensorType(shape, parse_dtype("float32")), [1, 2])
    result = evaluate("reverse", [operand], operand.type, {"dimensions": (63,)})
    assert result.words.reshape(-1).tolist() == [2, 1]
    total = evaluate(
        "reduce", [operand], TensorType((), operand.dtype), {"reducer": "add", "dimensions": tuple(range(64))}
    )
    assert int(total.words) == 3


def test_available_memory_is_plausible() -> None:
    assert 1 << 24 < available_memory() < 1 << 62


def test_nodes_are_observed_in_order() -> None:
    seen: list[tuple[int, list[float]]] = []
    run(
        sum_of_squares(),
        [vector(1, 2, 3)],
        observe=lambda node, results: seen.append((node.id, np.atleast_1d(results[0].to_numpy()).tolist())),
    )
    assert seen == [(0, [1, 2, 3]), (1, [1, 4, 9]), (2, [14])]


def test_flags_come_with_their_nodes() -> None:
    seen: list[tuple[str, list[int]]] = []
    run(
        sum_of_squares(),
        [vector(3e38, 1, 0.1)],
        flags=lambda node, array: seen.append((node.op, np.atleast_1d(array).tolist())),
    )
    assert seen == [
        ("multiply", [Flags.OVERFLOW | Flags.INEXACT, 0, Flags.INEXACT]),
        ("reduce", [0]),
    ]


def test_values_are_dropped_after_their_last_use() -> None:
    """While a chain runs, what came two nodes before is no longer there."""
    type = tensor_type("float32[3]")
    nodes = [Node(0, "input", (), {}, (type,))]
    nodes += [Node(k, "add", (Ref(k - 1), Ref(k - 1)), {}, (type,)) for k in range(1, 8)]
    graph = Graph(Body(tuple(nodes), (0,), (Ref(7),)))
    made: list[weakref.ref[Any]] = []
    alive: list[int] = []

    def observe(node: Node, results: tuple[Tensor, ...]) -> None:
        if node.id:
            made.append(weakref.ref(results[0].words))
        gc.collect()
        alive.append(sum(words() is not None for words in made))

    run(graph, [vector(1, 2, 3)], observe=observe)
    assert max(alive) == 2


def test_results_are_not_shared_with_constants_or_inputs_by_accident() -> None:
    """Evaluation never writes into what it was given."""
    given = vector(1, -2, 3)
    before = given.words.copy()
    for op in ("negate", "abs", "sqrt", "sign", "floor"):
        evaluate(op, [given], given.type)
    evaluate(
        "pad",
        [given, Tensor(TensorType((), given.dtype), given.words[0])],
        tensor_type("float32[5]"),
        {"edge_padding_low": (1,), "edge_padding_high": (1,), "interior_padding": (0,)},
    )
    assert np.array_equal(given.words, before)


FLUSHING = """
import ctypes, mmap
import numpy as np
# stmxcsr [rsp-4]; or dword [rsp-4], 0x8040; ldmxcsr [rsp-4]; ret: flush to zero, and denormals are zero
code = bytes.fromhex("0fae5c24fc" "814c24fc40800000" "0fae5424fc" "c3")
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(code)
from tlir.backends import run
from tlir.errors import UnsupportedError
from tlir.ir.graph import Body, Graph, Node, Ref
from tlir.ir.types import TensorType, parse_dtype
iota = Node(0, "iota", (), {"iota_dimension": 0}, (TensorType((2,), parse_dtype("float32")),))
graph = Graph(Body((iota,), (), (Ref(0),)))
run(graph)
ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
try:
    run(graph)
except UnsupportedError as error:
    print(error.code)
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="sets the control register of x86-64")
def test_a_flushing_thread_is_refused() -> None:
    done = subprocess.run([sys.executable, "-c", FLUSHING], capture_output=True, text=True, check=False)
    assert done.stdout == "TL0604\n", done.stderr
