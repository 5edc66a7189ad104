"""Elementwise operators of PyTorch: what the captured graph gives on the reference is what torch returned.

Everything that torch rounds once must agree in every word, special values included. Functions that torch only
approximates are within a few ulps of the correctly rounded result; the limits are those of torch's own kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch_oracle import captured, distances, family, far

FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]
SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    2.0,
    -2.0,
    3.0,
    -2.5,
    1.5,
    0.1,
    -0.7,
    math.inf,
    -math.inf,
    math.nan,
    1e-40,
    3.4e38,
]


def pairs(dtype: torch.dtype, special: list[float] = SPECIAL) -> tuple[torch.Tensor, torch.Tensor]:
    """Every pair of special values, then random numbers."""
    random = np.random.default_rng(5).standard_normal((2, 100)) * 4
    numbers = torch.tensor(special, dtype=torch.float64)
    x = torch.cat([numbers.repeat_interleave(len(special)), torch.from_numpy(random[0])])
    y = torch.cat([numbers.repeat(len(special)), torch.from_numpy(random[1])])
    return x.to(dtype), y.to(dtype)


ARITHMETIC = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "add number": lambda x, y: x + 0.1,
    "number minus": lambda x, y: 0.3 - x,
    "times number": lambda x, y: x * 0.1,
    "over number": lambda x, y: x / 0.3,
    "number over": lambda x, y: 3 / x,
    "trunc division": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "copysign": torch.copysign,
    "nextafter": torch.nextafter,
    "addcmul": lambda x, y: torch.addcmul(x, y, x),
    "addcmul value": lambda x, y: torch.addcmul(x, y, x, value=0.3),
    "addcdiv": lambda x, y: torch.addcdiv(x, y, x, value=0.3),
    "lerp low": lambda x, y: torch.lerp(x, y, 0.3),
    "lerp high": lambda x, y: torch.lerp(x, y, 0.7),
    "lerp tensor": lambda x, y: torch.lerp(x, y, y),
    "equal": lambda x, y: x == y,
    "not equal": lambda x, y: x != y,
    "less": lambda x, y: x < y,
    "less equal": lambda x, y: x <= y,
    "greater": lambda x, y: x > y,
    "greater equal": lambda x, y: x >= y,
    "equal number": lambda x, y: x == 0.1,
    "above number": lambda x, y: x > -0.7,
    "logical and": torch.logical_and,
    "logical xor": torch.logical_xor,
    "where": lambda x, y: torch.where(x > y, x, y),
    "where number": lambda x, y: torch.where(x > y, x, 0.1),
    "masked fill": lambda x, y: x.masked_fill(x > y, -math.inf),
    "isclose": torch.isclose,
}

FUSED = {
    "add alpha": lambda x, y: torch.add(x, y, alpha=0.3),
    "sub alpha": lambda x, y: torch.sub(x, y, alpha=2.5),
    "add number alpha": lambda x, y: torch.add(x, 0.7, alpha=0.3),
}

ORDERED = {
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "fmax": torch.fmax,
    "fmin": torch.fmin,
    "clamp tensor": lambda x, y: torch.clamp(x, y, y + 1),
}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_arithmetic_and_comparison_agree_in_every_word(dtype: torch.dtype) -> None:
    assert far(family(ARITHMETIC, *pairs(dtype))) == {}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_alpha_is_fused_and_extremes_differ_in_the_sign_of_zero_only(dtype: torch.dtype) -> None:
    """On whole vectors: at the end of a 16-bit tensor torch rounds the product too."""
    x, y = pairs(dtype)
    whole = len(x) // 64 * 64
    assert far(family(FUSED | ORDERED, x[:whole], y[:whole]), dict.fromkeys(ORDERED, 1)) == {}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_remainders_and_floor_division_agree_in_every_word(dtype: torch.dtype) -> None:
    """Without subnormal divisors, of which torch's vectorised fmod gives NaN."""
    functions = {
        "remainder": torch.remainder,
        "remainder number": lambda x, y: torch.remainder(x, 0.3),
        "fmod": torch.fmod,
        "fmod number": lambda x, y: torch.fmod(x, 0.3),
        "floor division": lambda x, y: x // y,
        "floor by number": lambda x, y: x // 0.3,
    }
    usual = [value for value in SPECIAL if value == 0 or (not abs(value) < 1e-30 and abs(value) != 3.4e38)]
    assert far(family(functions, *pairs(dtype, usual))) == {}


