"""Elementary functions in wide formats inside kernels: the specification's words on every device, in random graphs too;
and float64 operands that double-double numbers leave open, which a GPU's kernel decides itself."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from cuda_forms import same_all
from lower_graphs import Builder, random_tensor

from tlir.backends.cpu import device, settle
from tlir.backends.cpu.device import Executable
from tlir.backends.cuda import nvrtc
from tlir.backends.cuda.function import Source
from tlir.backends.cuda.host import HostExecutable
from tlir.backends.cuda.source import Code, code, module
from tlir.backends.reference import evaluate
from tlir.floatlib import arithmetic
from tlir.floatlib.array_conversions import convert
from tlir.floatlib.elementary import elementary
from tlir.floatlib.elementary.double import loop as double
from tlir.floatlib.elementary.wide.functions import NAMES
from tlir.floatlib.format import FORMATS, Format, from_text, text_of
from tlir.floatlib.words import from_ints, to_ints
from tlir.ir.graph import Body, Graph, Ref
from tlir.ir.ops import OPERATIONS
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, DType, TensorType
from tlir.kernel.ir import Fallback, Launch
from tlir.passes.check.lowering import check_lowering
from tlir.passes.lower import lower

pytest.importorskip("llvmlite")

FUNCTIONS = sorted(NAMES)
SOME = FUNCTIONS[::4]
FLOAT64 = FORMATS["float64"]
DTYPES = {
    "float128": NAMED["float128"],
    "float80": DType("float80", "float", 80, Format(15, 64)),
    "float40": DType("float40", "float", 40, Format(9, 30)),
    "float63": DType("float63", "float", 63, Format(13, 49)),
}
"""Two limbs, of which the second is full or not; one that double-double numbers serve first, and one of as many bits
with exponents beyond theirs."""

SIZE = 72
"""Elements: whole blocks of lanes of some dtypes and a part of one of others."""


def operands(fmt: Format, count: int, seed: int) -> np.ndarray:
    """Numbers of every kind of size, all of their digits random."""
    random = np.random.default_rng(seed)
    numbers = random.standard_normal(count) * 2.0 ** random.integers(-12, 7, count)
    words = np.array(convert(FLOAT64, fmt, numbers.view(np.uint64)))
    spare = fmt.fraction_bits - 52
    if spare > 0:
        low = random.integers(0, 1 << 62, count, np.uint64) & np.uint64((1 << min(spare, 62)) - 1)
        words.reshape(count, -1)[:, 0] |= low
    return words


@cache
def given(name: str, size: int = SIZE) -> list[Tensor]:
    """Two columns of operands, the second one positive: ordinary numbers, and words of every kind."""
    type = TensorType((size,), DTYPES[name])
    fmt = DTYPES[name].float_format
    columns = []
    for seed in range(2):
        words = np.array(random_tensor(np.random.default_rng(seed), type).words)
        words[::2] = operands(fmt, len(words[::2]), seed)
        if seed:
            words[::2] = np.asarray(
                from_ints(fmt, [int(word) & fmt.magnitude_mask for word in to_ints(fmt, words[::2])])
            )
        columns.append(Tensor(type, words))
    return columns


def functions(name: str) -> list[str]:
    """All of them in one format of several limbs and one of a single one."""
    return FUNCTIONS if name in ("float128", "float40") else SOME


def every(name: str) -> Body:
    """Functions of the two columns; those of one operand of the second column."""
    builder, type = Builder(np.random.default_rng(0)), TensorType((SIZE,), DTYPES[name])
    x, y = builder.input(type), builder.input(type)
    return builder.body([builder.add(op, (x, y)[2 - len(OPERATIONS[op].operands) :], type) for op in functions(name)])


@cache
def specified(name: str) -> list[np.ndarray]:
    fmt = DTYPES[name].float_format
    columns = [to_ints(fmt, tensor.words).tolist() for tensor in given(name)]
    results = []
    for op in functions(name):
        rows = zip(*columns[2 - len(OPERATIONS[op].operands) :], strict=True)
        results.append(np.asarray(from_ints(fmt, [elementary(op, fmt, *row)[0] for row in rows])))
    return results


def compare(name: str, executable: Executable) -> None:
    results = executable.run(given(name))
    assert executable.statistics.reference == []
    for op, expected, result in zip(functions(name), specified(name), results, strict=True):
        assert (np.asarray(result.words) == expected).all(), op


@pytest.mark.parametrize("name", DTYPES)
def test_cpu(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "SPLIT_FROM", 0)
    for count in ("1", "2"):
        monkeypatch.setenv("TLIR_THREADS", count)
        compare(name, Executable(every(name)))


@pytest.mark.parametrize("name", ["float128", "float63"])
def test_host_build_of_the_cuda_source(name: str) -> None:
    executable = HostExecutable(every(name))
    compare(name, executable)
    assert executable.settled == 0


@pytest.mark.parametrize("name", ["float80", "float40"])
def test_lanes_that_are_left_open_have_the_words_of_the_specification(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every block of lanes has some; the specification is asked for those alone."""
    fmt, asked = DTYPES[name].float_format, 0

    def instead(op: str, of: Format, columns: list[np.ndarray]) -> np.ndarray:
        nonlocal asked
        assert of == fmt
        asked += len(columns[0])
        return np.asarray(from_ints(fmt, [elementary(op, fmt, int(word))[0] ^ 1 for word in to_ints(fmt, columns[0])]))

    monkeypatch.setattr(settle, "_specified", instead)
    builder, type = Builder(np.random.default_rng(0)), TensorType((SIZE,), DTYPES[name])
    x = builder.input(type)
    body = builder.body([builder.add("tanh", (x,), type)])
    words = np.array(given(name)[0].words)
    # results between two numbers that no kernel decides: x - x**3/3 where that is less than its error
    tiny = fmt.encode(0, 1, fmt.emin)
    words[3::5] = np.asarray(from_ints(fmt, [tiny + k for k in range(len(words[3::5]))]))
    executable = Executable(body)
    (result,) = executable.run([Tensor(type, words)])
    expected = [elementary("tanh", fmt, int(word))[0] for word in to_ints(fmt, words)]
    different = [k for k, word in enumerate(to_ints(fmt, np.asarray(result.words))) if int(word) != expected[k]]
    assert len(different) == asked


