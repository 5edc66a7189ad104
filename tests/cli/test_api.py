"""The library: loading, running with arguments of every form, comparing, verifying."""

from __future__ import annotations

import importlib.util
import sys
from collections import namedtuple
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from cli_artifacts import identity, ill_typed, squares

import tlir
from tlir.api import Graph as LoadedGraph
from tlir.arguments import bind, tensor_of
from tlir.floatlib.format import FORMATS
from tlir.floatlib.value import Value
from tlir.ir.graph import Body, Graph, Node, Ref
from tlir.ir.tree import decode
from tlir.ir.types import TensorType, parse_dtype

ROOT = Path(__file__).resolve().parents[2]


def test_load_check_run_compare(write) -> None:
    for artifact in (squares(), write("squares.json", squares())):
        graph = tlir.load(artifact)
        assert (graph.name, graph.input_names, graph.output_names) == ("squares", ["x"], ["output"])
        assert graph.check().ok
        (total,) = graph.run()
        assert total.dtype == np.float32
        assert total == 30
        assert graph.run([np.float32([1, 1, 1, 1])])[0] == 4
        assert graph.compare().ok
        assert tlir.compare(graph, tolerance=2e-5, rtol=0).ok
        assert tlir.compare(artifact).outputs[0].count == 1
    assert not tlir.compare(squares(recorded=31)).ok
    assert tlir.compare(squares(recorded=31), tolerance=1).ok


def test_an_ill_typed_graph_loads_and_does_not_run() -> None:
    graph = tlir.load(ill_typed())
    assert not graph.check().ok
    for action in (graph.run, graph.compare):
        with pytest.raises(tlir.ArtifactError, match="TL0301"):
            action()


def test_compare_is_the_function_also_after_the_subpackage_is_imported() -> None:
    import tlir.compare.report
    from tlir.compare import CompareReport

    assert callable(tlir.compare)
    assert isinstance(tlir.compare(squares()), CompareReport)
    assert sys.modules["tlir.compare"].CompareReport is CompareReport


def test_the_package_lists_and_refuses_names() -> None:
    assert set(tlir.__all__) <= set(dir(tlir))
    for name in tlir.__all__:
        assert getattr(tlir, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'lod'"):
        tlir.lod  # noqa: B018


def test_results_can_be_changed_without_changing_the_graph() -> None:
    graph = tlir.load(identity(np.float32([1, 2])))
    graph.run()[0][:] = 9
    assert graph.run()[0].tolist() == [1, 2]


def test_samples_are_chosen_by_number() -> None:
    document = identity(np.float32(1))
    document["samples"].append(identity(np.float32(7))["samples"][0])
    graph = tlir.load(document)
    assert graph.run(sample=1)[0] == 7
    with pytest.raises(tlir.UsageError, match="TL0602"):
        graph.run(sample=2)


def graph_of(*inputs: tuple[str, str], tree: object = None, output_tree: object = None) -> Graph:
    """A graph that returns its scalar inputs, given as (name, dtype)."""
    nodes = tuple(
        Node(k, "input", (), {}, (TensorType((), parse_dtype(dtype)),), name) for k, (name, dtype) in enumerate(inputs)
    )
    count = len(inputs)
    body = Body(nodes, tuple(range(count)), tuple(Ref(k) for k in range(count)))
    return Graph(
        body,
        input_tree=None if tree is None else decode(tree, count),
        output_tree=None if output_tree is None else decode(output_tree, count),
    )


STRUCTURED = graph_of(
    ("p['w']", "float32"),
    ("p['b'][0]", "float32"),
    ("x", "float32"),
    ("scale", "float32"),
    tree={"args": [{"dict": [["w", 0], ["b", {"list": [1, None]}]]}, 2], "kwargs": [["scale", 3]]},
)
Pair = namedtuple("Pair", ["left", "right"])


@pytest.mark.parametrize(
    "arrays",
    [
        [1.0, 2.0, 3.0, 4.0],
        (np.float32(1), np.float32(2), np.float32(3), np.float32(4)),
        {"p['w']": 1.0, "p['b'][0]": 2.0, "x": 3.0, "scale": 4.0},
        {"p": {"b": [2.0, None], "w": 1.0}, "scale": 4.0, "x": 3.0},
        ([{"w": 1.0, "b": [2.0, None]}, 3.0], {"scale": 4.0}),
    ],
)
def test_arguments_by_position_by_name_and_by_structure(arrays: object) -> None:
    words = [int(tensor.words) for tensor in bind(STRUCTURED, arrays)]
    assert words == [int(np.float32(k).view(np.uint32)) for k in (1, 2, 3, 4)]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([1.0, 2.0], "2 given"),
        ({"x": 1.0}, "no value for input"),
        ({"p": {"w": 1.0, "c": 2.0}, "x": 3.0, "scale": 4.0}, "there is no input \"p['c']\""),
        ([{"w": 1.0, "b": [2.0, None]}, 3.0], "2 given"),
        (([{"w": 1.0, "b": [2.0]}, 3.0], {"scale": 4.0}), "expected a list of 2, not a list of 1"),
        (([{"w": 1.0, "b": [2.0, 5.0]}, 3.0], {"scale": 4.0}), "expected None"),
        (([{"w": 1.0}, 3.0], {"scale": 4.0}), "expected a dict with keys ['w', 'b']"),
        (np.float32([1, 2, 3, 4]), "not a sequence or a mapping"),
        ("abcd", "not a sequence or a mapping"),
    ],
)
def test_arguments_that_do_not_match_are_refused(arrays: object, message: str) -> None:
    with pytest.raises(tlir.UsageError) as refused:
        bind(STRUCTURED, arrays)
    assert refused.value.code == "TL0601"
    assert message in str(refused.value)


