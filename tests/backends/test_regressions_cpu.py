"""The cpu device through the Python API: arrays of every kind and dtype, settings, forked processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lower_graphs import Builder, random_tensor

from tlir.api import Graph
from tlir.backends.cpu.compiled import compile_kernel
from tlir.backends.cpu.device import Executable, execute
from tlir.backends.reference import evaluate
from tlir.errors import UnsupportedError, UsageError
from tlir.floatlib.format import Format
from tlir.ir.graph import Graph as IrGraph
from tlir.ir.types import NAMED, DType, TensorType
from tlir.kernel.parse import parse_kernel
from tlir.passes.lower import REASONS
from tlir.schema import write


def unary(op: str, shape: tuple[int, ...], dtype: str) -> tuple[Graph, TensorType]:
    builder, type = Builder(np.random.default_rng(0)), TensorType(shape, NAMED[dtype])
    return Graph(IrGraph(builder.body([builder.add(op, (builder.input(type),), type)]))), type


def layouts(array: Any) -> list[Any]:
    """The same elements in other memory."""
    read_only = array.copy()
    read_only.setflags(write=False)
    odd = np.frombuffer(b"\0" + array.tobytes(), np.uint8)[1:].view(array.dtype).reshape(array.shape)
    wide = np.empty((*array.shape, 2), array.dtype)
    wide[..., 0] = array
    return [array, np.array(array, order="F"), read_only, odd, wide[..., 0]]


DTYPES = (
    *("float32", "float64", "float16", "bfloat16", "complex64", "int4", "int8", "int64", "uint2"),
    *("float8_e4m3fn", "float8_e8m0fnu", "float4_e2m1fn"),
)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (7,), (0, 3), (2, 3, 1, 2)])
def test_arrays_of_every_dtype_and_layout(dtype: str, shape: tuple[int, ...]) -> None:
    op = "not" if dtype == "uint2" else "abs" if dtype == "float8_e8m0fnu" else "negate"
    graph, type = unary(op, shape, dtype)
    array = random_tensor(np.random.default_rng(1), type).to_numpy()
    (expected,) = graph.run([array], device="reference")
    for given in layouts(array):
        (result,) = graph.run([given], device="cpu")
        assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
        assert result.tobytes() == expected.tobytes()


@pytest.mark.parametrize("setting", ["0", "abc", "-1", "1.5", "99999"])
def test_a_wrong_number_of_threads_is_an_error_for_small_graphs_too(
    monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    monkeypatch.setenv("TLIR_THREADS", setting)
    graph, _ = unary("negate", (3,), "float32")
    with pytest.raises(UsageError, match="TL0604"):
        graph.run([np.zeros(3, np.float32)], device="cpu")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own(
    monkeypatch: pytest.MonkeyPatch, exit_code: Callable[[int], int]
) -> None:
    monkeypatch.setenv("TLIR_THREADS", "3")
    graph, _ = unary("exponential", (300, 300), "float32")
    array = np.random.default_rng(0).normal(size=(300, 300)).astype(np.float32)
    (expected,) = graph.run([array], device="cpu")
    child = os.fork()
    if child == 0:
        (result,) = graph.run([array], device="cpu")
        os._exit(int(result.tobytes() != expected.tobytes()))
    assert exit_code(child) == 0


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_a_compiled_device_without_llvmlite_is_an_error_that_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    graph, _ = unary("negate", (3,), "float32")
    monkeypatch.setattr("tlir.backends.find_spec", lambda name: None)
    with pytest.raises(UnsupportedError, match="TL0802") as caught:
        graph.run({"input0": np.zeros(3, np.float32)}, device=device)
    assert caught.value.hint == f"pip install 'tlir[{device}]'"


def test_an_unknown_device_is_told_every_device_there_is() -> None:
    graph, _ = unary("negate", (3,), "float32")
    for run in (graph.run, lambda arrays, device: graph.iterate(1, arrays=arrays, device=device)):
        with pytest.raises(UsageError, match="TL0901") as caught:
            run([np.zeros(3, np.float32)], device="CPU")
        assert caught.value.hint == "the devices are reference, cpu, gpu, auto"


@pytest.mark.parametrize("op", ["negate", "sqrt", "exponential"])
def test_formats_of_one_name_do_not_share_kept_code(op: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    formats = [Format(5, 10), Format(8, 7), Format(6, 9), Format(5, 10, bias=3), Format(5, 10, None, False, "all_ones")]
    random = np.random.default_rng(0)
    for fmt in formats:
        type = TensorType((50,), DType("own", "float", 16, fmt))
        builder = Builder(random)
        squared = builder.add("multiply", (x := builder.input(type), x), type)
        body = builder.body([builder.add(op, (squared,), type)])
        words = [random_tensor(random, type)]
        for expected, result in zip(evaluate(body, words), Executable(body).run(words), strict=True):
            assert expected.same_words(result)


def test_an_interruption_in_the_specification_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: Any) -> Any:
        raise KeyboardInterrupt

    graph, _ = unary("tanh", (4,), "float32")
    given = [np.full(4, 0xBD35A6AC, np.uint32).view(np.float32)]  # the quick bound does not decide how it rounds
    (expected,) = graph.run(given, device="reference")
    for function in ("elementary", "evaluate"):
        monkeypatch.setattr(f"tlir.floatlib.elementary.{function}", interrupted)
    for arrays in (given, {"input0": given[0]}):
        with pytest.raises(KeyboardInterrupt):
            graph.run(arrays, device="cpu")
    monkeypatch.undo()
    assert graph.run(given, device="cpu")[0].tobytes() == expected.tobytes()


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize(("number", "said"), [(signal.SIGINT, b"interrupted\n"), (signal.SIGTERM, b"")])
def test_a_kernel_that_takes_hours_can_be_interrupted(number: signal.Signals, said: bytes, tmp_path: Path) -> None:
    builder = Builder(np.random.default_rng(0))
    scalar, huge = TensorType((), NAMED["float32"]), TensorType((1 << 18, 1 << 20), NAMED["float32"])
    spread = builder.add("broadcast_in_dim", (builder.input(scalar),), huge, broadcast_dimensions=())
    body = builder.body([builder.add("reduce", (spread,), scalar, reducer="add", dimensions=(0, 1))])
    write(IrGraph(body), tmp_path / "sum.json")
    command = [sys.executable, "-m", "tlir.cli", "run", "sum.json", "--input", "input0=1"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}

    def as_in_a_terminal() -> None:
        """A shell starts what runs in its background with interrupts ignored, and the tests may run there."""
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=as_in_a_terminal,
    )
    try:
        # its code is kept before it runs
        while process.poll() is None and not list(tmp_path.rglob("*.o")):
            time.sleep(0.1)
        time.sleep(1)
        assert process.poll() is None
        process.send_signal(number)
        _, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (process.returncode, errors) == (128 + number, said)


def test_a_guard_of_all_lanes_where_each_lane_takes_its_branch() -> None:
    kernel = parse_kernel(
        """
        kernel @k(n0: input float32[64], n1: output float32[64]) space(i0 < 4, i1 < 16) {
          v0: int64 = position i1
          v1: int64 = literal 0x7
          v2: bool = compare(v0, v1) {comparison_direction = "LT"}
          v3: float32 = literal 0x3f800000
          v4: float32 = if v2 {
            v5: float32 = load n0[16*i0 + i1 - 16] where 1 <= i0 < 4 else v3
            yield v5
          } else {
            yield v3
          }
          store n1[16*i0 + i1] = v4
        }
        """
    )
    compiled = compile_kernel(kernel)
    assert not isinstance(compiled, str)
    given, result = np.arange(64, dtype=np.uint32), np.empty(64, np.uint32)
    execute(compiled, [given, result], 64)
    expected = np.full((4, 16), 0x3F800000, np.uint32)
    expected[1:, :7] = given.reshape(4, 16)[:3, :7]
    assert np.array_equal(result.reshape(4, 16), expected)


@pytest.mark.parametrize("dtype", [name for name in NAMED if not NAMED[name].is_complex])
def test_scalars_of_every_dtype_are_arrays_between_the_steps(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The result of sorting goes from the reference to a kernel."""
    monkeypatch.setitem(REASONS, "sort", "the reference is to do it")
    type = TensorType((), NAMED[dtype])
    line = TensorType((1,), NAMED[dtype])
    builder = Builder(random := np.random.default_rng(0))
    x = builder.add("reshape", (given := builder.input(type),), line)
    ordered = builder.add("sort", (x,), line, dimension=0, descending=False)
    scalar = builder.add("reshape", (ordered,), type)
    greatest = [builder.add("maximum", (scalar, value), type) for value in (scalar, given)]
    graph = Graph(IrGraph(builder.body([*greatest, ordered])))
    array = [random_tensor(random, type).to_numpy()]
    if array[0].dtype != object:
        expected, results = (graph.run(array, device=device) for device in ("reference", "cpu"))
        assert [result.tobytes() for result in results] == [result.tobytes() for result in expected]