@pytest.mark.parametrize(
    "fmt", [*FORMATS.values(), Format(9, 30), Format(9, 30, 100), Format(4, 3, nans="none", infinities=False)]
)
def test_names_of_formats(fmt: Format) -> None:
    assert from_text(text_of(fmt)) == fmt


def graph(seed: int) -> tuple[Body, list[Tensor]]:
    """Arithmetic, functions and sums in one wide dtype."""
    random = np.random.default_rng(seed)
    dtype = DTYPES[list(DTYPES)[seed % len(DTYPES)]]
    builder, shape = Builder(random), (3, 11)
    type, of_rows = TensorType(shape, dtype), TensorType(shape[:1], dtype)
    values = [builder.input(type) for _ in range(2)]
    for _ in range(8):
        op = str(random.choice([*FUNCTIONS, "add", "multiply", "subtract", "negate"]))
        inputs = [values[int(k)] for k in random.integers(0, len(values), len(OPERATIONS[op].operands))]
        values.append(builder.add(op, inputs, type))
    total = builder.add("reduce", (values[-1],), of_rows, reducer="add", dimensions=(1,))
    row = builder.add("broadcast_in_dim", (total,), type, broadcast_dimensions=(0,))
    values.append(builder.add(str(random.choice(FUNCTIONS[:4])), (row,), type))
    inputs = [
        Tensor(
            type, np.array(operands(dtype.float_format, 33, k).reshape((*shape, *((2,) if dtype.limbs > 1 else ()))))
        )
        for k in range(2)
    ]
    return builder.body([values[-1], values[-3], values[-5]]), inputs


@pytest.mark.parametrize("seed", range(8))
def test_random_graphs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "SPLIT_FROM", 0)
    body, inputs = graph(seed)
    assert not any(isinstance(step, Fallback) for step in lower(body).steps)
    expected = evaluate(body, inputs)
    for count in ("1", "2"):
        monkeypatch.setenv("TLIR_THREADS", count)
        results = Executable(body).run(inputs)
        assert [a.same_words(b) for a, b in zip(expected, results, strict=True)] == [True] * len(expected)
    if seed < 2:
        same_all([body], inputs=[inputs])
    assert check_lowering(Graph(body)).status == "passed"


def undecided(op: str) -> list[np.ndarray]:
    """Operands of float64, of random ones, that double-double numbers leave open."""
    random = np.random.default_rng(1)
    count = len(OPERATIONS[op].operands)
    columns = [random.standard_normal(1 << 17) * 2.0 ** random.integers(-3, 8, 1 << 17) for _ in range(count)]
    if op in ("asin", "acos", "atanh", "erf_inv"):
        columns[0] = random.uniform(-1, 1, 1 << 17)
    if op == "exponential":
        columns[0][:20] = random.uniform(-740, -710, 20)
    words = [column.view(np.uint64) for column in columns]
    places = double.evaluate_double(op, FLOAT64, *words)[2]
    return [column[places][:SIZE] for column in words]