UNARY = {
    "negate": torch.neg,
    "abs": torch.abs,
    "sign": torch.sign,
    "floor": torch.floor,
    "ceil": torch.ceil,
    "round": torch.round,
    "trunc": torch.trunc,
    "round decimals": lambda x: torch.round(x, decimals=2),
    "round tens": lambda x: torch.round(x, decimals=-1),
    "reciprocal": torch.reciprocal,
    "relu": torch.relu,
    "relu6": F.relu6,
    "clamp": lambda x: x.clamp(-0.1, 0.7),
    "clamp crossed": lambda x: x.clamp(5, 1),
    "clamp nan": lambda x: x.clamp(min=math.nan),
    "isnan": torch.isnan,
    "isinf": torch.isinf,
    "isfinite": torch.isfinite,
    "signbit": torch.signbit,
    "logical not": torch.logical_not,
    "nan_to_num": torch.nan_to_num,
    "frac": torch.frac,
    "leaky relu": F.leaky_relu,
    "hardswish": F.hardswish,
    "hardsigmoid": F.hardsigmoid,
    "power 0": lambda x: x**0,
    "power 1": lambda x: x**1,
    "power 2": lambda x: x**2,
    "power 3": lambda x: x**3,
    "power -1": lambda x: x**-1,
    "power -2": lambda x: x**-2,
}


def cast(dtype: torch.dtype) -> Callable[..., torch.Tensor]:
    return lambda x, *_: x.to(dtype)


CONVERSIONS = {
    str(dtype): cast(dtype)
    for dtype in [*FLOATS, *INTEGERS, torch.uint16, torch.uint64, torch.bool, torch.complex64, torch.complex128]
}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_unary_operators_and_conversions_agree_in_every_word(dtype: torch.dtype) -> None:
    """Floats beyond an integer type's range too."""
    x, _ = pairs(dtype)
    x = torch.cat([x[:: len(SPECIAL)], x[-100:], x[-100:] * 1000])
    functions = UNARY | CONVERSIONS
    if dtype == torch.float16:
        functions.pop("torch.uint64")  # differs from one kernel of torch to another out of range
    assert far(family(functions, x)) == {}


def test_a_wide_number_rounds_twice_on_its_way_to_16_bits() -> None:
    """c10 builds float16 and bfloat16 from float32; one rounding would give the next value up."""
    wide = torch.tensor([1 + 2**-11 + 2**-40, 1 + 2**-8 + 2**-40], dtype=torch.float64)
    graph = captured(lambda x: (x.half(), x.bfloat16()), wide)
    assert distances(graph) == [0, 0]
    assert [node.op for node in graph.nodes].count("convert") == 4
    assert far(family({"bfloat16": lambda n: n.bfloat16()}, torch.tensor([2**24 + 2**16 + 1]))) == {}


