"""``tlir ops`` and ``tlir info``: the inventory is complete and up to date, the numbers are those of NumPy."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from cli_artifacts import squares

from tlir.ir.ops import OPERATIONS
from tlir.ir.types import NAMED
from tlir.passes.lower import LOWERED

ROOT = Path(__file__).resolve().parents[2]
FLOATS = [name for name, dtype in NAMED.items() if dtype.is_float]


def test_the_page_of_operations_is_up_to_date(tlir) -> None:
    page = (ROOT / "docs" / "ops.md").read_text(encoding="utf-8")
    assert tlir("ops", "--markdown").stdout == page, "run `make docs`"


def test_the_page_has_every_operation_attribute_and_constraint() -> None:
    page = (ROOT / "docs" / "ops.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL))
    assert sections.keys() == OPERATIONS.keys()
    for name, operation in OPERATIONS.items():
        assert re.findall(r"^\| `(\w+)` \|", sections[name], re.MULTILINE) == list(operation.attributes)
        assert re.findall(r"^\* (C\d+): ", sections[name], re.MULTILINE) == list(operation.constraints)
        for row in re.findall(r"^\|.*\|$", sections[name], re.MULTILINE):
            assert len(re.findall(r"(?<!\\)\|", row)) == 5


def test_the_list_has_every_operation_and_the_devices(tlir) -> None:
    result = tlir("ops")
    assert result.exit_code == 0
    names = {line.split()[0] for line in result.stdout.splitlines() if line.startswith("  ")}
    assert OPERATIONS.keys() <= names
    counts = f"reference evaluates {len(OPERATIONS)}, cpu evaluates {len(LOWERED)}, gpu evaluates {len(LOWERED)}"
    assert result.stdout.splitlines()[-1] == f"{len(OPERATIONS)} operations: {counts}"
    document = json.loads(tlir("ops", "--json").stdout)
    assert [entry["name"] for entry in document["operations"]] == list(OPERATIONS)
    for entry in document["operations"]:
        lowered = entry["name"] in LOWERED
        assert entry["devices"] == {"reference": True, "cpu": lowered, "gpu": lowered}


def test_one_operation_is_explained(tlir) -> None:
    text = tlir("ops", "reduce").stdout
    operation = OPERATIONS["reduce"]
    assert operation.meaning in text
    for label, constraint in operation.constraints.items():
        assert f"{label}  {constraint}" in text
    document = json.loads(tlir("ops", "reduce", "--json").stdout)
    assert document["constraints"] == dict(operation.constraints)
    assert document["attributes"]["dimensions"]["schema"]["type"] == "array"


def test_an_unknown_operation_has_suggestions(tlir) -> None:
    result = tlir("ops", "multply")
    assert result.exit_code == 2
    assert "did you mean multiply" in result.stderr
    assert tlir("ops", "add", "--markdown").exit_code == 2
    assert tlir("ops", "--json", "--markdown").exit_code == 2


def numpy_info(name: str) -> ml_dtypes.finfo | None:
    """What NumPy or ml_dtypes says of a format, None where neither knows it."""
    kind = getattr(ml_dtypes, name, None) or getattr(np, name, None)
    return None if kind is None or name == "float128" else ml_dtypes.finfo(kind)


@pytest.mark.parametrize("name", FLOATS)
def test_the_numbers_of_every_format_are_those_of_numpy(tlir, name: str) -> None:
    facts = json.loads(tlir("info", name, "--json").stdout)
    assert name in facts["dtypes"]
    assert tlir("info", name).exit_code == 0
    info = numpy_info(name)
    if info is None:
        return
    numbers = {key: float.fromhex(number["hexadecimal"]) for key, number in facts["numbers"].items()}
    assert numbers["largest"] == float(info.max)
    assert numbers["smallest_normal"] == float(info.smallest_normal)
    assert numbers.get("smallest_subnormal", numbers["smallest_normal"]) == float(info.smallest_subnormal)
    assert numbers["epsilon"] == float(info.eps)
    assert facts["width"] == info.bits
    assert facts["exponent_bits"] == info.nexp
    for number in facts["numbers"].values():
        kind = getattr(ml_dtypes, name, None) or getattr(np, name)
        value = np.array(float.fromhex(number["hexadecimal"]), kind)
        assert value.tobytes()[::-1].hex().endswith(number["word"].removeprefix("0x"))


def test_formats_of_ones_own(tlir) -> None:
    by_name = json.loads(tlir("info", "e5m10", "--json").stdout)
    assert by_name == json.loads(tlir("info", "float16", "--json").stdout)
    bits = ("--exponent-bits", "4", "--fraction-bits", "3", "--json")
    flags = ("--bias", "8", "--nans", "negative_zero", "--no-infinities", "--no-signed-zero")
    assert json.loads(tlir("info", *bits, *flags).stdout)["name"] == "float8_e4m3fnuz"
    unsigned = ("--no-infinities", "--nans", "all_ones", "--no-signed-zero", "--unsigned", "--no-subnormals")
    scale = ("--exponent-bits", "8", "--fraction-bits", "0", "--json")
    assert json.loads(tlir("info", *scale, *unsigned).stdout)["name"] == "float8_e8m0fnu"
    # the largest of 30 exponent bits has 161 million decimal digits before the point
    large = json.loads(tlir("info", "e30m4096", "--json").stdout)
    assert large["numbers"]["largest"]["decimal"].endswith("p+536870911")
    assert json.loads(tlir("info", "e2m1", "--json").stdout)["numbers"]["epsilon"]["exact"] == "1/2"


def test_integers_bool_and_complex(tlir) -> None:
    facts = json.loads(tlir("info", "int4", "--json").stdout)
    assert (facts["least"], facts["greatest"], facts["width"]) == (-8, 7, 4)
    assert json.loads(tlir("info", "uint64", "--json").stdout)["greatest"] == np.iinfo(np.uint64).max
    assert json.loads(tlir("info", "bool", "--json").stdout) == {"name": "bool", "kind": "bool", "width": 1}
    facts = json.loads(tlir("info", "complex<float16>", "--json").stdout)
    assert (facts["width"], facts["components"]["name"]) == (32, "float16")
    for name in ("int4", "bool", "complex64"):
        assert tlir("info", name).stdout.startswith(f"{name}: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--exponent-bits", "5"), "needs both"),
        (("float16", "--bias", "3"), "either by its name or by its bits"),
        (("e1m0",), "TL0213"),
        (("e99m1",), "TL0213"),
        (("--exponent-bits", "4", "--fraction-bits", "3", "--no-infinities"), "TL0213"),
        (("float17",), "neither a dtype nor a file"),
        (("none.json",), "TL0902"),
    ],
)
def test_what_is_no_format_and_no_file(tlir, arguments: tuple[str, ...], message: str) -> None:
    result = tlir("info", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_an_artifact_in_numbers(tlir, write) -> None:
    path = write("squares.json", squares())
    facts = json.loads(tlir("info", path, "--json").stdout)
    assert facts["version"] == 1
    assert facts["counts"]["nodes"] == 3
    assert facts["operations"] == {"input": 1, "multiply": 1, "reduce": 1}
    assert facts["bytes"]["file"] == Path(path).stat().st_size
    assert facts["external"] == {}
    text = tlir("info", path).stdout
    assert "format version 1" in text
    assert "1 input, 1 multiply, 1 reduce" in text
    assert tlir("info", write("bad.json", "nonsense")).exit_code == 3


def test_the_installation_is_told_without_importing_a_frontend(process) -> None:
    code = (
        "import sys\nfrom tlir.cli.group import tlir\n"
        "tlir(['info', '--json'], standalone_mode=False)\n"
        "assert not {'jax', 'torch'} & set(sys.modules)\n"
    )
    import subprocess

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", cwd=ROOT, timeout=120)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["packages"]["numpy"] == np.__version__
    assert facts["python"] == ".".join(map(str, sys.version_info[:3]))
    assert facts["devices"].keys() == {"reference", "cpu", "gpu"}
    assert facts["dtypes"] == list(NAMED)
    assert process("info").stdout.startswith("tlir ")