def test_what_double_double_numbers_leave_open_is_decided_by_a_gpu_itself() -> None:
    type = TensorType((SIZE,), NAMED["float64"])
    bodies, inputs, total = [], [], 0
    for op in (op for op in FUNCTIONS if double.applies(op, FLOAT64)):
        builder = Builder(np.random.default_rng(0))
        found = undecided(op)
        total += len(found[0])
        columns = [np.resize(column, SIZE) if len(column) else np.ones(SIZE).view(np.uint64) for column in found]
        bodies.append(builder.body([builder.add(op, [builder.input(type) for _ in columns], type)]))
        inputs.append([Tensor(type, np.array(column)) for column in columns])
    assert total > 60
    # no iteration may be settled
    same_all(bodies, inputs=inputs)


def test_what_double_double_numbers_leave_open_is_decided_by_more_digits_on_the_cpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(*arguments: object) -> None:
        raise AssertionError("the specification is asked")

    for op in ("exponential", "erfc", "tan", "power"):
        builder, found = Builder(np.random.default_rng(0)), undecided(op)
        type = TensorType((len(found[0]),), NAMED["float64"])
        body = builder.body([builder.add(op, [builder.input(type) for _ in found], type)])
        inputs = [Tensor(type, np.array(column)) for column in found]
        monkeypatch.setattr(settle, "WORTH", 1)
        monkeypatch.setattr(settle, "_specified", refused)
        (result,) = Executable(body).run(inputs)
        rows = zip(*(column.tolist() for column in found), strict=True)
        assert np.asarray(result.words).tolist() == [elementary(op, FLOAT64, *row)[0] for row in rows], op
        assert settle._functions[f"{op} float64"] is not None


@pytest.mark.skipif(nvrtc.library() is None, reason="NVRTC is not installed")
@pytest.mark.parametrize("architecture", nvrtc.ARCHITECTURES)
def test_nvrtc_compiles_them(architecture: str) -> None:
    """As functions that are called, each once, though two kernels need them."""
    chosen, bodies = SOME if architecture == nvrtc.ARCHITECTURES[-1] else SOME[:2], []
    for dtype, shape in ((DTYPES["float128"], (SIZE,)), (NAMED["float64"], (SIZE,)), (DTYPES["float128"], (3, 5))):
        builder, type = Builder(np.random.default_rng(0)), TensorType(shape, dtype)
        for op in chosen:
            builder.add(op, [builder.input(type) for _ in OPERATIONS[op].operands], type)
        bodies.append(builder.body([Ref(node.id) for node in builder.nodes if node.op != "input"]))
    text = module(one for body in bodies for one in sources(body))
    ptx = nvrtc.to_ptx(text, architecture)
    assert ptx.count(".entry") == len({one.name for body in bodies for one in sources(body)})
    assert ptx.count("\n.func") == text.count("TL_CALLED tl_words") == 2 * len(chosen)


def sources(body: Body) -> list[Source]:
    codes = [code(step.kernel) for step in lower(body).steps if isinstance(step, Launch)]
    return [one for found in codes if isinstance(found, Code) for one, _ in found.sources]


@pytest.mark.parametrize("name", ["float128", "float63"])
def test_remainders(name: str) -> None:
    """In as many steps whatever the operands are, and nothing is left open."""
    dtype = DTYPES[name]
    builder, type = Builder(np.random.default_rng(0)), TensorType((SIZE,), dtype)
    x, y = builder.input(type), builder.input(type)
    body = builder.body([builder.add("remainder", (x, y), type), builder.add("remainder", (y, x), type)])
    fmt, inputs = dtype.float_format, given(name)
    columns = [to_ints(fmt, tensor.words).tolist() for tensor in inputs]
    expected = [
        [arithmetic.remainder_truncated(fmt, *row)[0] for row in zip(*order, strict=True)]
        for order in (columns, columns[::-1])
    ]
    for executable in (Executable(body), HostExecutable(body)):
        results = executable.run(inputs)
        assert executable.statistics.reference == []
        assert [to_ints(fmt, np.asarray(result.words)).tolist() for result in results] == expected
    assert not any(one.may_leave_open for one in sources(body))