def chain(first: Callable[..., torch.Tensor], second: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    return lambda x: second(first(x))


def test_float8_conversions_agree_in_every_word() -> None:
    names = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"]
    numbers = torch.tensor([*SPECIAL, 448, 464, 465, 1e4, 61440, 0.002, 1e-5, -300, 5e-8], dtype=torch.float32)
    numbers = torch.cat([numbers, torch.from_numpy(np.random.default_rng(0).standard_normal(50)).float() * 50])
    casts = {str(dtype): cast(dtype) for dtype in (getattr(torch, name) for name in names)}
    casts = {name: chain(convert, cast(torch.float32)) for name, convert in casts.items()}
    assert far(family(casts, numbers)) == {}
    assert far(family(casts, numbers.double())) == {}


NAMES = """exp exp2 expm1 log log2 log10 log1p sigmoid tanh sin cos tan asin acos atan sinh cosh asinh acosh atanh
erf erfc erfinv lgamma rsqrt sqrt"""

FUNCTIONS = {name: getattr(torch, name) for name in NAMES.split()} | {
    "power 4": lambda x: x**4,
    "power 2.3": lambda x: x**2.3,
    "power -0.5": lambda x: x**-0.5,
    "power 0.5": lambda x: x**0.5,
    "2 to the power": lambda x: 2**x,
    "1 to the power": lambda x: 1**x,
    "silu": F.silu,
    "elu": F.elu,
    "selu": F.selu,
    "softplus": F.softplus,
    "mish": F.mish,
    "logsigmoid": F.logsigmoid,
}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_functions_are_within_torchs_own_error(dtype: torch.dtype) -> None:
    """bfloat16 and float16 go through float32, and so are correctly rounded but for its last bit."""
    x, _ = pairs(dtype, [value for value in SPECIAL if value != 1e-40])
    x = torch.cat([x[:256:16], x[-60:]])
    assert far(family(FUNCTIONS, x), default=3 if dtype in (torch.float32, torch.float64) else 1) == {}


def test_digamma_near_its_zero_and_gelu_in_its_tail_are_close_absolutely() -> None:
    """gelu runs in oneDNN for float32, whose erf is a polynomial."""
    x = torch.linspace(-4, 4, 60)
    graph = captured(lambda x: (torch.digamma(x), F.gelu(x), F.gelu(x, approximate="tanh")), x)
    from tlir.compare import compare

    assert compare(graph, tolerance="2e-5").ok


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_functions_of_two_operands(dtype: torch.dtype) -> None:
    x, y = pairs(dtype, [value for value in SPECIAL if value != 1e-40])
    functions = {"power": lambda x, y: x**y, "atan2": torch.atan2, "hypot": torch.hypot, "xlogy": torch.xlogy}
    assert far(family(functions, x[::3], y[::3]), default=1) == {}


INTEGER = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "add alpha": lambda x, y: torch.add(x, y, alpha=3),
    "true division": lambda x, y: x / y,
    "floor division": lambda x, y: x // y,
    "trunc division": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "remainder": lambda x, y: x % y,
    "fmod": torch.fmod,
    "maximum": torch.maximum,
    "fmin": torch.fmin,
    "add number": lambda x, y: x + 7,
    "times float": lambda x, y: x * 1.5,
    "number minus": lambda x, y: 3 - x,
    "and": lambda x, y: x & y,
    "or number": lambda x, y: x | 5,
    "xor": lambda x, y: x ^ y,
    "not": lambda x, y: ~x,
    "shift left": lambda x, y: x << (y % 9),
    "shift right": lambda x, y: x >> (y % 9),
    "shift by number": lambda x, y: (x << 3) >> 2,
    "square": lambda x, y: x**2,
    "fifth power": lambda x, y: x**5,
    "float power": lambda x, y: x**2.0,
    "power": lambda x, y: x ** (y % 7),
    "2 to the power": lambda x, y: 2 ** (x % 9),
    "negate": lambda x, y: -x,
    "abs": lambda x, y: x.abs(),
    "sign": lambda x, y: x.sign(),
    "floor": lambda x, y: x.floor(),
    "clamp": lambda x, y: x.clamp(-3, 20),
    "clamp float": lambda x, y: x.clamp(max=2.5),
    "equal": lambda x, y: x == y,
    "above float": lambda x, y: x > 1.5,
    "isnan": lambda x, y: x.isnan(),
    "isfinite": lambda x, y: x.isfinite(),
    "logical and": torch.logical_and,
    "copysign": torch.copysign,
    "sum": lambda x, y: x.sum(),
    "product": lambda x, y: x[:5].prod(),
    "greatest": lambda x, y: x.amax(),
    "argmax": lambda x, y: x.argmax(),
    "any": lambda x, y: x.any(),
    "matrix product": lambda x, y: x[:9].view(3, 3) @ y[:9].view(3, 3),
}


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integer_programs_agree_in_every_word(dtype: torch.dtype) -> None:
    info, random = torch.iinfo(dtype), np.random.default_rng(9)
    name = str(dtype).removeprefix("torch.")
    x, y = (torch.from_numpy(random.integers(info.min, info.max, 100, dtype=name, endpoint=True)) for _ in range(2))
    small = torch.arange(-8, 8).to(dtype)
    x, y = torch.cat([x, small]), torch.cat([y, small.flip(0)])
    y = torch.where(y == 0, torch.ones_like(y), y)
    functions = INTEGER | {name: convert for name, convert in CONVERSIONS.items() if name != str(dtype)}
    assert far(family(functions, x, y)) == {}


def test_shifts_by_negative_counts_and_by_the_width_and_more() -> None:
    x = torch.tensor([1, -128, 127, -1], dtype=torch.int8).repeat(4)
    y = torch.tensor([-1, 7, 8, 100], dtype=torch.int8).repeat_interleave(4)
    functions = {"left": torch.bitwise_left_shift, "right": torch.bitwise_right_shift}
    assert far(family(functions, x, y)) == {}


