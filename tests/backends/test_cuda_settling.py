"""Iterations in which a kernel leaves the rounding of an elementary function open have the reference's words in every
form of kernel, and only they are computed again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cuda_forms import Make, by_rows, grouped, inputs_of, packed, reduction, same_all, softmax, tiled
from hypothesis import given, settings
from hypothesis import strategies as st
from lower_graphs import Builder

from tlir.backends.cuda import groups
from tlir.backends.cuda.function import BLOCK
from tlir.backends.cuda.host import HostExecutable, build
from tlir.backends.cuda.settling import in_place, marked, marks
from tlir.backends.cuda.source import source
from tlir.backends.cuda.stages import staged
from tlir.backends.cuda.tiles import SHAPES
from tlir.backends.interpreter import WordDomain
from tlir.floatlib.elementary.wide import loop as wide
from tlir.ir.graph import Body
from tlir.ir.ops import OPERATIONS, Accumulate
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, TensorType
from tlir.kernel.interpret import run_kernel
from tlir.kernel.ir import Launch
from tlir.kernel.parse import parse_kernel
from tlir.passes.lower import LOWERED, lower

OF = NAMED["float64"]
ELEMENTARY = sorted(op for op in LOWERED if OPERATIONS[op].family == "elementary" and op != "complex_power")
LOWEST, HIGHEST = -735.0, -715.0
"""Operands whose exponential is subnormal, where the kernels decide nothing."""


@pytest.fixture(autouse=True)
def without_more_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of more digits would decide every operand of these tests."""
    monkeypatch.setattr(wide, "applies", lambda name, fmt: False)


def tensor(numbers: np.ndarray) -> Tensor:
    return Tensor(TensorType(numbers.shape, OF), np.ascontiguousarray(numbers).view(np.uint64))


def numbers(shape: tuple[int, ...], open_at: np.ndarray, seed: int = 0) -> Tensor:
    """Ordinary numbers, and in flat places ``open_at`` those whose exponential is not decided."""
    random = np.random.default_rng(seed)
    found = random.integers(-40, 40, shape) / 8
    found.reshape(-1)[open_at] = random.uniform(LOWEST, HIGHEST, len(open_at))
    return tensor(found)


def settled(body: Body, make: Make, inputs: list[Tensor]) -> int:
    """Compares the host build with the reference; the iterations that were settled."""
    same_all([body], make, [inputs], settles=True)
    executable = HostExecutable(body, make=make)
    executable.run(inputs)
    assert executable.statistics.reference == []
    return executable.settled


def chain(count: int) -> Body:
    """What an exponential is computed of, and what is computed of it."""
    builder, type = Builder(np.random.default_rng(0)), TensorType((count,), OF)
    x = builder.input(type)
    power = builder.add("exponential", (builder.add("negate", (builder.add("negate", (x,), type),), type),), type)
    return builder.body([builder.add("multiply", (power, builder.add("exponential", (power,), type)), type), power])


@pytest.mark.parametrize("make", [source, packed], ids=["plain", "packs"])
def test_elements(make: Make) -> None:
    for open_at in ([], [0], [31, 32, 802], list(range(100, 300))):
        assert settled(chain(803), make, [numbers((803,), np.array(open_at, np.int64))]) == len(open_at)


def powers(rows: int, columns: int, order: Accumulate | None = None) -> Body:
    """Sums of exponentials along rows."""
    builder = Builder(np.random.default_rng(0))
    type, of_rows = TensorType((rows, columns), OF), TensorType((rows,), OF)
    attrs: dict[str, Any] = {"reducer": "add", "dimensions": (1,)} | ({} if order is None else {"accumulate": order})
    power = builder.add("exponential", (builder.input(type),), type)
    return builder.body([builder.add("reduce", (power,), of_rows, **attrs)])


FORMS = {"plain": source, "warps": grouped(groups.WARP), "blocks": grouped(BLOCK), "turned": by_rows}


@pytest.mark.parametrize("form", FORMS)
def test_rows(form: str) -> None:
    """A row is computed again as a whole, once, however many of its elements are open."""
    open_at = np.array([3 * 70, 3 * 70 + 1, 3 * 70 + 69, 17 * 70 + 33])
    for body in (powers(40, 70), softmax("float64", 40, 70)):
        given = numbers((40, 70), open_at)
        assert settled(body, FORMS[form], [given]) == 2, "two rows"


