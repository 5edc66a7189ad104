"""``tlir ops --frontend`` and docs/coverage.md: complete, up to date, and true of what a capture does."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from tlir.api import _capture_script, frontend_operations
from tlir.errors import UnsupportedError, UsageError
from tlir.ir.ops import OPERATIONS
from tlir.passes.render.coverage import STATUSES, markdown

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = ("jax", "torch")
PAGE = ROOT / "docs" / "coverage.md"


def run(*arguments: str) -> Result:
    from tlir.cli.group import tlir

    return CliRunner().invoke(tlir, list(arguments), prog_name="tlir")


def script(frontend: str) -> ModuleType:
    pytest.importorskip(frontend)
    return _capture_script(f"{frontend}_capture")


def example_module(frontend: str) -> ModuleType:
    pytest.importorskip(frontend)
    path = ROOT / "examples" / f"{frontend}_examples.py"
    spec = importlib.util.spec_from_file_location(f"coverage_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def listings() -> dict[str, Any]:
    for frontend in SCRIPTS:
        pytest.importorskip(frontend)
    return {frontend: frontend_operations(frontend) for frontend in SCRIPTS}


def test_the_page_is_up_to_date(listings: dict[str, Any]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    versions = dict(zip(SCRIPTS, re.findall(r"^\d+ \w+ of \w+ ([^:]+):", page, re.MULTILINE), strict=True))
    installed = {name: listing["frontend_version"].partition("+")[0] for name, listing in listings.items()}
    if installed != versions:
        pytest.skip(f"the page is of {versions}, installed are {installed}")
    assert markdown([listings[frontend] for frontend in SCRIPTS]) == page, "run `make docs`"


@pytest.mark.parametrize("frontend", SCRIPTS)
def test_every_operation_of_the_frontend_is_there_once_and_every_one_of_tlir_exists(
    frontend: str, listings: dict[str, Any]
) -> None:
    entries = listings[frontend]["operations"]
    names = [entry["name"] for entry in entries]
    assert names == sorted(set(names))
    for entry in entries:
        assert entry["status"] in STATUSES
        if entry["status"] == "written":
            assert entry["operations"]
            assert {*entry["operations"], *entry["around"]} <= OPERATIONS.keys(), entry
        if entry["status"] == "refused":
            assert entry["reason"]
    if frontend == "jax":
        # in a process of its own: what else was imported in this one may have brought more
        program = (
            "import jax; from jax._src.interpreters.mlir import _lowerings as found; print(*{p.name for p in found})"
        )
        printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        lowered = set(printed.split())
        assert {name for name in lowered if not name.startswith(("pallas", "mosaic"))} <= set(names)
    else:
        assert script(frontend).RULES.keys() <= set(names)


@pytest.mark.parametrize("frontend", SCRIPTS)
def test_the_text_says_every_operation_that_a_rule_names(frontend: str) -> None:
    """But for JAX's ``reduce``, whose operation is that of the program's own function."""
    module = script(frontend)
    readings = {
        name: module._Reading(rule, name.partition(".")[2].split(".")[0]) for name, rule in module.RULES.items()
    }
    unread = {name for name, reading in readings.items() if reading.unread}
    assert unread <= {"reduce"}


def test_both_scripts_read_their_rules_alike() -> None:
    texts = []
    for frontend in SCRIPTS:
        text = (ROOT / "capture" / f"{frontend}_capture.py").read_text(encoding="utf-8")
        texts.append(text[text.index("# ---- which operations a rule writes") : text.index("# ---- what becomes of")])
    assert texts[0] == texts[1]


def recorded(module: ModuleType, seen: dict[str, set[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every rule note which operations it writes, by the name it is registered under."""

    def noting(name: str, rule: Callable[..., Any]) -> Callable[..., Any]:
        def write(writer: Any, *rest: Any) -> Any:
            before = len(writer.nodes)
            result = rule(writer, *rest)
            seen.setdefault(name, set()).update(node["op"] for node in writer.nodes[before:])
            return result

        return write

    for name, rule in list(module.RULES.items()):
        monkeypatch.setitem(module.RULES, name, noting(name, rule))


