"""Orders of summation: what they mean, that `tlir fit` finds them, and that they are the frontends' own."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from bounds_graphs import Builder as Graphs
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tlir.backends.reference import evaluate
from tlir.cli.group import tlir as group
from tlir.compare import compare
from tlir.compare.fit import fit
from tlir.compare.orders import (
    Builder,
    Cascade,
    Declared,
    Lanes,
    Rows,
    Runs,
    Sum,
    Tiles,
    Vectors,
    Windows,
    columns,
    emit_reduce,
    whole_sum,
)
from tlir.compare.products import DeclaredProduct, LaneProduct, PairTiles, Product, Split, even_split
from tlir.compare.reproduce import Choice, emit
from tlir.ir.graph import Body, Graph, Node, Producer, Ref, Sample
from tlir.ir.ops import Accumulate
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, TensorType
from tlir.schema import dumps, read
from tlir.schema import write as write_artifact

F32 = NAMED["float32"]
Array = NDArray[Any]

# ---- what the orders mean, written out in Python --------------------------------------------------------------------


def one_by_one(terms: Any) -> np.float32:
    total = np.float32(0)
    for term in terms:
        total = np.float32(total + np.float32(term))
    return total


def windows(terms: list[Any], size: int) -> np.float32:
    while len(terms) > size:
        missing = -len(terms) % size
        terms = [0.0] * (missing // 2) + list(terms) + [0.0] * (missing - missing // 2)
        terms = [one_by_one(terms[k : k + size]) for k in range(0, len(terms), size)]
    return one_by_one(terms)


def in_runs(terms: Any, lengths: tuple[int, ...]) -> np.float32:
    if not lengths:
        return one_by_one(terms)
    size = lengths[-1]
    return one_by_one([in_runs(terms[k : k + size], lengths[:-1]) for k in range(0, len(terms), size)])


def multi_row_sum(rows: Array) -> Array:
    """PyTorch's function of this name, statement by statement, for rows of any width."""
    size = len(rows)
    power = max(4, (max(size - 1, 0).bit_length()) // 4)
    step = 1 << power
    levels = np.zeros((4, *rows.shape[1:]), np.float32)
    i = 0
    while i + step <= size:
        for _ in range(step):
            levels[0] += rows[i]
            i += 1
        for level in range(1, 4):
            levels[level] += levels[level - 1]
            levels[level - 1] = 0
            if i & ((step - 1) << (level * power)):
                break
    for k in range(i, size):
        levels[0] += rows[k]
    for level in range(1, 4):
        levels[0] += levels[level]
    return levels[0]


def vectorized_inner_sum(terms: Array, lanes: int) -> np.float32:
    vectors = len(terms) // lanes
    groups = vectors // 4
    rows = terms[: groups * 4 * lanes].reshape(groups, 4, lanes)
    parts = multi_row_sum(rows) if groups else np.zeros((4, lanes), np.float32)
    for k in range(groups * 4, vectors):
        parts[0] += terms[k * lanes : (k + 1) * lanes]
    for k in range(1, 4):
        parts[0] += parts[k]
    total = one_by_one(terms[vectors * lanes :])
    for lane in parts[0]:
        total = np.float32(total + lane)
    return total


def by_halves(terms: Any) -> np.float32:
    terms = list(terms)
    while len(terms) > 1:
        half = len(terms) // 2
        terms = [np.float32(terms[k] + terms[k + half]) for k in range(half)]
    return np.float32(terms[0])


def in_tiles(terms: Array, lanes: int) -> np.float32:
    padded = np.concatenate([terms, np.zeros(-len(terms) % lanes, np.float32)]).reshape(-1, lanes)
    sums = []
    for lane in padded.T:
        tiles = []
        for first in range(0, len(lane), 1024 // lanes):
            tile = lane[first : first + 1024 // lanes]
            whole = len(tile) // 16 * 16
            parts = [in_runs(tile[k : k + 16], (4,)) for k in range(0, whole, 16)]
            step = 64 // lanes
            parts += [in_runs(tile[k : k + step], (4,)) for k in range(whole, len(tile), step)]
            tiles.append(one_by_one(parts))
        sums.append(one_by_one(tiles))
    return by_halves(sums)


def summed(order: Sum, x: Array, axis: int = 0) -> Array:
    b = Builder()
    result = order.emit(b, b.input(Tensor.from_numpy(x).type), axis)
    return evaluate(Body(tuple(b.nodes), (0,), (result,)), [Tensor.from_numpy(x)])[0].to_numpy()


ORDERS = {
    "windows of 32": (Windows(), lambda x: windows(list(x), 32)),
    "windows of 4": (Windows(4), lambda x: windows(list(x), 4)),
    "runs": (Runs((4, 16, 64)), lambda x: in_runs(x, (4, 16, 64))),
    "runs that do not divide": (Runs((3, 10)), lambda x: in_runs(x, (3, 10))),
    "columns": (columns(1 << 12, 10**6), lambda x: in_runs(x, (4, 16, 32, 128, 512))),
    "cascade": (Cascade(), lambda x: multi_row_sum(x)),
    "vectors": (Vectors(8), lambda x: vectorized_inner_sum(x, 8)),
    "scalars": (Vectors(1), lambda x: vectorized_inner_sum(x, 1)),
    "tiles": (Tiles(16), lambda x: in_tiles(x, 16)),
    "tiles of 8": (Tiles(8), lambda x: in_tiles(x, 8)),
}


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("count", [1, 3, 16, 31, 33, 64, 100, 257, 1000, 1300])
def test_an_order_of_sums_is_what_it_says(name: str, count: int) -> None:
    order, expected = ORDERS[name]
    x = np.random.default_rng(count).standard_normal((3, count)).astype(np.float32)
    assert np.array_equal(summed(order, x, 1), np.array([expected(row) for row in x], np.float32))
    across = np.ascontiguousarray(x.T)
    assert np.array_equal(summed(order, across, 0), summed(order, x, 1))


@given(st.integers(1, 400), st.sampled_from(sorted(ORDERS)), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_orders_of_sums_at_random_lengths(count: int, name: str, seed: int) -> None:
    order, expected = ORDERS[name]
    x = np.random.default_rng(seed).standard_normal((1, count)).astype(np.float32)
    assert summed(order, x, 1)[0] == expected(x[0])


def test_the_tree_is_what_cancellation_shows() -> None:
    """With a large number at i, its opposite at j and ones elsewhere, what is left are the terms outside of the least
    subtree that holds both."""
    count, big = 40, np.float32(2.0**100)

    def outside(i: int, j: int) -> float:
        x = np.ones((1, count), np.float32)
        x[0, i], x[0, j] = big, -big
        return float(summed(Vectors(8), x, 1)[0])

    assert outside(0, 32) == count - 2  # the vector left over goes to the first accumulator
    assert outside(8, 16) == count - 4  # 0, 32, 8, 16: accumulators in order
    assert outside(0, 1) == count - 10


def test_a_sum_of_several_axes() -> None:
    x = np.random.default_rng(0).standard_normal((6, 5, 70)).astype(np.float32)
    node = Node(1, "reduce", (Ref(0),), {"reducer": "add", "dimensions": (2, 0)}, (TensorType((5,), F32),))

    def by(order: Sum) -> Array:
        b = Builder()
        result = emit_reduce(b, node, b.input(Tensor.from_numpy(x).type), order, None)
        return evaluate(Body(tuple(b.nodes), (0,), (result,)), [Tensor.from_numpy(x)])[0].to_numpy()

    joined = x.transpose(1, 0, 2).reshape(5, -1)
    assert np.array_equal(by(Windows()), [windows(list(row), 32) for row in joined])
    rows = [one_by_one([windows(list(row), 32) for row in x[:, k]]) for k in range(5)]
    assert np.array_equal(by(Rows(Windows(), Declared())), rows)


# ---- products -------------------------------------------------------------------------------------------------------


def product(order: Product, x: Array, w: Array, dtype: str = "float32") -> Array:
    b = Builder()
    tensors = [Tensor.from_numpy(a) for a in (x, w)]
    result = order.emit(b, *(b.input(tensor.type) for tensor in tensors), NAMED[dtype])
    return evaluate(Body(tuple(b.nodes), (0, 1), (result,)), tensors)[0].to_numpy()


def fused(x: Array, w: Array, total: np.float32 | float = 0.0) -> np.float32:
    """Products of float32 added with one rounding each: exact in float64 but for a rounding that is checked."""
    from gmpy2 import context, mpfr

    with context(precision=24, emin=-148, emax=128, subnormalize=True):
        result = mpfr(float(total))
        for a, b in zip(x.tolist(), w.tolist(), strict=True):
            with context(precision=200):
                exact = mpfr(a) * mpfr(b) + result
            result = mpfr(exact)
        return np.float32(float(result))


@pytest.mark.parametrize("count", [1, 5, 10, 12, 23, 40])
def test_products_in_blocks(count: int) -> None:
    rng = np.random.default_rng(count)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((1, 2, count), (1, count, 2)))
    lengths = even_split(count, 8)
    assert sum(lengths) == count
    edges = np.cumsum([0, *lengths])
    expected = [
        [one_by_one([fused(x[0, i, a:z], w[0, a:z, j]) for a, z in pairwise(edges)]) for j in (0, 1)] for i in (0, 1)
    ]
    assert np.array_equal(product(Split(8), x, w)[0], np.array(expected, np.float32))


def test_the_rest_is_halved() -> None:
    assert even_split(2048, 384) == [384, 384, 384, 384, 256, 256]
    assert even_split(785, 384) == [384, 201, 200]
    assert even_split(1000, 448, 16) == [448, 288, 264]
    assert even_split(300, 384) == [300]


@pytest.mark.parametrize("count", [3, 8, 19, 32])
def test_products_in_lanes(count: int) -> None:
    rng = np.random.default_rng(count)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((1, 1, count), (1, count, 1)))
    whole = count // 8 * 8
    lanes = [fused(x[0, 0, k:whole:8], w[0, k:whole:8, 0]) for k in range(8)] if whole else []
    while len(lanes) > 1:
        lanes = [np.float32(a + b) for a, b in zip(lanes[::2], lanes[1::2], strict=True)]
    tail = [fused(x[0, 0, whole:], w[0, whole:, 0])] if whole < count else []
    assert product(LaneProduct(8, Declared("pairwise")), x, w)[0, 0, 0] == one_by_one([*lanes, *tail])


@pytest.mark.parametrize("count", [2, 31, 32, 70])
def test_products_in_pairs(count: int) -> None:
    rng = np.random.default_rng(count)
    x = rng.standard_normal((1, 1, count)).astype(ml_dtypes.bfloat16)
    w = rng.standard_normal((1, count, 1)).astype(ml_dtypes.bfloat16)
    terms = x[0, 0].astype(np.float32) * w[0, :, 0].astype(np.float32)  # exact
    blocks = [terms[k : k + 32] for k in range(0, count, 32)]
    expected = one_by_one([np.float32(one_by_one(t[::2]) + one_by_one(t[1::2])) for t in blocks])
    assert product(PairTiles(), x, w)[0, 0, 0] == expected


# ---- fitting --------------------------------------------------------------------------------------------------------

JAX, TORCH = Producer("jax", "0.10.2"), Producer("torch", "2.13.0")


def traced(graph: Graph, chosen: Mapping[int, Choice], inputs: list[Array], trace: bool = True) -> Graph:
    """The graph with outputs, and a trace, as if its frontend had made these choices."""
    b, places = Builder(), dict[Ref, Ref]()
    for node in graph.nodes:
        results = emit(b, graph.body, node, chosen.get(node.id, Choice()), places)
        places |= {Ref(node.id, k): ref for k, ref in enumerate(results)}
    tensors = [Tensor.from_numpy(x) for x in inputs]
    kept = [ref for ref in places if graph.nodes[ref.node].op not in ("input", "constant")]
    numbers = tuple(places[Ref(i)].node for i in graph.body.input_ids)
    values = evaluate(Body(tuple(b.nodes), numbers, tuple(places[ref] for ref in kept)), tensors)
    recorded = dict(zip(kept, values, strict=True))
    outputs = tuple(recorded[ref] for ref in graph.body.outputs)
    return replace(graph, samples=(Sample(tuple(tensors), outputs, recorded if trace else None),))


def mean(rows: int = 8, count: int = 1000, producer: Producer = JAX) -> Graph:
    build = Graphs()
    total = build.reduce(build.input(TensorType((rows, count), F32)), "add", 1)
    return build.graph(build.like("divide", total, build.filled(total, count)), producer=producer)


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("order", [Tiles(16), Windows(), Vectors(8), Lanes(8, Declared(), Declared("pairwise"))])
@pytest.mark.parametrize("trace", [True, False])
def test_the_order_of_a_sum_is_found(order: Sum, trace: bool) -> None:
    graph = traced(mean(), {1: Choice(order)}, [normal(8, 1000)], trace)
    assert not compare(graph, words=True).ok
    found = fit(graph)
    assert found.ok
    assert found.choices == {1: Choice(order)}
    assert compare(found.graph, words=True).ok
    (node,) = found.nodes
    assert node.equal_before < node.equal_after == node.count
    if trace:
        trace_ = found.graph.samples[0].trace
        assert trace_ is not None
        assert {found.graph.body.type_of(ref).shape for ref in trace_} == {(8,)}


@pytest.mark.parametrize(
    "order",
    [DeclaredProduct(fma=True), DeclaredProduct("blocked", 32), Split(384), LaneProduct(8, Declared("pairwise"))],
)
def test_the_order_of_a_product_is_found(order: Product) -> None:
    build = Graphs()
    x, w = build.input(TensorType((6, 500), F32)), build.input(TensorType((500, 5), F32))
    graph = traced(build.graph(build.dot(x, w), producer=JAX), {2: Choice(order)}, [normal(6, 500), normal(500, 5)])
    found = fit(graph)
    assert found.choices == {2: Choice(order)}
    assert found.ok
    assert compare(found.graph, words=True).ok


def test_a_narrow_sum_that_is_kept_in_float32_is_found() -> None:
    build = Graphs()
    total = build.reduce(build.input(TensorType((40, 300), NAMED["bfloat16"])), "add", 1)
    x = normal(40, 300).astype(ml_dtypes.bfloat16)
    graph = traced(build.graph(total, producer=TORCH), {1: Choice(Vectors(8, folded=True), F32)}, [x])
    found = fit(graph)
    assert found.ok
    assert found.choices[1].dtype == F32


def test_an_order_that_takes_the_place_of_windows() -> None:
    """A capture may write a sum as windows: the order found is that of the whole sum."""
    build = Graphs()
    x = build.input(TensorType((8, 100), F32))
    zero = build.constant(np.float32(0))
    padded = build.node(
        "pad",
        (x, zero),
        TensorType((8, 128), F32),
        edge_padding_low=(0, 14),
        edge_padding_high=(0, 14),
        interior_padding=(0, 0),
    )
    split = build.node("reshape", (padded,), TensorType((8, 4, 32), F32))
    total = build.reduce(build.reduce(split, "add", 2), "add", 1)
    graph = build.graph(total, producer=JAX)
    sum_ = whole_sum(graph.body, graph.nodes[total.node])
    assert sum_ is not None
    assert (sum_.inputs, sum_.attrs["dimensions"]) == ((x,), (1,))
    data = normal(8, 100)
    recorded = Tensor.from_numpy(summed(Tiles(16), data, 1))
    graph = replace(graph, samples=(Sample((Tensor.from_numpy(data),), (recorded,), {total: recorded}),))
    found = fit(graph)
    assert found.ok
    assert found.choices == {total.node: Choice(Tiles(16), whole=True)}
    assert all(node.shape != (8, 4, 32) for node in (n.type for n in found.graph.nodes))


def test_sums_that_are_not_one_sum() -> None:
    build = Graphs()
    x = build.input(TensorType((8, 4, 32), F32))
    squares = build.like("multiply", x, x)
    first = build.reduce(squares, "add", 2)
    joined = build.node("reshape", (first,), TensorType((32,), F32))
    graph = build.graph(build.reduce(joined, "add", 0))
    assert whole_sum(graph.body, graph.nodes[-1]) is None  # the reshape joins axes
    assert whole_sum(graph.body, graph.nodes[first.node]) is None  # nothing before it


def test_fused_products_reciprocals_and_flushed_subnormals_are_found() -> None:
    build = Graphs()
    x, y = build.input(TensorType((500,), F32)), build.input(TensorType((500,), F32))
    total = build.like("subtract", build.like("multiply", x, y), x)
    third = build.like("divide", total, build.filled(total, 3.0))
    graph = build.graph(third, producer=Producer("jax", "0.10.2", outputs="compiled"))
    chosen = {total.node: Choice(fused=0), third.node: Choice(reciprocal=True)}
    inputs = [normal(500), normal(500, seed=1)]
    found = fit(traced(graph, chosen, inputs, trace=False))
    assert found.ok
    assert found.choices == chosen
    assert [node.op for node in found.graph.nodes].count("fma") == 1
    assert all(node.op != "subtract" for node in found.graph.nodes)

    build = Graphs()
    x, y = build.input(TensorType((4,), F32)), build.input(TensorType((4,), F32))
    tiny = [np.array(values, np.float32) for values in ([1e-38, -3e-39, 2.0, 1e-30], [0.5, 3.0, 0.25, 1e-30])]
    graph = build.graph(build.like("multiply", x, y), producer=JAX)
    graph = traced(graph, {2: Choice(flush=True)}, tiny)
    assert graph.samples[0].outputs[0].to_numpy().tolist()[:3] == [0.0, -0.0, 0.5]
    found = fit(graph)
    assert found.ok
    assert found.choices == {2: Choice(flush=True)}


def test_what_no_choice_explains_is_left_alone() -> None:
    graph = traced(mean(), {}, [normal(8, 1000)])
    (output,) = graph.samples[0].outputs
    changed = Tensor(output.type, output.words ^ np.uint32(1 << 12))
    trace = {**(graph.samples[0].trace or {}), graph.body.outputs[0]: changed}
    found = fit(replace(graph, samples=(replace(graph.samples[0], outputs=(changed,), trace=trace),)))
    assert not found.ok
    assert not found.choices
    assert found.graph.body == graph.body
    assert found.nodes[-1].equal_after == 0


def test_every_sample_counts() -> None:
    first = traced(mean(), {1: Choice(Tiles(16))}, [normal(8, 1000)])
    second = traced(mean(), {1: Choice(Windows())}, [normal(8, 1000, seed=1)])
    assert not fit(replace(first, samples=first.samples + second.samples)).ok
    alike = traced(mean(), {1: Choice(Tiles(16))}, [normal(8, 1000, seed=1)])
    assert fit(replace(first, samples=first.samples + alike.samples)).ok


def test_a_comparison_says_what_reproduces_an_output() -> None:
    graph = traced(mean(), {1: Choice(Tiles(16))}, [normal(8, 1000)])
    report = compare(graph, tolerance="auto")
    assert report.to_json()["verdict"] == "reproduced"
    assert "tiles of 1024 in 16 lanes" in report.outputs[0].to_json()["choice"]
    assert compare(graph, tolerance="auto", policy="strict").to_json()["verdict"] != "reproduced"


def test_a_choice_that_the_policy_forbids_is_no_explanation() -> None:
    """A sum that was kept in bfloat16 where float32 is declared: found by fit, and a bug for a comparison."""
    build = Graphs()
    wide = Accumulate(F32)
    total = build.reduce(build.input(TensorType((4, 500), NAMED["bfloat16"])), "add", 1, accumulate=wide)
    x = np.ones((4, 500), ml_dtypes.bfloat16)
    graph = traced(build.graph(total, producer=TORCH), {1: Choice(Declared())}, [x])
    assert fit(graph).ok
    report = compare(graph, tolerance="auto")
    assert report.to_json()["verdict"] == "bug"
    assert report.outputs[0].to_json()["choice"] is None


def test_the_command_writes_what_it_finds(tmp_path: Path) -> None:
    graph = traced(mean(), {1: Choice(Tiles(16))}, [normal(8, 1000)])
    path, fitted = str(tmp_path / "a.json"), str(tmp_path / "b.json")
    write_artifact(graph, path)
    run = CliRunner()
    assert run.invoke(group, ["compare", "--words", path]).exit_code == 1
    result = run.invoke(group, ["fit", path, "-o", fitted, "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.output)
    assert report["ok"]
    assert report["nodes"][0]["after"] == "tiles of 1024 in 16 lanes"
    assert report["outputs"][0]["equal_words_after"] == 8
    assert run.invoke(group, ["compare", "--words", fitted]).exit_code == 0
    assert dumps(read(fitted)) == dumps(fit(graph).graph)
    again = run.invoke(group, ["fit", fitted])
    assert again.exit_code == 0
    assert "0 nodes changed" in again.output
    (output,) = graph.samples[0].outputs
    wrong = Sample(graph.samples[0].inputs, (Tensor(output.type, output.words ^ np.uint32(1 << 12)),))
    write_artifact(replace(graph, samples=(wrong,)), path)
    assert run.invoke(group, ["fit", path]).exit_code == 1
    bare = replace(graph, samples=())
    write_artifact(bare, path)
    result = run.invoke(group, ["fit", path])
    assert result.exit_code == 3
    assert "TL0701" in result.output


# ---- the frontends' own products ------------------------------------------------------------------------------------

RECORDED = {"jax": "0.10.2", "torch": "2.13.0", "numpy": "2"}
"""The versions whose blocks are recorded here, on an x86-64 processor with AVX-512."""

BLOCKS = {
    "jax": {64: 0, 256: 0, 784: 512, 1024: 512},
    "torch": {64: 0, 256: 0, 512: 256, 768: 384, 1536: 384},
    "numpy": {64: 0, 256: 0, 512: 256},
}
"""For each k the length of a block; 0: one by one."""

LONGER = {("numpy", "float32"): {896: 448}, ("numpy", "float64"): {768: 384}}
"""The same where it depends on the dtype."""


def require(library: str) -> Any:
    """The library, of the version and on a processor that its blocks were recorded with; skipped by name elsewhere."""
    module = pytest.importorskip(library)
    version, recorded = module.__version__.split("+")[0], RECORDED[library]
    if version != recorded and not version.startswith(f"{recorded}."):
        pytest.skip(f"the blocks of {library} {recorded} are recorded; this is {version}")
    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    if platform.machine() != "x86_64" or "avx512f" not in flags or "GenuineIntel" not in flags:
        pytest.skip(f"the blocks of {library} are recorded on an Intel processor with AVX-512")
    return module


@pytest.fixture
def one_thread() -> Iterator[None]:
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def by_library(library: str, x: Array, w: Array) -> Array:
    module = require(library)
    if library == "numpy":
        return x @ w
    if library == "torch":
        return np.asarray((module.from_numpy(x) @ module.from_numpy(w)).numpy())
    with module.enable_x64():
        return np.asarray(module.numpy.asarray(x) @ module.numpy.asarray(w))


@pytest.mark.parametrize("library", BLOCKS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_blocks_with_fma_are_the_words_of_the_library(library: str, dtype: str, one_thread: None) -> None:
    require(library)
    rng = np.random.default_rng(5)
    for count, block in (BLOCKS[library] | LONGER.get((library, dtype), {})).items():
        x, w = rng.standard_normal((64, count)).astype(dtype), rng.standard_normal((count, 64)).astype(dtype)
        got = by_library(library, x, w)
        order = DeclaredProduct("blocked" if block else "sequential", block, True)
        rows, columns_ = [0, 1, 31, 62, 63], [0, 7, 32, 63]
        mine = product(order, x[None, rows], np.ascontiguousarray(w[None][:, :, columns_]), dtype)[0]
        assert np.array_equal(mine, got[rows][:, columns_]), f"k = {count}"
        other = DeclaredProduct("sequential" if block else "blocked", 0 if block else 32, True)
        different = product(other, x[None, rows], np.ascontiguousarray(w[None][:, :, columns_]), dtype)[0]
        assert not np.array_equal(different, mine)  # the words tell orders apart


@pytest.mark.parametrize("library", ["jax", "torch"])
def test_sums_captured_from_a_frontend_are_fitted(library: str, one_thread: None, tmp_path: Path) -> None:
    module = require(library)
    x = normal(64, 1000)
    if library == "jax":
        from capture import jax_capture as capture

        artifact = capture.export(lambda a: module.numpy.sum(a, axis=1), module.numpy.asarray(x), trace=True)
    else:
        from capture import torch_capture as capture

        artifact = capture.export(lambda a: a.sum(1), module.from_numpy(x), trace=True)
    path = tmp_path / "sum.json"
    path.write_text(json.dumps(artifact))
    graph = read(path)
    assert not compare(graph, words=True).ok
    found = fit(graph)
    assert found.ok
    assert compare(found.graph, words=True).ok


def test_an_accumulate_of_its_own_is_what_a_declared_order_becomes() -> None:
    graph = traced(mean(4, 64), {1: Choice(Declared("pairwise"))}, [normal(4, 64)])
    found = fit(graph)
    assert found.graph.nodes[1].attrs["accumulate"] == Accumulate(order="pairwise")
    assert len(found.graph.nodes) == len(graph.nodes)
