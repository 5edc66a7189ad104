"""The binary64 operations of the machines: each against Python's floats or rational numbers, on all machines."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tlir.floatlib.soft.fma import fma
from tlir.floatlib.soft.machine import Machine, NumpyMachine
from tlir.floatlib.soft.rounding import Result
from tlir.floatlib.soft.tape import compile_numpy
from tlir.floatlib.soft.uint import Uint

FLOATS = (0.5, -1.25, 3.0, 1e300)
INTEGERS = (7, 0, 2**40 + 1, 5)


def _bits(x: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", x))[0])


def _single(x: float) -> int:
    return int(np.float32(x).view(np.uint32))


def exact_fma(x: float, y: float, z: float) -> float:
    total = Fraction(x) * Fraction(y) + Fraction(z)
    return total.numerator / total.denominator if total else x * y + z


Operation = Callable[[Machine, Any, Any, Any], Any]
"""Of three real numbers; the result is a word."""

OPERATIONS: dict[str, tuple[Operation, Callable[[float, float, float], int]]] = {
    "fma": (lambda m, x, y, z: m.real_bits(m.real_fma(x, y, z)), lambda x, y, z: _bits(exact_fma(x, y, z))),
    "negate": (lambda m, x, y, z: m.real_bits(m.real_negate(x)), lambda x, y, z: _bits(-x)),
    "abs": (lambda m, x, y, z: m.real_bits(m.real_abs(x)), lambda x, y, z: _bits(abs(x))),
    "minimum": (lambda m, x, y, z: m.real_bits(m.real_minimum(x, y)), lambda x, y, z: _bits(min(x, y))),
    "maximum": (lambda m, x, y, z: m.real_bits(m.real_maximum(x, y)), lambda x, y, z: _bits(max(x, y))),
    "round": (lambda m, x, y, z: m.real_bits(m.real_round(x)), lambda x, y, z: _bits(math.copysign(round(x), x))),
    "less": (lambda m, x, y, z: m.word_of(m.real_less(x, y)), lambda x, y, z: int(x < y)),
    "equal": (lambda m, x, y, z: m.word_of(m.real_equal(x, m.real_round(x))), lambda x, y, z: int(x == round(x))),
    "select": (
        lambda m, x, y, z: m.real_bits(m.real_select(m.real_less(x, y), y, z)),
        lambda x, y, z: _bits(y if x < y else z),
    ),
    "from_bits": (
        lambda m, x, y, z: m.real_bits(m.real_from_bits(m.xor(m.real_bits(x), m.constant(1)))),
        lambda x, y, z: _bits(x) ^ 1,
    ),
    "from_signed": (
        lambda m, x, y, z: m.real_bits(m.real_from_signed(m.truncate_signed(x))),
        lambda x, y, z: _bits(float(int(x))),
    ),
    "truncate_signed": (lambda m, x, y, z: m.truncate_signed(x), lambda x, y, z: int(x) % 2**64),
    "round32": (lambda m, x, y, z: m.round32(x), lambda x, y, z: _single(x)),
    "real32": (
        lambda m, x, y, z: m.real_bits(m.real32_of_bits(m.round32(x))),
        lambda x, y, z: _bits(float(np.float32(x))),
    ),
    "table of reals": (
        lambda m, x, y, z: m.real_bits(m.table(FLOATS, m.and_(m.truncate_signed(x), m.constant(3)))),
        lambda x, y, z: _bits(FLOATS[int(x) & 3]),
    ),
    "table of words": (
        lambda m, x, y, z: m.table(INTEGERS, m.and_(m.truncate_signed(x), m.constant(3))),
        lambda x, y, z: INTEGERS[int(x) & 3],
    ),
    "zeros of both signs": (
        lambda m, x, y, z: m.real_bits(m.real_select(m.real_less(x, y), m.real_constant(0.0), m.real_constant(-0.0))),
        lambda x, y, z: _bits(0.0 if x < y else -0.0),
    ),
}


def _operands() -> list[np.ndarray]:
    rng = np.random.default_rng(4)
    x, y = rng.standard_normal((2, 400)) * 2.0 ** rng.integers(-20, 20, (2, 400))
    x[:40] = np.arange(40) / 2 - 10
    z = rng.standard_normal(400)
    z[200:] = -x[200:] * y[200:] * (1 + rng.integers(-2, 3, 200) * 2.0**-52)
    return [x, y, z]


def _kernel(operation: Operation) -> Callable[..., Result]:
    def build(m: Machine, *words: Uint) -> Result:
        result = operation(m, *(m.real_from_bits(word.limbs[0]) for word in words))
        return Result(Uint(m, [result], 64), None)

    return build


@pytest.mark.parametrize("name", OPERATIONS)
def test_on_numpy_and_recorded(name: str) -> None:
    operation, expected = OPERATIONS[name]
    operands = _operands()
    want = [expected(*row) for row in zip(*(column.tolist() for column in operands), strict=True)]
    machine = NumpyMachine(64)
    assert np.asarray(operation(machine, *operands)).tolist() == want
    loop = compile_numpy(_kernel(operation), 64, (64, 64, 64), False)
    with np.errstate(all="ignore"):
        assert loop(*(column.view(np.uint64) for column in operands))[0].tolist() == want


@pytest.mark.parametrize("name", OPERATIONS)
def test_compiled(name: str) -> None:
    llvm = pytest.importorskip("tlir.floatlib.soft.llvm", reason="llvmlite is not installed")
    from tlir.floatlib.soft.catalog import Kernel

    operation, expected = OPERATIONS[name]
    operands = _operands()
    want = [expected(*row) for row in zip(*(column.tolist() for column in operands), strict=True)]
    kernel = Kernel(name, (64, 64, 64), 64, 64, False, _kernel(operation))
    words, _ = llvm.run(kernel, tuple(column.view(np.uint64) for column in operands))
    assert words.tolist() == want


def test_machines_say_whether_they_fuse() -> None:
    """Also while they record; a kernel that asks takes the cheaper way on NumPy."""
    asked = []

    def build(m: Machine, word: Uint) -> Result:
        asked.append(m.has_fma)
        return Result(word, None)

    compile_numpy(build, 64, (64,), False)
    assert asked == [False]
    assert NumpyMachine(64).has_fma is False


def test_fma_at_the_ends_of_the_range() -> None:
    tiny, large = 2.0**-1074, 1.7976931348623157e308
    rows = [(2.0**-540, 2.0**-540, tiny), (2.0**-537, -(2.0**-538), 3 * tiny), (large, 2.0, -large), (1.5, tiny, tiny)]
    rows += [(0.0, 5.0, -0.0), (3.0, 7.0, 0.0), (1 + 2.0**-52, 1 - 2.0**-53, -1.0), (2.0**600, 2.0**400, -(2.0**999))]
    for x, y, z in rows:
        assert _bits(float(fma(x, y, z))) == _bits(exact_fma(x, y, z))
    assert fma(large, large, -large) == math.inf
    assert np.isnan(fma(math.inf, 0.0, 1.0))
    assert fma(2.0, 3.0, -math.inf) == -math.inf
    assert np.isnan(fma(math.inf, 1.0, -math.inf))