def test_stages() -> None:
    """Blocks of a long row are a launch of their own, whose open blocks are settled before what follows."""
    body = powers(1, 40000, Accumulate(order="blocked", block=64))
    open_at = np.array([5, 6, 64 * 100 + 7, 64 * 624 + 63])
    assert settled(body, source, [numbers((1, 40000), open_at)]) == 3, "three blocks"


def powers_of_sums(rows: int, columns: int) -> Body:
    """The exponential of pairwise sums: the tree of a long row is changed in place, in a stage that is open."""
    builder = Builder(np.random.default_rng(0))
    type, of_rows = TensorType((rows, columns), OF), TensorType((rows,), OF)
    attrs: dict[str, Any] = {"reducer": "add", "dimensions": (1,), "accumulate": Accumulate(order="pairwise")}
    total = builder.add("reduce", (builder.input(type),), of_rows, **attrs)
    return builder.body([builder.add("exponential", (total,), of_rows)])


def test_a_stage_that_changes_an_array_in_place() -> None:
    found = np.zeros((2, 70000))
    found[0, ::7], found[1, ::100] = 2.0**-10, -725 / 700
    (step,) = lower(powers_of_sums(2, 70000)).steps
    assert isinstance(step, Launch)
    last = staged(step.kernel).stages[-1].kernel
    assert in_place(last), "it is what this is about"
    assert settled(powers_of_sums(2, 70000), source, [tensor(found)]) == 2, "both rows, of which one is open"


def test_results_of_tiles() -> None:
    builder = Builder(np.random.default_rng(0))
    x, y = (builder.input(TensorType(shape, OF)) for shape in ((33, 20), (20, 18)))
    attrs: dict[str, Any] = {"lhs_batching_dimensions": (), "rhs_batching_dimensions": ()}
    attrs |= {"lhs_contracting_dimensions": (1,), "rhs_contracting_dimensions": (0,)}
    type = TensorType((33, 18), OF)
    body = builder.body([builder.add("exponential", (builder.add("dot_general", (x, y), type, **attrs),), type)])
    # only row 30 has products that are not zero
    given = [np.zeros((33, 20)), np.full((20, 18), 0.5)]
    given[0][30] = -72.0
    assert settled(body, tiled(SHAPES[5]), [tensor(one) for one in given]) == 18


FACTORS = """\
kernel @product(x: input float64[360], y: input float64[180], z: output float64[200]) space(i0 < 20, i1 < 10) nodes() {
  v0: float64 = literal 0x0
  v1: float64 = loop i2 < 18 carry(v2: float64 = v0) {
    v3: float64 = load x[18*i0 + i2]
    v4: float64 = exponential(v3)
    v5: float64 = load y[10*i2 + i1]
    v6: float64 = multiply(v4, v5)
    v7: float64 = add(v2, v6)
    yield v7
  }
  store z[10*i0 + i1] = v1
}
"""


def test_factors_of_tiles() -> None:
    """An open factor leaves all results open that it is a part of."""
    kernel = parse_kernel(FACTORS)
    made = tiled(SHAPES[5])(kernel)
    assert not isinstance(made, str)
    assert "xs[k]" in made.text
    x, y = numbers((20, 18), np.array([18 * 4 + 3, 18 * 19])), numbers((18, 10), np.array([], np.int64), 1)
    expected, result = (np.zeros(200, np.uint64) for _ in range(2))
    words = [x.words.reshape(-1), y.words.reshape(-1)]
    run_kernel(kernel, dict(zip(kernel.buffers, (*words, expected), strict=True)), WordDomain())
    assert build([made])[made.name].run([*words, result]) == 20, "two rows"
    assert (result == expected).all()


def test_every_function_at_any_words() -> None:
    bodies = []
    for op in ELEMENTARY:
        builder, type = Builder(np.random.default_rng(0)), TensorType((150,), OF)
        bodies.append(builder.body([builder.add(op, [builder.input(type) for _ in OPERATIONS[op].operands], type)]))
    same_all(bodies, inputs=[inputs_of(body) for body in bodies], settles=True)


def test_a_kernel_without_such_functions_marks_nothing() -> None:
    body = reduction("float64", (5, 9), (1,))
    ((made,),) = same_all([body])
    assert not made.may_leave_open
    assert made.marks == 1


@settings(max_examples=50, deadline=None)
@given(st.sets(st.integers(0, 199)))
def test_marks(numbers: set[int]) -> None:
    words = np.zeros(marks(parse_kernel(FACTORS)), np.uint32)
    for number in numbers:
        words[1 + number // 32] |= np.uint32(1 << number % 32)
    assert marked(words).tolist() == sorted(numbers)