def test_named_tuples_are_matched_by_field() -> None:
    graph = graph_of(("p.left", "int32"), ("p.right", "int32"))
    assert [int(tensor.words) for tensor in bind(graph, {"p": Pair(3, 4)})] == [3, 4]


def test_the_output_tree_gives_results_their_structure() -> None:
    tree = {"dict": [["loss", 0], ["parts", {"namedtuple": "Parts", "fields": [["a", 1], ["b", None]]}]]}
    graph = LoadedGraph(graph_of(("x", "float32"), ("y", "int8"), output_tree=tree))
    result = graph.run([1.5, -2])
    assert result["loss"] == 1.5
    assert result["parts"].a == -2
    assert result["parts"].b is None
    assert graph.output_names == ["output['loss']", "output['parts'].a"]


@pytest.mark.parametrize(
    ("dtype", "value", "word"),
    [
        ("float32", 0.5, 0x3F000000),
        ("float32", 3, 0x40400000),
        ("float32", -0.0, 0x80000000),
        ("float32", float("inf"), 0x7F800000),
        ("float32", float("nan"), 0x7FC00000),
        ("bfloat16", 256.0, 0x4380),
        ("float128", 1, 0x3FFF << 112),
        ("int8", -1, 0xFF),
        ("int4", -8, 0x8),
        ("uint64", 2**64 - 1, 2**64 - 1),
        ("bool", True, 1),
        ("float16", np.float16(0.1), 0x2E66),
        ("bfloat16", ml_dtypes.bfloat16(0.1), 0x3DCD),
        ("float128", Value(FORMATS["float128"], 5), 5),
    ],
)
def test_python_numbers_are_taken_where_they_are_exact(dtype: str, value: object, word: int) -> None:
    tensor = tensor_of(value, TensorType((), parse_dtype(dtype)), "x")
    limbs = np.atleast_1d(tensor.words)
    assert sum(int(limb) << 64 * k for k, limb in enumerate(limbs)) == word


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("float32", 0.1),
        ("float32", 2**24 + 1),
        ("float16", 1e6),
        ("float16", 10**400),
        ("float8_e4m3fn", float("inf")),
        ("float6_e2m3fn", float("nan")),
        ("int8", 128),
        ("int8", 1.0),
        ("uint8", -1),
        ("int8", True),
        ("bool", 1),
        ("float32", 1j),
        ("float32", None),
        ("float32", [1.0]),
        ("float32", np.float64(0.5)),
        ("float32", np.array("text")),
        ("float32", np.array(object())),
        ("float32", Value(FORMATS["float64"], 5)),
    ],
)
def test_values_that_would_need_a_conversion_are_refused(dtype: str, value: object) -> None:
    with pytest.raises(tlir.UsageError) as refused:
        tensor_of(value, TensorType((), parse_dtype(dtype)), "x")
    assert refused.value.code == "TL0601"