@pytest.mark.parametrize("frontend", SCRIPTS)
def test_a_capture_writes_what_the_list_says(
    frontend: str, listings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    module, examples = script(frontend), example_module(frontend)
    seen: dict[str, set[str]] = {}
    recorded(module, seen, monkeypatch)
    if frontend == "jax":
        builds = [example.build for example in examples.EXAMPLES if not example.x64]
    else:
        builds = list(examples.EXAMPLES.values())
    for build in builds:
        function, arguments = build(4, 2)
        try:
            module.export(function, *arguments)
        except module.UnsupportedError:
            continue
    entries = {entry["name"]: entry for entry in listings[frontend]["operations"]}
    assert len(seen) > 25
    for name, operations in seen.items():
        listed = {*entries[name].get("operations", ()), *entries[name].get("around", ())}
        assert operations <= listed, f"{name} also writes {operations - listed}"


def jax_programs() -> dict[str, Callable[[], Any]]:
    """A program per primitive of this name, or without a rule of its own."""
    import jax
    from jax import lax
    from jax.custom_derivatives import linear_call

    x, v = np.eye(3, dtype=np.float32) * 2 + np.float32(0.125), np.float32([1, 2, 3])
    script("jax")
    export = _capture_script("jax_capture").export
    like = jax.ShapeDtypeStruct((3,), np.float32)
    programs: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        "qr": (jax.numpy.linalg.qr, (x,)),
        "ragged_dot_general": (lax.ragged_dot, (x[:, :2], np.ones((2, 2, 3), np.float32), np.int32([1, 2]))),
        "linear_call": (lambda a: linear_call(lambda r, z: z * r, lambda r, z: z * r, v, a), (v,)),
        "random_gamma": (lambda key: jax.random.gamma(key, 2.0), (jax.random.key(0),)),
        "custom_linear_solve": (lambda b: lax.custom_linear_solve(lambda z: 2 * z, b, lambda _, c: c / 2), (v,)),
        "lu_pivots_to_permutation": (lambda p: lax.linalg.lu_pivots_to_permutation(p, 4), (np.int32([1, 1]),)),
        "pure_callback": (lambda a: jax.pure_callback(lambda z: z, like, a), (v,)),
        "debug_print": (lambda a: (jax.debug.print("{}", a), a)[1], (v,)),
        "new_ref": (lambda a: jax.new_ref(a)[...], (v,)),
        "eig": (jax.numpy.linalg.eig, (x,)),
        "schur": (lax.linalg.schur, (x,)),
        "hessenberg": (lax.linalg.hessenberg, (x,)),
        "tridiagonal": (lambda a: lax.linalg.tridiagonal(a), (x,)),
        "rng_uniform": (lambda a: lax.rng_uniform(a, 1 + a, (3,)), (np.float32(0),)),
        "erf": (lax.erf, (v,)),
        "while": (lambda a: lax.while_loop(lambda z: z[0] < 5, lambda z: z * 2, a), (v,)),
        "stop_gradient": (lax.stop_gradient, (v,)),
    }
    return {name: (lambda f=f, given=given: export(f, *given)) for name, (f, given) in programs.items()}


def test_what_the_list_says_of_jax_is_what_happens(listings: dict[str, Any]) -> None:
    entries = {entry["name"]: entry for entry in listings["jax"]["operations"]}
    for name, capture in jax_programs().items():
        entry = entries.get(name)
        if entry is None:  # stop_gradient is no primitive of every version
            continue
        if "reason" not in entry:
            written = {node["op"] for node in capture()["nodes"]}
            assert entry["status"] != "written" or set(entry["operations"][:1]) <= written, name
            continue
        with pytest.raises(script("jax").UnsupportedError) as error:
            capture()
        assert re.search(rf"^  {name}\b.*: {re.escape(entry['reason'])}", str(error.value), re.MULTILINE), name


def test_what_the_list_says_of_torch_is_what_happens(listings: dict[str, Any]) -> None:
    module = script("torch")
    import torch

    entries = {entry["name"]: entry for entry in listings["torch"]["operations"]}
    x = torch.arange(6.0).reshape(2, 3)
    for name, function in {
        "aten.randn.default": lambda a: a + torch.randn(2, 3),
        "aten.rand.default": lambda a: a + torch.rand(2, 3),
        "aten.randperm.default": lambda a: a[:, torch.randperm(3)],
    }.items():
        assert entries[name]["status"] == "refused"
        with pytest.raises(module.UnsupportedError, match=entries[name]["reason"]):
            module.export(function, x)
    for name, function in {
        "aten.reflection_pad1d.default": lambda a: torch.nn.functional.pad(a, (1, 1), mode="reflect"),
        "aten.col2im.default": lambda a: torch.nn.functional.fold(a.reshape(1, 6, 1), (2, 3), (2, 3)),
    }.items():
        assert entries[name]["status"] == "decomposed"
        assert module.export(function, x)["nodes"]


@pytest.mark.parametrize("frontend", SCRIPTS)
def test_a_frontend_that_is_not_installed_is_one_sentence_and_exit_code_4(
    frontend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == frontend else find(name))
    result = run("ops", "--frontend", frontend)
    assert (result.exit_code, result.stdout) == (4, "")
    assert f"TL0803: {frontend} is not installed" in result.stderr
    with pytest.raises(UnsupportedError):
        frontend_operations(frontend)


def test_wrong_usage() -> None:
    assert run("ops", "--frontend", "tensorflow").exit_code == 2
    with pytest.raises(UsageError, match="TL0901"):
        frontend_operations("tensorflow")


def test_one_operation_of_both_frontends(listings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tlir.api.frontend_operations", listings.__getitem__)
    text = run("ops", "erf", "--frontend", "jax", "--frontend", "torch").stdout
    assert [line.split() for line in text.splitlines() if "erf" in line] == [
        ["erf", "erf"],
        ["aten.erf.default", "erf"],
    ]
    document = json.loads(run("ops", "add", "--frontend", "torch", "--json").stdout)
    (torch,) = document["frontends"]
    assert [entry["name"] for entry in torch["operations"]] == [
        "aten.add.Scalar",
        "aten.add.Tensor",
        "prims.add.default",
    ]
    assert run("ops", "no_such", "--frontend", "jax").exit_code == 2
    lines = run("ops", "--frontend", "jax").stdout.splitlines()
    assert len(lines) == len(listings["jax"]["operations"]) + 3