@pytest.mark.parametrize("probe", [{"_SMALLEST_NORMAL": 0.0}, {"_QUARTER": 1.0}], ids=["flushing", "rounding up"])
@pytest.mark.parametrize("op", ["cholesky", "geqrf"])
def test_nodes_without_a_kernel_refuse_a_changed_control_register(
    op: str, probe: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the reference does, where they compute by the processor's arithmetic; they go on where they do not."""
    monkeypatch.setitem(REASONS, op, "the reference is to do it")
    graph, type = unary(op, (3, 3), "float32")
    if op == "geqrf":
        given, node = graph.ir.body.nodes
        with_scales = replace(node, types=(type, TensorType((3,), type.dtype)))
        graph = Graph(IrGraph(replace(graph.ir.body, nodes=(given, with_scales))))
    x = np.full(type.shape, 0.25, np.float32) + np.eye(3, dtype=np.float32)
    (expected,) = graph.run([x], device="reference")
    for name, value in probe.items():
        monkeypatch.setattr(f"tlir.floatlib.native.{name}", value)
    if op == "geqrf":
        with pytest.raises(UnsupportedError, match="this thread") as caught:
            graph.run([x], device="cpu")
        assert caught.value.code == "TL0604"
    else:
        (result,) = graph.run([x], device="cpu")
        assert result.tobytes() == expected.tobytes()


@pytest.mark.parametrize("count", [5, 1 << 17, 3 << 17, 5 << 18])
@pytest.mark.parametrize("dtype", [name for name in NAMED if not NAMED[name].is_complex and NAMED[name].bits <= 8])
def test_results_of_every_narrow_dtype_and_size(dtype: str, count: int) -> None:
    """Their NumPy types are not NumPy's own, and their memory comes from different places by its size."""
    graph, type = unary("reverse", (count,), dtype)
    (given, node) = graph.ir.body.nodes
    graph = Graph(IrGraph(replace(graph.ir.body, nodes=(given, replace(node, attrs={"dimensions": (0,)})))))
    x = random_tensor(np.random.default_rng(0), type).to_numpy()
    if x.dtype == object:
        return
    for _ in range(2):
        (result,) = graph.run([x], device="cpu")
        assert result.dtype == x.dtype
        assert result.tobytes() == x[::-1].tobytes()
        result[...] = x