def test_a_refused_array_names_the_cast() -> None:
    with pytest.raises(tlir.UsageError, match=r"array\.astype\('float32'\)"):
        tlir.load(squares()).run([np.float64([1, 2, 3, 4])])
    with pytest.raises(tlir.UsageError, match=r"is float32\[4\], and float32\[5\] was given"):
        tlir.load(squares()).run([np.float32([1, 2, 3, 4, 5])])


def test_values_of_formats_without_a_numpy_type_go_round() -> None:
    graph = LoadedGraph(graph_of(("x", "float128"), ("z", "complex<float128>")))
    one, half = Value(FORMATS["float128"], 0x3FFF << 112), Value(FORMATS["float128"], 0x3FFE << 112)
    pair = np.empty((), dtype=object)
    pair[()] = (one, half)
    first, second = graph.run([one, pair])
    assert first[()] == one
    assert second[()] == (one, half)
    again = graph.run([first, second])
    assert again[1][()] == (one, half)


def test_verify_refuses_what_it_does_not_know() -> None:
    for options in ({"frontend": "numpy"}, {"checks": ("types", "speed")}, {"name": "f"}):
        with pytest.raises(tlir.UsageError) as refused:
            tlir.verify(lambda x: x, np.float32(1), **options)
        assert refused.value.code == "TL0901"


def test_verify_without_the_frontend_says_how_to_install_it(monkeypatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "jax" else find(name, *rest))
    with pytest.raises(tlir.UnsupportedError) as refused:
        tlir.verify(lambda x: x, np.float32(1), frontend="jax")
    assert refused.value.code == "TL0803"
    assert "pip install 'tlir[jax]'" in str(refused.value)


def test_verify_jax() -> None:
    import jax

    x = np.float32([1, 2, 3, 4])
    report = tlir.verify(lambda x: (x * x).sum(), x, frontend="jax", checks=("structure", "types", "compare"))
    assert report.ok
    assert [(check.name, check.status) for check in report.checks] == [
        ("structure", "passed"),
        ("types", "passed"),
        ("compare", "passed"),
    ]
    assert len(report.graph.ir.nodes) == 3
    # XLA flushes the subnormal product on the CPU, which the default tolerance allows for and words does not
    tiny = np.float32([1e-20])
    assert tlir.verify(lambda x: x * x, tiny, checks=["compare"]).ok
    failed = tlir.verify(lambda x: x * x, tiny, words=True, checks=["compare"])
    assert not failed.ok
    (check,) = failed.checks
    assert check.status == "failed"
    assert check.findings[0].source is not None
    assert "recorded 0.0, got 1e-40" in str(failed)
    with pytest.raises(tlir.UnsupportedError) as refused:
        tlir.verify(lambda x: jax.pure_callback(lambda v: v, x, x), x)
    assert refused.value.code == "TL0804"
    assert "pure_callback" in str(refused.value)


def test_verify_torch() -> None:
    import torch

    x = torch.tensor([1.0, 2.0, 3.0, 4.0])
    report = tlir.verify(lambda x: (x * x).sum(), x, frontend="torch")
    assert report.ok
    assert report.comparison is not None
    assert report.comparison.count == 1
    assert report.graph.run([np.float32([1, 1, 1, 1])])[0] == 4


def test_verify_with_nothing_to_check_is_wrong_usage() -> None:
    for nothing in ((), []):
        with pytest.raises(tlir.UsageError, match="TL0901: verify needs something to check"):
            tlir.verify(abs, np.float32(1), checks=nothing)


def test_a_mask_is_never_dropped() -> None:
    graph = tlir.load(identity(np.float32([1, 2, 3])))
    masked = np.ma.masked_array(np.float32([1, 2, 3]), mask=[False, True, False])
    for arrays in ([masked], {"a": masked}, [np.ma.masked_array(np.float32([1, 2, 3]))]):
        with pytest.raises(tlir.UsageError, match=r"TL0601: input 'a' is a masked array"):
            graph.run(arrays)
    assert graph.run([masked.filled(0)])[0].tolist() == [1, 0, 3]


