"""``tlir run``: values, words, inputs, flags and files."""

from __future__ import annotations

import json
import os
import struct

import numpy as np
import pytest
from cli_artifacts import identity, ill_typed, squares, tensor
from safetensors.numpy import load_file

NARROWING = {
    "format": "tlir",
    "version": 1,
    "name": "narrow",
    "input_ids": [0],
    "output_ids": [2],
    "nodes": [
        {"id": 0, "op": "input", "inputs": [], "shape": [], "dtype": "float64", "name": "x"},
        {
            "id": 1,
            "op": "convert",
            "inputs": [0],
            "shape": [],
            "dtype": "float32",
            "source": {"file": "narrow.py", "line": 3, "function": "f"},
        },
        {"id": 2, "op": "convert", "inputs": [1], "shape": [], "dtype": "float64"},
    ],
}


def test_the_sum_of_squares_is_thirty(tlir, write) -> None:
    path = write("squares.json", squares())
    assert tlir("run", path).stdout == "output  float32[]  30.0\n"
    assert tlir("run", path, "--words").stdout == "output  float32[]  41f00000\n"


def test_a_conversion_that_rounds_says_inexact_and_where(tlir, write) -> None:
    """16777217 needs one bit more than float32 has."""
    path = write("narrow.json", NARROWING)
    result = tlir("run", path, "--input", "x=16777217", "--flags")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "output  float64[]  16777216.0"
    assert lines[3].split() == ["node", "type", "elements", "inexact", "source"]
    assert lines[4].split() == ["1", "convert", "float32[]", "1", "1", "narrow.py:3"]
    assert lines[5].strip() == "1 other node of arithmetic or conversion raised no flag"
    exact = tlir("run", path, "--input", "x=16777216", "--flags", "--json")
    counts = json.loads(exact.stdout)["flags"]
    assert [(entry["node"], entry["inexact"], entry["elements"]) for entry in counts] == [
        ("1 convert", 0, 1),
        ("2 convert", 0, 1),
    ]


def test_arrays_are_aligned_and_large_ones_have_statistics(tlir, write) -> None:
    path = write("two.json", identity(np.int32([[1, -200], [30, 4]]), np.bool_([True, False])))
    assert tlir("run", path).stdout.splitlines() == [
        "output[0]  int32[2,2]",
        "  [[   1, -200],",
        "   [  30,    4]]",
        "output[1]  bool[2]",
        "  [ true, false]",
    ]
    values = np.arange(1000, dtype=np.float32) / 8
    values[3], values[4] = np.nan, -np.inf
    text = tlir("run", write("large.json", identity(values))).stdout
    assert "..." in text
    mean = sum(k for k in range(1000) if k not in (3, 4)) / 8 / 998
    assert f"1000 elements: min 0.0  max 124.875  mean {mean:.6g}  NaN 1  infinite 1" in text


@pytest.mark.parametrize("dtype", ["int64", "uint64", "float64"])
def test_statistics_do_not_overflow(tlir, write, dtype: str) -> None:
    top = np.finfo(dtype).max if dtype == "float64" else np.iinfo(dtype).max
    text = tlir("run", write("top.json", identity(np.full(300, top, dtype)))).stdout
    assert f"max {top}" in text
    assert f"mean {float(top):.6g}" in text


def test_json_holds_words_and_values(tlir, write) -> None:
    document = identity(np.float32([1.5, np.nan]), np.bool_([True, False]), np.int32(7))
    result = json.loads(tlir("run", "--json", write("three.json", document)).stdout)
    assert [output["name"] for output in result["outputs"]] == ["output[0]", "output[1]", "output[2]"]
    assert [output["words"] for output in result["outputs"]] == ["3fc00000 7fc00000", "1 0", "00000007"]
    assert [output["values"] for output in result["outputs"]] == [["1.5", "nan"], [True, False], 7]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[1, 2.5, -0.0, 0.1]", [0x3F800000, 0x40200000, 0x80000000, 0x3DCCCCCD]),
        ('["0x1.8p3", "1/3", "nan", "-inf"]', [0x41400000, 0x3EAAAAAB, 0x7FC00000, 0xFF800000]),
        ('["bits:0x7fc00001", "1+1p-23", 1e-46, NaN]', [0x7FC00001, 0x3F800001, 0, 0x7FC00000]),
        # half way between two float32 numbers, and above it by less than binary64 could tell
        (
            "[1.000000059604644775390625, 1.0000000596046447753906250000000001, 0, 0]",
            [0x3F800000, 0x3F800001, 0, 0],
        ),
        ('{"dtype": "float32", "shape": [4], "words": "7fc00001 00000001 00000000 ff800000"}', None),
    ],
)
def test_inputs_are_rounded_once_from_their_text(tlir, write, text: str, words: list[int] | None) -> None:
    path = write("id.json", identity(np.zeros(4, np.float32)))
    expected = "7fc00001 00000001 00000000 ff800000" if words is None else " ".join(f"{word:08x}" for word in words)
    for value in (text, write("value.json", text)):
        document = json.loads(tlir("run", path, "--input", f"a={value}", "--json").stdout)
        assert document["outputs"][0]["words"] == expected


