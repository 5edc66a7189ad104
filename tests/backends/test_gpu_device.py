"""What the device gpu does around its kernels, with a stand-in for CuPy that runs the host build of the source."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from cuda_forms import inputs_of, reduction
from cuda_standin import Module, OutOfMemoryError, install, without_machine_code
from hypothesis import given, settings
from hypothesis import strategies as st
from lower_graphs import Builder, random_graph, random_tensor

from tlir.backends import run
from tlir.backends.cuda import device, kept, nvrtc
from tlir.backends.reference import evaluate
from tlir.errors import UnsupportedError
from tlir.floatlib.elementary.wide import loop as wide
from tlir.ir.graph import Body, Graph, Node, Ref
from tlir.ir.ops import Accumulate
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, TensorType

FOUND = device.cupy
"""The real function, which the stand-in takes the place of."""


def test_without_a_gpu_there_is_one_sentence_and_no_fallback() -> None:
    try:
        device.cupy()
    except UnsupportedError:
        pass
    else:
        pytest.skip("there is a GPU")
    builder = Builder(np.random.default_rng(0))
    type = TensorType((2,), NAMED["float32"])
    body = builder.body([builder.add("negate", (builder.input(type),), type)])
    inputs = [random_tensor(np.random.default_rng(1), type)]
    with pytest.raises(UnsupportedError, match=r"GPU|CuPy") as caught:
        run(Graph(body), inputs, device="gpu")
    assert caught.value.code == "TL0802"


@pytest.fixture(scope="module")
def gpu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """A GPU of one processor, with a folder of its own for what is kept."""
    if nvrtc.library() is None:
        pytest.skip("NVRTC is not installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield install(patch)


@pytest.mark.usefixtures("gpu")
@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_random_graphs(seed: int) -> None:
    body, inputs = random_graph(seed, 1 + seed % 10)
    with pytest.MonkeyPatch.context() as patch:
        # real machine code takes most of the time, and other tests have it
        patch.setattr(nvrtc, "code", without_machine_code)
        results = device.evaluate(body, inputs)
    for expected, result in zip(evaluate(body, inputs), results, strict=True):
        assert expected.same_words(result)


FLOAT32, INT32, BOOL = NAMED["float32"], NAMED["int32"], NAMED["bool"]
STATE = TensorType((5, 5), FLOAT32)
COUNT = TensorType((), INT32)


def several(
    builder: Builder, op: str, inputs: list[Ref], types: tuple[TensorType, ...], *regions: Body, **attrs: object
) -> list[Ref]:
    number = len(builder.nodes)
    builder.nodes.append(Node(number, op, tuple(inputs), attrs, types, regions=regions))
    return [Ref(number, k) for k in range(len(types))]


def multiplied(builder: Builder, x: Ref, y: Ref) -> Ref:
    axes = {"lhs_contracting_dimensions": (1,), "rhs_contracting_dimensions": (0,)}
    batch = {"lhs_batching_dimensions": (), "rhs_batching_dimensions": ()}
    return builder.add("dot_general", (x, y), STATE, **axes, **batch)


def looped() -> Body:
    """A while that data ends, whose body multiplies matrices and takes a branch."""
    inner = Builder(np.random.default_rng(0))
    number, state, factor = inner.input(COUNT), inner.input(STATE), inner.input(STATE)
    one = inner.add("constant", (), COUNT, value=Tensor(COUNT, np.array(1, np.uint32)))
    branches = []
    for op in ("tanh", "negate", "sine"):
        branch = Builder(np.random.default_rng(0))
        x, y = branch.input(STATE), branch.input(STATE)
        branches.append(branch.body([branch.add(op, (multiplied(branch, x, y),), STATE)]))
    (following,) = several(inner, "case", [number, state, factor], (STATE,), *branches)
    body = inner.body([inner.add("add", (number, one), COUNT), following, factor])
    ended = Builder(np.random.default_rng(0))
    number, limit = ended.input(COUNT), ended.add("constant", (), COUNT, value=Tensor(COUNT, np.array(4, np.uint32)))
    ended.input(STATE)
    ended.input(STATE)
    condition = ended.body([ended.add("compare", (number, limit), TensorType((), BOOL), comparison_direction="LT")])
    outer = Builder(np.random.default_rng(0))
    given = [outer.input(COUNT), outer.input(STATE), outer.input(STATE)]
    types = (COUNT, STATE, STATE)
    return outer.body(several(outer, "while", given, types, condition, body))


def scanned(reverse: bool) -> Body:
    """A recurrence of matrices that stacks what every step has, and reads single numbers."""
    inner = Builder(np.random.default_rng(0))
    factor, state, x, weight = (inner.input(type) for type in (STATE, STATE, STATE, TensorType((), FLOAT32)))
    scaled = inner.add("multiply", (x, inner.add("broadcast_in_dim", (weight,), STATE, broadcast_dimensions=())), STATE)
    state = inner.add("tanh", (inner.add("add", (multiplied(inner, state, factor), scaled), STATE),), STATE)
    row = inner.add("reduce", (state,), TensorType((5,), FLOAT32), reducer="add", dimensions=(0,))
    body = inner.body([state, row])
    outer = Builder(np.random.default_rng(0))
    stacked = (TensorType((6, 5, 5), FLOAT32), TensorType((6,), FLOAT32))
    given = [outer.input(type) for type in (STATE, STATE, *stacked)]
    attrs = {"num_consts": 1, "num_carry": 1, "length": 6, "reverse": reverse}
    return outer.body(several(outer, "scan", given, (STATE, TensorType((6, 5), FLOAT32)), body, **attrs))


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("body", [looped(), scanned(False), scanned(True)], ids=["while", "scan", "reverse"])
def test_regions_run_on_arrays_that_stay(body: Body, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "code", without_machine_code)
    monkeypatch.setattr(device, "REGION_COMPILED_FROM", 0)
    inputs = [random_tensor(np.random.default_rng(k), type) for k, type in enumerate(body.input_types)]
    inputs = [Tensor(t.type, np.array(0, np.uint32)) if t.type == COUNT else t for t in inputs]
    executable = device.GpuExecutable(body)
    fetched: list[TensorType] = []
    real = executable._fetched
    monkeypatch.setattr(
        device.GpuExecutable, "_fetched", lambda self, type, *rest: (fetched.append(type), real(type, *rest))[1]
    )
    for _ in range(2):
        for expected, result in zip(evaluate(body, inputs), executable.run(inputs), strict=True):
            assert expected.same_words(result)
    # nothing but the results comes back, and kernels ran in every step
    assert fetched == [*body.output_types] * 2
    assert executable.statistics.kernels >= 4


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("columns", [1, 50])
def test_rows_that_leave_a_rounding_open_are_settled(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their elements are read one by one, and where the kernel reads them in a loop, together."""
    # kernels of more digits would decide them
    monkeypatch.setattr(wide, "applies", lambda name, fmt: False)
    builder = Builder(np.random.default_rng(0))
    type, of_rows = TensorType((300, columns), NAMED["float64"]), TensorType((300,), NAMED["float64"])
    power = builder.add("exponential", (builder.add("negate", (builder.input(type),), type),), type)
    total = builder.add("reduce", (power,), of_rows, reducer="add", dimensions=(1,))
    body = builder.body([builder.add("negate", (total,), of_rows)])
    numbers = np.random.default_rng(1).standard_normal(type.shape)
    numbers[[4, 31, 32, 299], -1] = 720.0, 725.0, 730.0, 735.0
    inputs = [Tensor(type, numbers.view(np.uint64))]
    executable = device.GpuExecutable(body)
    (result,) = executable.run(inputs)
    assert result.same_words(evaluate(body, inputs)[0])
    found = executable.statistics
    assert (found.kernels, found.settled, found.reference) == (1, 4, [])