def test_large_arrays_go_from_a_capture_script_to_a_graph_in_memory() -> None:
    capture = pytest.importorskip("tlir.capture.jax_capture", reason="JAX is not installed")
    x = np.arange(100_000, dtype=np.float32)
    graph = tlir.load(capture.export(lambda x: x + 1, x))
    assert graph.compare(words=True).ok


@pytest.mark.parametrize("sample", ["0", 0.0, None, True])
def test_a_sample_is_chosen_by_an_integer(sample: object) -> None:
    graph = tlir.load(identity(np.float32([1, 2])))
    for action in (graph.run, lambda sample: graph.iterate(2, {"output": "a"}, sample=sample)):
        with pytest.raises(tlir.UsageError, match="TL0901: a sample is chosen by its number"):
            action(sample=sample)


def test_graphs_are_cast_and_reordered() -> None:
    graph = tlir.load(squares((2.0**24, 1, 1, 1), recorded=0))
    assert graph.run([np.float32([2**12, 1, 1, 1])])[0] == 2**24  # each 1 is lost, a tie to even
    wide = graph.cast("float128")
    assert str(wide.ir.body.output_types[0]) == "float128[]"
    (total,) = wide.run([np.array([2**12, 1, 1, 1], object)])
    assert str(total[()]) == str(2.0**24 + 3)
    assert graph.reorder("pairwise").run([np.float32([2**12, 1, 1, 1])])[0] == 2**24 + 2
    assert graph.reorder(dtype="float64").run([np.float32([2**12, 1, 1, 1])])[0] == np.float32(2**24 + 3)
    with pytest.raises(tlir.UsageError, match="TL0901"):
        graph.reorder()


def test_the_device_is_chosen_by_the_work_and_kept() -> None:
    from tlir.backends.automatic import COMPILED_RUNS, chosen, operations

    graph = tlir.load(identity(np.float32([1, 2, 3])))
    assert chosen("auto", graph.ir.body) == "reference"
    assert chosen("auto", graph.ir.body, runs=COMPILED_RUNS) == "cpu"
    assert chosen("auto", graph.ir.body, runs=COMPILED_RUNS, plain=False) == "reference"
    assert chosen("gpu", graph.ir.body) == "gpu"
    narrow = graph_of(("x", "int4"), ("z", "complex64"))
    assert chosen("auto", narrow.body, runs=COMPILED_RUNS) == "cpu"
    assert operations(graph.ir.body) <= 3
    attrs = {"dimension": 0, "fft_type": "FFT", "fft_length": (1024,)}
    for op, dtype in (("sort", "float32"), ("fft", "complex64")):
        type = TensorType((1024,), parse_dtype(dtype))
        body = Body((Node(0, "input", (), {}, (type,)), Node(1, op, (Ref(0),), attrs, (type,))), (0,), (Ref(1),))
        assert 1024 * 10 <= operations(body) <= 1024 * 100
    results = [graph.run([np.float32([1, 2, 3])])[0].tolist() for _ in range(COMPILED_RUNS + 1)]
    assert results == [[1, 2, 3]] * (COMPILED_RUNS + 1)
    assert graph.__dict__["_automatic"] == "cpu"


def test_comparison_by_bounds_and_of_two_artifacts() -> None:
    norm = tlir.load(ROOT / "tests" / "golden" / "torch" / "layer_norm.json")
    assert norm.compare(tolerance="auto").verdict == "reordering"  # type: ignore[attr-defined]
    assert norm.compare(tolerance="auto", policy="strict").verdict == "bug"  # type: ignore[attr-defined]
    assert tlir.compare(norm, "auto", policy="loose").ok
    with pytest.raises(tlir.ArtifactError, match="cannot be read"):
        norm.compare(tolerance="auto", accuracy="no-such-table.toml")
    golden = tlir.load(ROOT / "tests" / "golden" / "jax" / "softmax.json")
    report = golden.compare_against(str(ROOT / "examples" / "artifacts" / "low_precision_sum.json"))
    assert report.verdict == "bug"  # type: ignore[attr-defined]
    with pytest.raises(tlir.UsageError, match="different graphs"):
        golden.compare_against(norm)