def test_scalars_need_no_quotes(tlir, write) -> None:
    path = write("narrow.json", NARROWING)
    for text, shown in (("1/4", "0.25"), ("nan", "nan"), ("-inf", "-inf"), ("0x1p-3", "0.125"), ('"1e2"', "100.0")):
        assert tlir("run", path, "--input", f"x={text}").stdout == f"output  float64[]  {shown}\n"


def complex_artifact() -> dict:
    document = identity(np.zeros((), np.float32))
    document["nodes"][0]["dtype"] = "complex64"
    return {key: value for key, value in document.items() if key != "samples"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1.5-0.25j", "1.5-0.25j"),
        ("1e-3+2e+2j", "0.001+200.0j"),
        ("-j", "0.0-1.0j"),
        ("2j", "0.0+2.0j"),
        ("-3", "-3.0+0.0j"),
        ("inf-nanj", "inf+nanj"),
        ("1e-3-2e-2j", "0.001-0.02j"),
        ("0x1e+2j", "30.0+2.0j"),
        ("0x1p-3-0x1p+1j", "0.125-2.0j"),
        ("1+1p-2-1/2j", "1.25-0.5j"),
        ("-1.5e2j", "0.0-150.0j"),
    ],
)
def test_complex_numbers(tlir, write, text: str, shown: str) -> None:
    result = tlir("run", write("complex.json", complex_artifact()), "--input", f"a={text}")
    assert result.stdout == f"output  complex64[]  {shown}\n"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("[1,2,3]", "expected a list of 4, found a list of 3"),
        ("[[1],2,3,4]", "a list at [0]"),
        ("5", "expected a list of 4, found no list"),
        ("[1,2,3,1e39]", "beyond the largest number of float32"),
        ("[1,2,3,true]", "true is not a number"),
        ("[1,2,3,null]", "null is not a number"),
        ('[1,2,3,"four"]', "'four' is not a number"),
        ("[1,2,3", "neither a number nor JSON"),
        ("[" * 100000, "neither a number nor JSON"),
        ('{"dtype": "float32", "shape": [3], "words": ""}', "a tensor float32[3] was given"),
        ('{"dtype": "float32", "shape": [4], "words": "0"}', "1 words"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(tlir, write, value: str, message: str) -> None:
    result = tlir("run", write("id.json", identity(np.zeros(4, np.float32))), "--input", f"a={value}")
    assert result.exit_code == 2
    assert "TL0601" in result.stderr
    assert message in result.stderr


@pytest.mark.parametrize(("dtype", "value"), [("int8", "128"), ("int8", "1.0"), ("uint8", "-1"), ("bool", "2")])
def test_integers_out_of_range_are_refused(tlir, write, dtype: str, value: str) -> None:
    document = identity(np.zeros((), np.float32))
    document["nodes"][0]["dtype"] = dtype
    del document["samples"]
    result = tlir("run", write("integer.json", document), "--input", f"a={value}")
    assert result.exit_code == 2
    assert "TL0601" in result.stderr


def test_npy_inputs_must_fit_exactly(tlir, write, tmp_path) -> None:
    path = write("squares.json", squares())
    right, wide = tmp_path / "right.npy", tmp_path / "wide.npy"
    np.save(right, np.float32([1, 1, 1, 1]))
    np.save(wide, np.float64([1, 1, 1, 1]))
    assert tlir("run", path, "--input", f"x={right}").stdout == "output  float32[]  4.0\n"
    refused = tlir("run", path, "--input", f"x={wide}")
    assert refused.exit_code == 2
    assert "input 'x' is float32[4], and float64[4] was given" in refused.stderr
    assert "array.astype('float32')" in refused.stderr
    text = write("text.npy", "no array")
    assert "is not a .npy file" in tlir("run", path, "--input", f"x={text}").stderr
    assert "TL0902" in tlir("run", path, "--input", "x=absent.npy").stderr


def test_names_samples_and_missing_inputs(tlir, write) -> None:
    document = identity(np.float32(1), np.float32(2))
    document["nodes"][0]["name"] = "p['w=1']"
    second = [tensor(np.float32(5)), tensor(np.float32(6))]
    document["samples"].append({"inputs": second, "outputs": second})
    path = write("two.json", document)
    assert "5.0" in tlir("run", path, "--sample", "1").stdout
    mixed = tlir("run", path, "--sample", "1", "--input", "p['w=1']=9").stdout
    assert [line.split()[-1] for line in mixed.splitlines()] == ["9.0", "6.0"]
    for arguments, code in (
        (["--sample", "2"], "TL0602"),
        (["--sample", "-1"], "TL0602"),
        (["--input", "c=1"], "TL0601"),
        (["--input", "b"], "TL0901"),
        (["--input", "b=1", "--input", "b=2"], "TL0901"),
    ):
        result = tlir("run", path, *arguments)
        assert result.exit_code == 2
        assert code in result.stderr
        assert path in result.stderr
    del document["samples"]
    bare = write("bare.json", document)
    assert "TL0602" in tlir("run", bare).stderr
    assert "no value for input" in tlir("run", bare, "--input", "b=1").stderr


def test_outputs_in_files(tlir, write, tmp_path) -> None:
    arrays = np.float32([[1, -0.0], [np.nan, 3]]), np.bool_([True]), np.int32(-7)
    path = write("three.json", identity(*arrays))
    target = {suffix: tmp_path / f"out.{suffix}" for suffix in ("json", "npz", "safetensors")}
    for file in target.values():
        result = tlir("run", path, "--output", str(file))
        assert result.exit_code == 0, result.stderr
    for loaded in (np.load(target["npz"]), load_file(target["safetensors"])):
        for k, array in enumerate(arrays):
            found = loaded[f"output[{k}]"]
            assert found.dtype == array.dtype
            assert found.tobytes() == np.asarray(array).tobytes()
    assert json.loads(target["json"].read_text()) == json.loads(tlir("run", path, "--json").stdout)
    single = tmp_path / "one.npy"
    tlir("run", write("one.json", identity(arrays[0])), "--output", str(single))
    assert np.load(single).tobytes() == arrays[0].tobytes()
    assert sorted(os.listdir(tmp_path)) == sorted(
        ["three.json", "one.json", "one.npy", *(file.name for file in target.values())]
    )


def test_formats_that_cannot_hold_the_values_are_refused_before_running(tlir, write, tmp_path) -> None:
    document = identity(np.zeros(2, np.float32))
    document["nodes"][0]["dtype"] = "bfloat16"
    document["samples"][0] = {
        side: [{"dtype": "bfloat16", "shape": [2], "words": "3f80 4000"}] for side in ("inputs", "outputs")
    }
    path = write("bf16.json", document)
    for suffix in ("npy", "npz"):
        refused = tlir("run", path, "--output", str(tmp_path / f"o.{suffix}"))
        assert refused.exit_code == 4
        assert "TL0805" in refused.stderr
        assert ".safetensors" in refused.stderr
    assert tlir("run", path, "--output", str(tmp_path / "o.safetensors")).exit_code == 0
    raw = (tmp_path / "o.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    assert json.loads(raw[8 : 8 + size])["output"]["dtype"] == "BF16"
    assert raw[8 + size :] == bytes.fromhex("803f0040")
    two = write("two.json", identity(np.float32(1), np.float32(2)))
    assert tlir("run", two, "--output", str(tmp_path / "o.npy")).exit_code == 2
    assert tlir("run", two, "--output", str(tmp_path / "o.txt")).exit_code == 2
    assert tlir("run", two, "--output", str(tmp_path / "absent" / "o.json")).exit_code == 2


def test_a_file_that_cannot_be_replaced_is_left_alone(tlir, write, tmp_path) -> None:
    (tmp_path / "taken.json").mkdir()
    result = tlir("run", write("one.json", squares()), "--output", str(tmp_path / "taken.json"))
    assert result.exit_code == 2
    assert "TL0109" in result.stderr
    assert sorted(os.listdir(tmp_path)) == ["one.json", "taken.json"]


def test_graphs_that_cannot_run(tlir, write) -> None:
    bad = tlir("run", write("bad.json", ill_typed()))
    assert bad.exit_code == 3
    assert "bad.json: /nodes/1: node 1 multiply" in bad.stderr
    assert tlir("run", write("good.json", squares()), "--device", "gpu").exit_code == 4


def test_what_a_run_did_and_how_long_it_took(tlir, write) -> None:
    path = write("one.json", squares())
    found = json.loads(tlir("run", path, "--device", "cpu", "--stats", "--time", "--json").stdout)
    assert found["stats"]["kernels"] >= 1
    assert found["stats"]["reference"] == []
    assert set(found["stats"]["cache"]) == {"hits", "compiled"}
    assert list(found["time"]) == ["load", "lower", "compile", "first run", "warm run"]
    assert all(seconds >= 0 for seconds in found["time"].values())
    shown = tlir("run", path, "--device", "cpu", "--stats", "--time").stdout
    assert "nodes on the reference" in shown
    assert "warm run" in shown
    assert json.loads(tlir("run", path, "--stats", "--json").stdout)["stats"]["kernels"] == 0


def test_the_cpu_device_gives_the_reference_words_and_no_flags(tlir, write) -> None:
    path = write("one.json", squares())
    on_cpu, by_reference = (json.loads(tlir("run", path, "--device", d, "--json").stdout) for d in ("cpu", "reference"))
    assert on_cpu["outputs"] == by_reference["outputs"]
    refused = tlir("run", path, "--device", "cpu", "--flags")
    assert refused.exit_code == 4
    assert "does not give IEEE 754 flags" in refused.stderr
    assert tlir("compare", path, "--device", "cpu").exit_code in (0, 1)