def test_boolean_programs_agree_in_every_word() -> None:
    functions = {
        "add": lambda x, y: x + y,
        "multiply": lambda x, y: x * y,
        "and": lambda x, y: x & y,
        "xor": lambda x, y: x ^ y,
        "not": lambda x, y: ~x,
        "add number": lambda x, y: x + 1,
        "times float": lambda x, y: x * 0.5,
        "sum": lambda x, y: x.sum(),
        "any": lambda x, y: x.any(),
        "all": lambda x, y: x.all(0),
        "maximum": torch.maximum,
        "less": lambda x, y: x < y,
        "divide": lambda x, y: x.float() / (y.float() + 1),
        "where": lambda x, y: torch.where(x, y, ~y),
        "product": lambda x, y: x.prod(),
        "greatest": lambda x, y: x.amax(),
    }
    x, y = torch.tensor([True, False, True, False]), torch.tensor([True, True, False, False])
    assert far(family(functions, x, y)) == {}


EXACT_COMPLEX = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "add alpha": lambda x, y: torch.add(x, y, alpha=0.5),
    "times number": lambda x, y: x * 2.5,
    "add number": lambda x, y: x + 1,
    "negate": lambda x, y: -x,
    "real": lambda x, y: x.real,
    "imag": lambda x, y: x.imag + x.real,
    "conjugate": lambda x, y: x.conj(),
    "view as real": lambda x, y: torch.view_as_real(x),
    "view as complex": lambda x, y: torch.view_as_complex(torch.view_as_real(x) * 2),
    "hermitian": lambda x, y: x[:4].view(2, 2).mH,
    "equal": lambda x, y: x == y,
    "isnan": lambda x, y: x.isnan(),
    "isfinite": lambda x, y: x.isfinite(),
    "to bool": lambda x, y: x.bool(),
    "where": lambda x, y: torch.where(x.real > 0, x, y),
    "join": lambda x, y: torch.cat([x, y.real]),
    "put together": lambda x, y: torch.complex(x.real, y.real),
}

ROUNDED_COMPLEX = {
    "abs": lambda x, y: x.abs(),
    "angle": lambda x, y: x.angle(),
    "sgn": lambda x, y: x.sgn(),
    "exp": lambda x, y: x.exp(),
    "log": lambda x, y: x.log(),
    "sqrt": lambda x, y: x.sqrt(),
    "tanh": lambda x, y: x.tanh(),
    "sin": lambda x, y: x.sin(),
    "cos": lambda x, y: x.cos(),
    "polar": lambda x, y: torch.polar(x.abs(), y.angle()),
}


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
def test_complex_numbers(dtype: torch.dtype) -> None:
    """torch fuses one product of a complex multiplication and divides by scaling, so these are close only."""
    random = np.random.default_rng(2).standard_normal((2, 40))
    x = torch.complex(*(torch.from_numpy(part) for part in random)).to(dtype)
    y = x.flip(0) * 1.7
    found = family(EXACT_COMPLEX | ROUNDED_COMPLEX, x, y)
    assert far(found, dict.fromkeys(ROUNDED_COMPLEX, 8)) == {}
    graph = captured(lambda x, y: (x * y, x / y, 1 / x, x**2, x[:3] @ y[:3], (x * x.conj()).real), x, y)
    from tlir.compare import compare

    assert compare(graph, tolerance="1e-5", rtol="1e-5").ok
    whole = torch.complex(*(torch.arange(-3.0, 3.0, dtype=x.real.dtype).roll(k) for k in range(2)))
    assert far(family({"multiply": lambda x: x * x, "product": lambda x: x @ x.conj()}, whole)) == {}


def test_mixed_dtypes_are_converted_as_torch_promotes_them() -> None:
    x, n = torch.tensor([0.1, 2.5, -3.0]), torch.tensor([1, 16777217, -5])
    graph = captured(
        lambda x, n, h, d: (x + n, h * x, x * d, h * d, h + d, n > 16777216.0, torch.where(x > 0, n, h), n / n),
        *(x, n, x.half(), torch.tensor(0.1, dtype=torch.float64)),
    )
    assert distances(graph) == [0] * 8
    assert [out.dtype.name for out in graph.body.output_types[:4]] == ["float32", "float32", "float32", "float16"]