def product(m: int, k: int, n: int) -> Body:
    builder, of = Builder(np.random.default_rng(0)), NAMED["float32"]
    x, y = builder.input(TensorType((m, k), of)), builder.input(TensorType((k, n), of))
    attrs = {
        "lhs_batching_dimensions": (),
        "rhs_batching_dimensions": (),
        "lhs_contracting_dimensions": (1,),
        "rhs_contracting_dimensions": (0,),
    }
    value = builder.add("dot_general", (x, y), TensorType((m, n), of), **attrs)
    return builder.body([builder.add("tanh", (value,), TensorType((m, n), of))])


@pytest.mark.usefixtures("gpu")
def test_tiles_and_what_follows_them() -> None:
    body, random = product(40, 33, 35), np.random.default_rng(1)
    inputs = [random_tensor(random, body.nodes[k].types[0]) for k in body.input_ids]
    (expected,), (result,) = evaluate(body, inputs), device.evaluate(body, inputs)
    assert expected.same_words(result)
    assert device.executable(body).statistics.kernels == 1


@pytest.mark.usefixtures("gpu")
def test_rows_that_are_several_launches() -> None:
    body = reduction("float32", (3, 20000), (1,), "add", Accumulate(order="blocked", block=64))
    inputs = inputs_of(body)
    (expected,), (result,) = evaluate(body, inputs), device.evaluate(body, inputs)
    assert expected.same_words(result)
    assert device.executable(body).statistics.kernels == 1, "one kernel of the program"


