"""Casting: the types it gives, what it refuses, and that the words are those of the same graph in that format."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from cast_graphs import accumulating, evaluate_binary128, exact, loop, mixed
from hypothesis import given, settings
from hypothesis import strategies as st
from passes_graphs import Builder, tensor_type

from tlir.arguments import bind
from tlir.backends import run
from tlir.errors import ArtifactError, UsageError
from tlir.floatlib.convert import convert
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.value import Value
from tlir.floatlib.words import to_ints
from tlir.ir.graph import Graph, Ref, Sample
from tlir.ir.ops import Accumulate
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, parse_dtype
from tlir.ir.verify import type_errors, verify_structure
from tlir.passes.cast import cast
from tlir.passes.casting.formats import contains, described_name
from tlir.passes.check import check
from tlir.schema import dumps, from_json, read, to_json

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
ARTIFACTS = sorted(GOLDEN.rglob("*.json"))
BITS = "bitcast_convert"
TARGETS = ("float128", "float64", "bfloat16", "e11m100")


def dtypes(graph: Graph) -> set[str]:
    return {type.dtype.component.name for node in graph.body.walk() for type in node.types if type.dtype.format}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("path", ARTIFACTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_golden_artifact_checks_and_runs_in_another_format(path: Path, target: str) -> None:
    graph = read(str(path))
    changed, _ = cast(graph, target)
    verify_structure(changed)
    assert check(changed).ok
    results = run(changed, changed.samples[0].inputs)
    assert [result.type for result in results] == list(changed.body.output_types)
    reads_bits = any(node.op == BITS for node in graph.nodes)
    assert dtypes(changed) <= ({target, "float32"} if reads_bits else {target})
    again = from_json(to_json(changed))
    assert dumps(again) == dumps(changed)
    assert again.formats == ({"e11m100": Format(11, 100)} if target == "e11m100" and dtypes(graph) else {})


@pytest.mark.parametrize("name", ["jax/perceptron", "jax/softmax", "torch/perceptron", "torch/softmax"])
def test_binary128_words_are_those_of_mpfr(name: str) -> None:
    graph = read(str(GOLDEN / f"{name}.json"))
    changed, _ = cast(graph, "binary128")
    inputs = graph.samples[0].inputs
    (got,) = run(changed, changed.samples[0].inputs)
    assert got.dtype.name == "float128"
    (expected,) = evaluate_binary128(graph.body, [exact(tensor) for tensor in inputs])
    assert exact(got).tolist() == expected.tolist()


@pytest.mark.parametrize("path", ARTIFACTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_casting_twice_changes_nothing_more(path: Path) -> None:
    once, _ = cast(read(str(path)), "float128")
    twice, report = cast(once, "float128")
    assert dumps(twice) == dumps(once)
    if BITS not in {node.op for node in once.nodes}:
        assert (report.changed, report.inserted, report.dropped) == (0, 0, 0)
        assert report.constants == report.samples == ()


@pytest.mark.parametrize("name", ["perceptron", "softmax", "complex_regression", "attention", "layer_norm"])
def test_widening_and_back_gives_the_same_artifact(name: str) -> None:
    graph = read(str(GOLDEN / "jax" / f"{name}.json"))
    wide, report = cast(graph, "float128")
    assert all(entry.exact for entry in (*report.constants, *report.samples))
    assert dumps(cast(wide, "float32")[0]) == dumps(graph)


def constant_graph(values: np.ndarray) -> Graph:
    b = Builder()
    return b.graph(b.constant(values, name="table"))


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=20))
@settings(max_examples=60, deadline=None)
def test_constants_are_rounded_once_and_counted(bits: list[int]) -> None:
    values = np.array(bits, np.uint32).view(np.float32)
    changed, report = cast(constant_graph(values), "bfloat16")
    words = changed.nodes[0].attrs["value"].words.tolist()
    expected = values.astype(ml_dtypes.bfloat16).view(np.uint16)
    nan = np.isnan(values)
    assert [word for word, skip in zip(words, nan, strict=True) if not skip] == expected[~nan].tolist()
    assert all(word == FORMATS["bfloat16"].nan for word, skip in zip(words, nan, strict=True) if skip)
    (entry,) = report.constants
    widened = expected.view(ml_dtypes.bfloat16).astype(np.float64)
    assert entry.inexact == int(np.count_nonzero((widened != values.astype(np.float64)) & ~nan))
    assert entry.overflow == int(np.count_nonzero(np.isinf(widened) & np.isfinite(values)))
    assert entry.payloads == int(np.count_nonzero(nan & (np.array(bits, np.uint32) != 0x7FC00000)))
    assert (entry.what, entry.place, entry.name, entry.numbers) == ("constant", "0", "table", len(bits))


def test_a_constant_in_binary64_is_not_rounded_through_binary32() -> None:
    # 1 + 2^-8 + 2^-40 is above the middle of two bfloat16 numbers, in binary32 it would be the middle
    changed, report = cast(constant_graph(np.array([1 + 2.0**-8 + 2.0**-40])), "bfloat16")
    assert changed.nodes[0].attrs["value"].words.tolist() == [0x3F81]
    assert report.constants[0].counts() == {
        "inexact": 1,
        "overflow": 0,
        "underflow": 0,
        "invalid": 0,
        "payloads": 0,
    }
    _, report = cast(constant_graph(np.array([1e300, 1e-300, np.nan])), "float6_e2m3fn")
    assert (report.constants[0].overflow, report.constants[0].underflow, report.constants[0].invalid) == (1, 1, 1)


def test_integers_and_booleans_stay_and_complex_values_follow() -> None:
    graph = mixed()
    changed, _ = cast(graph, "float128")
    for before, after in zip(graph.nodes, changed.nodes, strict=True):
        for old, new in zip(before.types, after.types, strict=True):
            assert new.shape == old.shape
            if old.dtype.format is None:
                assert new.dtype == old.dtype
            else:
                assert new.dtype.name == ("complex<float128>" if old.dtype.is_complex else "float128")
    assert type_errors(changed) == []


def test_only_the_formats_that_are_named_change() -> None:
    b = Builder()
    x, y = b.input("x", "float32", 3), b.input("y", "float64", 3)
    wide = b.op("convert", x, result=tensor_type("float64", 3))
    graph = b.graph(b.op("add", wide, y), b.op("negate", x))
    changed, report = cast(graph, "float64", sources=["binary32"])
    assert [node.op for node in changed.nodes] == ["input", "input", "add", "negate"]
    assert changed.nodes[2].inputs == (Ref(0), Ref(1))
    assert (report.inserted, report.dropped) == (0, 1)
    changed, report = cast(graph, "float16", sources=["float32"])
    assert dtypes(changed) == {"float16", "float64"}
    assert changed.nodes[2].op == "convert"
    assert (report.inserted, report.dropped) == (0, 0)
    assert type_errors(changed) == []


def test_chosen_nodes_get_converts_around_them() -> None:
    b = Builder()
    x = b.input("x", "float32", 4)
    square = b.op("multiply", x, x, name="square")
    cube = b.op("multiply", square, x, name="cube")
    graph = b.graph(b.op("add", cube, square))
    changed, report = cast(graph, "float128", nodes=["square", f"%{cube}"])
    types = [(node.op, node.type.dtype.name) for node in changed.nodes]
    assert types == [
        ("input", "float32"),
        ("convert", "float128"),
        ("multiply", "float128"),
        ("multiply", "float128"),
        ("convert", "float32"),
        ("convert", "float32"),
        ("add", "float32"),
    ]
    assert (report.changed, report.inserted) == (2, 3)
    (got,) = run(changed, [Tensor.from_numpy(np.float32([3, 1.1, 1e-20, -7]))])
    for value, result in zip(np.float32([3, 1.1, 1e-20, -7]), got.to_numpy(), strict=True):
        third = np.float32(float(Fraction(float(value)) ** 3))  # binary128 holds the cube of a binary32 number
        assert result == third + np.float32(float(Fraction(float(value)) ** 2))


def test_inputs_and_outputs_keep_their_types_with_converts_at_the_border() -> None:
    graph = read(str(GOLDEN / "jax" / "softmax.json"))
    inside, report = cast(graph, "float128", keep_io=True)
    assert inside.body.input_types == graph.body.input_types
    assert inside.body.output_types == graph.body.output_types
    assert report.inserted == 2
    assert report.samples == ()
    whole, _ = cast(graph, "float128")
    (got,) = run(inside, inside.samples[0].inputs)
    (wide,) = run(whole, whole.samples[0].inputs)
    narrow = [convert(FORMATS["float128"], FORMATS["float32"], value.word)[0] for value in wide.to_numpy().reshape(-1)]
    assert got.words.reshape(-1).tolist() == narrow
    with pytest.raises(UsageError, match="TL0901"):
        cast(graph, "float128", keep_io=True, nodes=["0"])


def test_the_programs_own_conversions_change_unless_they_are_kept() -> None:
    graph = read(str(GOLDEN / "jax" / "float64_through_float32.json"))
    dropped, report = cast(graph, "float128")
    assert [node.op for node in dropped.nodes] == ["input"]
    assert report.dropped == 2
    kept, report = cast(graph, "float128", keep_casts=True)
    assert [(node.op, node.type.dtype.name) for node in kept.nodes] == [
        ("input", "float128"),
        ("convert", "float32"),
        ("convert", "float128"),
    ]
    assert (report.kept, report.dropped, report.inserted) == (1, 1, 1)
    # with the rounding kept, the words are those that the frontend recorded
    (got,) = run(kept, kept.samples[0].inputs)
    assert got.same_words(kept.samples[0].outputs[0])


def test_accumulators_change_with_the_values_and_are_never_narrower() -> None:
    def accumulators(graph: Graph) -> list[str | None]:
        found = [node.attrs.get("accumulate", Accumulate()).dtype for node in graph.nodes if node.op == "reduce"]
        return [None if dtype is None else dtype.name for dtype in found]

    graph = accumulating("bfloat16", ["float32", "bfloat16", "float16"])
    assert accumulators(cast(graph, "float64")[0]) == [None, None, None]
    only, _ = cast(graph, "float64", sources=["bfloat16"])
    assert accumulators(only) == [None, None, None]
    only, _ = cast(graph, "float16", sources=["bfloat16"])
    assert accumulators(only) == ["float32", None, None]
    only, _ = cast(graph, "float64", sources=["float32"])
    assert accumulators(only) == ["float64", "bfloat16", "float16"]
    assert dtypes(only) == {"bfloat16"}


def test_an_accumulator_alone_counts_as_the_node() -> None:
    graph = accumulating("bfloat16", ["float32"])
    changed, report = cast(graph, "e11m100", sources=["float32"])
    assert report.changed == 1
    assert changed.formats == {"e11m100": Format(11, 100)}
    assert from_json(to_json(changed)).nodes == changed.nodes


def test_regions_change_with_everything_and_a_chosen_loop_as_a_whole() -> None:
    graph = loop()
    for options in ({}, {"nodes": ["loop"]}):
        changed, _ = cast(graph, "float128", **options)
        assert type_errors(changed) == []
        scan = next(node for node in changed.nodes if node.op == "scan")
        assert {type.dtype.name for node in scan.regions[0].nodes for type in node.types} == {"float128"}
        (got,) = run(changed, changed.samples[0].inputs)
        values = got.to_numpy().reshape(-1)
        third = [convert(FORMATS["float32"], FORMATS["float128"], int(np.float32(1 / 3).view(np.uint32)))[0]]
        assert [value.word for value in values] == third


def test_bits_read_as_a_number_stay_in_their_format() -> None:
    b = Builder()
    k = b.input("k", "int32", 2)
    number = b.op(BITS, k, result=tensor_type("float32", 2))
    graph = b.graph(b.op("add", number, number))
    changed, report = cast(graph, "float128")
    assert [(node.op, node.type.dtype.name) for node in changed.nodes] == [
        ("input", "int32"),
        (BITS, "float32"),
        ("convert", "float128"),
        ("add", "float128"),
    ]
    assert report.inserted == 1
    (got,) = run(changed, [Tensor.from_numpy(np.array([1.5, 3e38], np.float32).view(np.int32))])
    expected = [3, 2 * Fraction(float(np.float32(3e38)))]  # beyond binary32, within binary128
    assert [value.as_fraction() for value in got.to_numpy()] == expected


def refused(op: str, result: str = "float32", **attrs: int) -> Graph:
    b = Builder()
    x = b.input("x", "float32", 2)
    operands = (x, x) if op == "next_after" else (x,)
    return b.graph(b.op(op, *operands, result=tensor_type(result, 2), **attrs))


@pytest.mark.parametrize(
    ("graph", "target"),
    [
        (refused("next_after"), "float64"),
        (refused(BITS, "int32"), "float64"),
        (refused("reduce_precision", exponent_bits=5, mantissa_bits=10), "bfloat16"),
        (refused("reduce_precision", exponent_bits=8, mantissa_bits=3), "float16"),
    ],
)
def test_operations_that_would_lose_their_meaning_are_refused(graph: Graph, target: str) -> None:
    with pytest.raises(UsageError) as error:
        cast(graph, target)
    assert error.value.code == "TL1001"
    assert error.value.node is not None
    # with the node left in its format there is nothing to refuse
    changed, _ = cast(graph, target, nodes=["x"])
    assert type_errors(changed) == []


def test_rounding_to_bits_that_the_target_has_is_kept() -> None:
    graph = refused("reduce_precision", exponent_bits=5, mantissa_bits=10)
    changed, _ = cast(graph, "float128")
    inputs = np.float32([1.1, 70000.0])
    (expected,) = run(graph, [Tensor.from_numpy(inputs)])
    widened, _ = cast(replace(changed, samples=()), "float128")
    (got,) = run(widened, [cast_words(inputs)])
    assert [float(value) for value in got.to_numpy()] == expected.to_numpy().tolist()


def cast_words(values: np.ndarray) -> Tensor:
    changed, _ = cast(constant_graph(values), "float128")
    tensor: Tensor = changed.nodes[0].attrs["value"]
    return tensor


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"to": "float31"}, "TL0901"),
        ({"to": "int32"}, "TL0901"),
        ({"to": "complex64"}, "TL0901"),
        ({"to": "e40m5"}, "TL0213"),
        ({"to": "float64", "sources": ["float31"]}, "TL0901"),
        ({"to": "float64", "sources": ["float16"]}, "TL1001"),
        ({"to": "float64", "nodes": ["nobody"]}, "TL0901"),
        ({"to": "float32", "nodes": ["0"]}, "TL1001"),
    ],
)
def test_requests_that_say_nothing_are_refused(options: dict, code: str) -> None:
    with pytest.raises(UsageError) as error:
        cast(read(str(GOLDEN / "jax" / "softmax.json")), **options)
    assert error.value.code == code


def test_a_graph_whose_types_do_not_hold_is_refused() -> None:
    graph = read(str(GOLDEN / "jax" / "square_sum.json"))
    body = graph.body
    wrong = replace(body.nodes[1], types=(tensor_type("float64", 4),))
    with pytest.raises(ArtifactError):
        cast(replace(graph, body=replace(body, nodes=(body.nodes[0], wrong, *body.nodes[2:])), samples=()), "float16")


def test_formats_are_declared_where_they_have_no_name() -> None:
    graph = read(str(GOLDEN / "jax" / "square_sum.json"))
    own = Format(7, 20, bias=50)
    changed, report = cast(graph, own)
    assert changed.formats == {"e7m20_bias50": own}
    assert report.target.name == "e7m20_bias50"
    # the declaration is used again by its name and by its bits, and goes when nothing needs it
    assert cast(changed, "e7m20_bias50")[1].changed == 0
    assert cast(changed, own)[1].changed == 0
    assert cast(changed, "float32", sources=["e7m20_bias50"])[0].formats == {}
    assert cast(graph, "e5m10")[1].target == NAMED["float16"]
    with pytest.raises(UsageError, match="another format"):
        cast(replace(graph, formats={"e7m20_bias50": Format(7, 20)}), own)


FORMAT = st.sampled_from(list(FORMATS.values()))


@given(FORMAT, FORMAT)
@settings(max_examples=300, deadline=None)
def test_containing_means_that_every_value_converts_exactly(wide: Format, narrow: Format) -> None:
    if narrow.width > 10:
        return
    flags = [convert(narrow, wide, word) for word in range(1 << narrow.width)]
    back = [convert(wide, narrow, word)[0] for word, _ in flags]
    quiet = all(
        not raised
        and (
            same == word or (narrow.is_nan(word) and narrow.is_nan(same))  # payloads aside
        )
        for word, (_, raised), same in zip(range(1 << narrow.width), flags, back, strict=True)
        if not narrow.is_signaling(word)
    )
    assert contains(wide, narrow) == quiet


def test_described_names_are_different_for_different_formats() -> None:
    own = [Format(5, 8), Format(5, 8, bias=-3), Format(5, 8, bias=3), Format(5, 8, nans="all_ones")]
    own += [Format(5, 8, nans="none"), Format(5, 8, infinities=False, nans="none")]
    own += [Format(1, 8, infinities=False, nans="none"), Format(1, 8, infinities=False, nans="all_ones")]
    own += [Format(5, 8, nans="negative_zero", signed_zero=False), Format(5, 8, signed=False, signed_zero=False)]
    names = [described_name(fmt) for fmt in own]
    assert len(set(names)) == len(names)
    assert all(name.replace("_", "").isalnum() for name in names)


def test_samples_and_traces_follow_the_types() -> None:
    b = Builder()
    x = b.input("x", "float64", 2)
    narrow = b.op("convert", x, result=tensor_type("float32", 2))
    graph = b.graph(b.op("negate", narrow))
    values = np.array([0.1, 3.0])
    single = Tensor.from_numpy(values.astype(np.float32))
    trace = {Ref(0): Tensor.from_numpy(values), Ref(1): single, Ref(2): Tensor.from_numpy(-values.astype(np.float32))}
    sample = Sample((trace[Ref(0)],), (trace[Ref(2)],), trace)
    changed, report = cast(replace(graph, samples=(sample,)), "bfloat16")
    verify_structure(changed)
    assert [(entry.what, entry.name, entry.inexact) for entry in report.samples] == [
        ("input", "x", 1),
        ("output", "output", 1),
    ]
    words = {str(ref): tensor.words.tolist() for ref, tensor in (changed.samples[0].trace or {}).items()}
    assert words == {"%0": [0x3DCD, 0x4040], "%1": [0xBDCD, 0xC040]}
    assert Value(parse_dtype("bfloat16").float_format, 0x3DCD).as_fraction() == Fraction(205, 2048)


def test_what_a_gather_fills_with_is_cast_too() -> None:
    """Of x = [1.5, 2.5] the places 0 and 5, the second of which is filled with 0.1 as binary32 has it."""
    filled = np.float32(0.1)
    fill = {"dtype": "float32", "shape": [], "words": f"{int(filled.view(np.uint32)):08x}"}
    nodes = [
        {"op": "input", "inputs": [], "shape": [2], "dtype": "float32", "name": "x"},
        {"op": "input", "inputs": [], "shape": [2, 1], "dtype": "int32", "name": "places"},
        {
            "op": "gather",
            "inputs": [0, 1],
            "shape": [2],
            "dtype": "float32",
            "attrs": {
                "offset_dims": [],
                "collapsed_slice_dims": [0],
                "operand_batching_dims": [],
                "start_indices_batching_dims": [],
                "start_index_map": [0],
                "index_vector_dim": 1,
                "slice_sizes": [1],
                "mode": "fill",
                "fill_value": fill,
            },
        },
    ]
    document = {
        "format": "tlir",
        "version": 2,
        "name": "fill",
        "input_ids": [0, 1],
        "output_ids": [2],
        "nodes": [{"id": k, **node} for k, node in enumerate(nodes)],
    }
    for target in ("float128", "bfloat16"):
        changed, report = cast(from_json(document), target)
        assert check(changed).ok
        word, _ = convert(FORMATS["float32"], FORMATS[target], int(filled.view(np.uint32)))
        inputs = bind(changed, [np.array(["1.5", "2.5"]), np.int32([[0], [5]])])
        (result,) = run(changed, inputs)
        assert [int(item) for item in to_ints(FORMATS[target], result.words)][1] == word
        (entry,) = report.constants
        assert entry.exact == (target == "float128")
