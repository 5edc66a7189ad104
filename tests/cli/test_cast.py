"""``tlir cast``, exact values in and out of ``tlir run``, and the same from Python."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from cli_artifacts import squares
from hypothesis import given
from hypothesis import strategies as st

import tlir as library
from tlir.arguments import tensor_of
from tlir.cli.inputs import parse_value
from tlir.cli.values import NUMBERS, array_text
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.value import Value
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, TensorType, parse_dtype
from tlir.schema import read

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


def square() -> dict:
    """x * x of one number, without a sample."""
    document = squares([1])
    document["nodes"] = document["nodes"][:2]
    document["output_ids"] = [1]
    del document["samples"]
    return document


def test_the_square_of_one_and_a_little_is_exact_in_binary128(tlir, write, tmp_path: Path) -> None:
    target = str(tmp_path / "wide.json")
    assert tlir("cast", write("square.json", square()), "--to", "binary128", "-o", target).exit_code == 0
    result = tlir("run", target, "--input", 'x=["1+1p-100"]', "--json", "--print", "rational")
    document = json.loads(result.stdout)["outputs"][0]
    # the exact square needs 201 bits; binary128 rounds it to 1 + 2^-99
    assert document["values"] == [str(1 + Fraction(1, 2**99))]
    assert document["words"] == f"{(0x3FFF << 112) + (1 << 13):032x}"
    shown = tlir("run", target, "--input", 'x=["1+1p-100"]', "--print", "hex").stdout
    assert shown.splitlines()[1].strip() == f"[0x1.{1 << 1:025x}p+0]"
    assert tlir("run", target, "--input", 'x=["1+1p-100"]', "--flags", "--json").stdout.count('"inexact": 1') == 1


@pytest.mark.parametrize("target", ["float128", "float64", "bfloat16", "e11m100"])
def test_a_cast_artifact_checks_runs_and_compares(tlir, tmp_path: Path, target: str) -> None:
    for name in ("jax/perceptron", "torch/transformer_block", "jax/complex_regression"):
        path = str(tmp_path / "cast.json")
        assert tlir("cast", str(GOLDEN / f"{name}.json"), "--to", target, "-o", path).exit_code == 0
        assert tlir("check", path).exit_code == 0
        assert tlir("run", path).exit_code == 0
        narrow = target == "bfloat16"
        assert tlir("compare", path).exit_code == (1 if narrow else 0)
    assert read(path).formats == ({"e11m100": Format(11, 100)} if target == "e11m100" else {})


def test_the_report_counts_what_rounding_changed(tlir, tmp_path: Path) -> None:
    target = str(tmp_path / "small.json")
    source = str(GOLDEN / "jax" / "mean_and_division.json")
    report = json.loads(tlir("cast", source, "--to", "float8_e4m3", "-o", target, "--json").stdout)
    assert [report[key] for key in ("file", "output", "to")] == [source, target, "float8_e4m3"]
    assert report["descriptor"]["exponent_bits"] == 4
    assert report["converts"] == {"inserted": 0, "dropped": 0, "kept": 0}
    values = {entry["place"]: entry for entry in report["constants"]}
    for node in read(source).nodes:
        if node.op == "constant":
            numbers = node.attrs["value"].to_numpy().astype(np.float64).reshape(-1)
            changed = read(target).nodes[node.id].attrs["value"].to_numpy().astype(np.float64).reshape(-1)
            assert values[str(node.id)]["inexact"] == int(np.count_nonzero(numbers != changed))
    assert tlir("cast", source, "--to", "float64", "-o", target).stdout.splitlines()[-1].endswith("in float64")


def test_where_the_artifact_and_the_report_go(tlir, write, tmp_path: Path) -> None:
    path = write("squares.json", squares())
    result = tlir("cast", path, "--to", "float64", "--keep-io")
    assert [node["dtype"] for node in json.loads(result.stdout)["nodes"]] == [
        "float32",
        "float64",
        "float64",
        "float64",
        "float32",
    ]
    assert result.stderr.splitlines()[-1] == "standard output: 2 nodes in float64, 2 converts inserted"
    assert tlir("cast", path, "--to", "float64", "--in-place").exit_code == 0
    assert tlir("compare", path).exit_code == 0
    again = tlir("cast", path, "--exponent-bits", "8", "--fraction-bits", "23", "--in-place")
    assert again.stdout.splitlines()[-1] == f"{path}: 3 nodes in float32"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), "TL0901"),
        (("--to", "float64", "--fraction-bits", "3"), "TL0901"),
        (("--exponent-bits", "3"), "TL0901"),
        (("--exponent-bits", "300", "--fraction-bits", "3"), "TL0213"),
        (("--to", "int8"), "TL0901"),
        (("--to", "complex64"), "TL0901"),
        (("--to", "float31"), "TL0901"),
        (("--to", "float64", "--from", "float16"), "TL1001"),
        (("--to", "float64", "--node", "nobody"), "TL0901"),
        (("--to", "float64", "--node", "x", "--keep-io"), "TL0901"),
        (("--to", "float64", "--in-place"), "TL0901"),
    ],
)
def test_wrong_requests_are_usage_errors(tlir, write, tmp_path: Path, arguments: tuple[str, ...], code: str) -> None:
    target = tmp_path / "out.json"
    result = tlir("cast", write("squares.json", squares()), *arguments, "-o", str(target))
    assert result.exit_code == 2
    assert code in result.stderr
    assert not target.exists()


def test_refusals_name_the_node(tlir, write) -> None:
    document = square()
    document["nodes"][1] |= {"op": "next_after"}
    result = tlir("cast", write("next.json", document), "--to", "float64")
    assert result.exit_code == 2
    assert "TL1001" in result.stderr
    assert "node 1 next_after" in result.stderr
    assert "at model.py:12" in result.stderr


def test_words_and_print_exclude_each_other(tlir, write) -> None:
    assert tlir("run", write("squares.json", squares()), "--words", "--print", "hex").exit_code == 2


@pytest.mark.parametrize(
    ("style", "shown"),
    [
        ("decimal", "[0.1, -0.0, inf, nan]"),
        ("hex", "[0x1.99999ap-4, -0x0p+0, inf, nan]"),
        ("rational", "[13421773/134217728, -0, inf, nan]"),
    ],
)
def test_the_ways_to_print_a_number(style: str, shown: str) -> None:
    tensor = Tensor.from_numpy(np.float32([0.1, -0.0, np.inf, np.nan]))
    text = array_text(tensor, False, None, NUMBERS[style])
    assert text.replace(" ", "") == shown.replace(" ", "")


WIDE = ["float128", "float16", "float8_e4m3fn", "float256", "complex<float128>", "complex64"]


@given(st.sampled_from(WIDE), st.sampled_from(sorted(NUMBERS)), st.data())
def test_every_finite_number_reads_back_from_each_way_to_print_it(name: str, style: str, data: st.DataObject) -> None:
    dtype = parse_dtype(name)
    fmt = dtype.float_format
    words = st.integers(0, fmt.word_mask).filter(fmt.is_finite)
    values = [Value(fmt, data.draw(words)) for _ in range(dtype.components)]
    item = np.empty((), object)
    item[()] = tuple(values) if dtype.is_complex else values[0]
    tensor = tensor_of(item, TensorType((), dtype), "x")
    text = array_text(tensor, False, None, NUMBERS[style])
    for back in (parse_value(json.dumps(text), tensor.type, "x"), tensor_of(text, tensor.type, "x")):
        assert back.same_words(tensor)


def test_exact_values_from_python(tmp_path: Path, tlir, write) -> None:
    target = str(tmp_path / "wide.json")
    assert tlir("cast", write("squares.json", squares()), "--to", "float128", "-o", target).exit_code == 0
    graph = library.load(target)
    third = Value(FORMATS["float128"], 0x3FFD5555555555555555555555555555)
    assert abs(third.as_fraction() - Fraction(1, 3)) < Fraction(1, 2**114)
    texts = np.array(["1/3", "0x1p-60", "1+1p-100", "0"])
    objects = np.array([Fraction(1, 3), Value(FORMATS["float32"], 0x21800000), "1+1p-100", 0], object)
    first, second = graph.run([texts]), graph.run([objects])
    assert first[0][()] == second[0][()]
    # the squares are added in order, each rounded to 113 bits
    exact = third.as_fraction() ** 2 + Fraction(1, 2**120) + (1 + Fraction(1, 2**99) + Fraction(1, 2**200))
    assert abs(first[0][()].as_fraction() - exact) < Fraction(4, 2**112)


@pytest.mark.parametrize(
    ("dtype", "value", "word"),
    [
        ("float32", "0.1", 0x3DCCCCCD),
        ("float32", Fraction(1, 3), 0x3EAAAAAB),
        ("float32", Value(FORMATS["float64"], 0x3FF8 << 48), 0x3FC00000),
        ("bfloat16", "bits:0x7fc1", 0x7FC1),
        ("float128", "1+1p-112", (0x3FFF << 112) + 1),
    ],
)
def test_texts_fractions_and_values_become_words(dtype: str, value: object, word: int) -> None:
    tensor = tensor_of(value, TensorType((), parse_dtype(dtype)), "x")
    assert sum(int(limb) << 64 * k for k, limb in enumerate(np.atleast_1d(tensor.words))) == word


@pytest.mark.parametrize(
    ("dtype", "value", "message"),
    [
        ("float32", "one", "is not a number"),
        ("float32", "1e99", "beyond the largest number"),
        ("float16", Fraction(10**6), "beyond the largest number"),
        ("float6_e2m3fn", "nan", "has no word"),
        ("float32", Value(FORMATS["float64"], 0x3FB999999999999A), "not exactly"),
        ("float32", np.array([0.1], object), "not exactly"),
        ("float32", np.array(["1", "x"]), r"\[1\]"),
        ("float32", np.array([None], object), "is not a number"),
        ("float32", np.array(["1", "2"]), r"float32\[2\] was given"),
        ("int32", "1", "other objects"),
        ("complex64", np.array([0], object), r"complex64\[1\] was given"),
    ],
)
def test_objects_that_do_not_fit_are_refused(dtype: str, value: object, message: str) -> None:
    with pytest.raises(library.UsageError, match=message) as refused:
        tensor_of(value, TensorType((), NAMED[dtype]), "x")
    assert refused.value.code == "TL0601"