@pytest.mark.usefixtures("gpu")
def test_what_was_compiled_is_found_by_the_next_process(monkeypatch: pytest.MonkeyPatch) -> None:
    body = product(11, 12, 13)
    first = device.GpuExecutable(body).statistics
    assert (first.cache_hits, first.compiled) == (0, 1)
    code = Module.loaded[-1]

    def refused(*_: object) -> bytes:
        raise AssertionError("compiled again")

    monkeypatch.setattr(nvrtc, "code", refused)
    again = device.GpuExecutable(body).statistics
    assert (again.cache_hits, again.compiled) == (1, 0)
    assert Module.loaded[-1] == code


@pytest.mark.usefixtures("gpu")
def test_machine_code_is_kept_for_its_text_architecture_and_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    text = 'extern "C" __global__ void f(float* x) { *x = 1.0f; }'
    made: list[tuple[str, int]] = []
    monkeypatch.setattr(nvrtc, "code", lambda text, capability: made.append((text, capability)) or b"code")
    for capability in (80, 90, 80, 90):
        assert kept.machine_code(text, capability) == b"code"
    assert made == [(text, 80), (text, 90)]
    monkeypatch.setattr(nvrtc, "version", lambda: (99, 0))
    kept.machine_code(text, 80)
    kept.machine_code(text + " ", 80)
    assert len(made) == 4


@pytest.mark.skipif(nvrtc.library() is None, reason="NVRTC is not installed")
def test_an_architecture_that_is_newer_than_the_compiler_gets_ptx() -> None:
    text = 'extern "C" __global__ void f(float* x) { *x = 1.0f; }'
    assert nvrtc.code(text, 90).startswith(b"\x7fELF")
    ptx = nvrtc.code(text, 999).decode()
    assert f".target sm_{max(nvrtc.supported())}" in ptx
    with pytest.raises(nvrtc.CompileError, match="absent"):
        nvrtc.code(text.replace("1.0f", "absent"), 90)


@pytest.mark.usefixtures("gpu")
def test_times_are_apart_and_constants_are_sent_once() -> None:
    builder, random = Builder(np.random.default_rng(0)), np.random.default_rng(1)
    type = TensorType((50,), NAMED["float64"])
    constant = builder.add("constant", (), type, value=random_tensor(random, type))
    body = builder.body([builder.add("add", (builder.input(type), constant), type)])
    inputs = [random_tensor(random, type)]
    executable = device.GpuExecutable(body)
    for _ in range(2):
        (result,) = executable.run(inputs)
        assert result.same_words(evaluate(body, inputs)[0])
        found = executable.statistics
        assert min(found.lower_seconds, found.compile_seconds, found.transfer_seconds) > 0
        assert found.first_transfer_seconds > 0
    sent: list[int] = []
    original = executable._sent
    executable._sent = lambda *arguments: (sent.append(1), original(*arguments))[1]  # type: ignore[method-assign]
    executable.run(inputs)
    assert len(sent) == 1


def test_a_gpu_whose_memory_does_not_suffice_is_one_sentence(gpu: SimpleNamespace) -> None:
    body, random = product(5, 6, 7), np.random.default_rng(1)
    executable = device.GpuExecutable(body)

    def full(*_: object) -> None:
        raise OutOfMemoryError("Out of memory allocating 17 bytes\nmore")

    executable.cupy = SimpleNamespace(**{**vars(gpu), "empty": full})
    inputs = [random_tensor(random, body.nodes[k].types[0]) for k in body.input_ids]
    with pytest.raises(UnsupportedError, match=r"17 bytes\)$") as caught:
        executable.run(inputs)
    assert caught.value.code == "TL0603"


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def message(found: object) -> str:
        FOUND.cache_clear()
        monkeypatch.setitem(sys.modules, "cupy", found)
        with pytest.raises(UnsupportedError) as caught:
            FOUND()
        assert caught.value.code == "TL0802"
        assert "\n" not in caught.value.message
        return str(caught.value.message)

    def runtime(count: object) -> ModuleType:
        module = ModuleType("cupy")
        module.__spec__ = ModuleSpec("cupy", None)
        module.cuda = SimpleNamespace(runtime=SimpleNamespace(getDeviceCount=count))  # type: ignore[attr-defined]
        return module

    def failing() -> int:
        raise RuntimeError("cudaErrorInsufficientDriver: too old\nsecond line")

    assert "too old" in message(runtime(failing))
    assert "no GPU" in message(runtime(lambda: 0))
    monkeypatch.setattr(nvrtc, "library", lambda: None)
    assert "NVRTC" in message(runtime(lambda: 1))
    FOUND.cache_clear()
