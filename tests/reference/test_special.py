"""Special functions against mpmath at 600 bits, at special values against XLA and SciPy, and where values are exact."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.special
from conformance import evaluate, evaluate_with_flags, tensor, words_of
from exact import decode, encode
from jax import lax

from tlir.backends import run
from tlir.errors import UnsupportedError
from tlir.floatlib.elementary import SPECIAL_NAMES, elementary
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.rounding import Flags
from tlir.ir.graph import Body, Graph, Node, Ref
from tlir.ir.ops import OPERATIONS
from tlir.ir.tensor import Tensor
from tlir.ir.types import TensorType, parse_dtype

SPECIAL = [name for name, operation in OPERATIONS.items() if operation.family == "special"]
TESTED = [FORMATS[name] for name in ("float8_e4m3fn", "float16", "bfloat16", "float32", "float64", "float128")]

REFERENCE: dict[str, Callable[..., Any]] = {
    "bessel_i0": lambda x: mpmath.besseli(0, x),
    "bessel_i1": lambda x: mpmath.besseli(1, x),
    "bessel_i0e": lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x)),
    "bessel_i1e": lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)),
    "bessel_j0": lambda x: mpmath.besselj(0, x),
    "bessel_j1": lambda x: mpmath.besselj(1, x),
    "bessel_y0": lambda x: mpmath.bessely(0, abs(x)),
    "bessel_y1": lambda x: mpmath.bessely(1, abs(x)),
    "bessel_k0": lambda x: mpmath.besselk(0, abs(x)),
    "bessel_k1": lambda x: mpmath.besselk(1, abs(x)),
    "bessel_k0e": lambda x: mpmath.besselk(0, abs(x)) * mpmath.exp(abs(x)),
    "bessel_k1e": lambda x: mpmath.besselk(1, abs(x)) * mpmath.exp(abs(x)),
    "erfcx": lambda x: mpmath.exp(x * x) * mpmath.erfc(x),
    "ndtri": lambda p: -mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * p),
    "log_ndtr": lambda x: mpmath.log(mpmath.erfc(-x / mpmath.sqrt(2)) / 2),
    "polygamma": lambda m, x: mpmath.psi(int(m), x),
    "zeta": lambda s, q: mpmath.zeta(s, q),
    "igamma": lambda a, x: mpmath.gammainc(a, 0, x, regularized=True),
    "igammac": lambda a, x: mpmath.gammainc(a, x, regularized=True),
    "igamma_grad_a": lambda a, x: mpmath.diff(lambda t: mpmath.gammainc(t, 0, x, regularized=True), a),
    "random_gamma_grad": lambda a, x: (
        -mpmath.diff(lambda t: mpmath.gammainc(t, 0, x, regularized=True), a)
        * (mpmath.gamma(a) * mpmath.exp(x) * x ** (1 - a))
    ),
    "regularized_incomplete_beta": lambda a, b, x: mpmath.betainc(a, b, 0, x, regularized=True),
    "log_add_exp": lambda x, y: mpmath.log(mpmath.exp(x) + mpmath.exp(y)),
}

ONLY_POSITIVE = ("bessel_y0", "bessel_y1", "bessel_k0", "bessel_k1", "bessel_k0e", "bessel_k1e")


def draw(name: str, rng: random.Random) -> list[float]:
    """Finite operands inside the domain."""
    size = rng.choice([0.01, 0.5, 3, 12])
    x = rng.uniform(0.1, 1) * size
    if name == "polygamma":
        return [rng.randint(0, 6), x * rng.choice([1, 1, -1])]
    if name == "zeta":
        return [rng.choice([2, 3, 8, rng.uniform(1.2, 10)]), x]
    if name in ("igamma", "igammac", "igamma_grad_a", "random_gamma_grad"):
        return [rng.uniform(0.1, 1) * size, rng.choice([1, 2]) * x]
    if name == "regularized_incomplete_beta":
        return [rng.choice([1, 2, 0.5, x]), rng.choice([1, 3, rng.uniform(0.1, 9)]), rng.choice([0.25, rng.random()])]
    if name == "log_add_exp":
        return [rng.choice([1, -1]) * x, rng.uniform(-9, 9)]
    if name == "ndtri":
        return [rng.random() ** 3]
    return [x if name in ONLY_POSITIVE else x * rng.choice([1, -1])]


def fraction(value: Any) -> Fraction:
    sign, significand, exponent, _ = value._mpf_
    return Fraction(-int(significand) if sign else int(significand)) * Fraction(2) ** int(exponent)


@pytest.mark.parametrize("fmt", TESTED, ids=str)
@pytest.mark.parametrize("name", SPECIAL_NAMES)
def test_words_are_the_nearest(name: str, fmt: Format) -> None:
    rng = random.Random(f"{name} {fmt.name}")
    with mpmath.workprec(600):
        for _ in range(8):
            words = [encode(fmt, Fraction(x)) for x in draw(name, rng)]
            values = [decode(fmt, word) for word in words]
            if any(isinstance(value, str) or value == 0 for value in values):
                continue
            if name in ("ndtri", "regularized_incomplete_beta") and values[-1] >= 1:
                continue
            exact = fraction(REFERENCE[name](*(mpmath.mpf(v.numerator) / v.denominator for v in values)))
            word, flags = elementary(name, fmt, *words)
            assert word == encode(fmt, exact), f"{name} of {values}"
            assert (Flags.INEXACT in flags) == (decode(fmt, word) != exact)


def test_every_operation_has_its_function() -> None:
    assert set(SPECIAL) == set(SPECIAL_NAMES) == set(REFERENCE)


# ---- ends of the domain ---------------------------------------------------------------------------------------------

POINTS = [0.0, -0.0, 1.0, -1.0, -2.0, -0.5, 0.5, 2.0, 3.0, np.inf, -np.inf, np.nan]


def given(name: str, *operands: Any) -> np.ndarray:
    tensors = [Tensor.from_numpy(np.asarray(x, np.float32)) for x in operands]
    return evaluate(name, tensors, tensors[0].type).to_numpy()


def assert_like(
    name: str, expected: Callable[..., Any], count: int, chosen: dict[tuple[float, ...], float | None]
) -> None:
    """As the frontend at all combinations of POINTS, but for what is chosen otherwise (None: told elsewhere)."""
    rows = np.array(list(itertools.product(POINTS, repeat=count)), np.float32).T
    got, want = given(name, *rows), np.array(expected(*rows), np.float32)
    for column, one, other in zip(rows.T.tolist(), got.tolist(), want.tolist(), strict=True):
        if any(np.isnan(column)):
            assert np.isnan(one), column
            continue
        # -0 and 0 are the same key
        wanted = chosen.get(tuple(column), other)
        if wanted is None:
            continue
        assert one == pytest.approx(wanted, rel=3e-4, abs=1e-6, nan_ok=True), f"{name}{tuple(column)}"


def test_zeta_and_polygamma_at_the_ends() -> None:
    # limits, where XLA gives NaN, and a pole where SciPy has one
    limits: dict[tuple[float, ...], float | None] = {(s, np.inf): 0.0 for s in (2.0, 3.0)}
    limits |= {(np.inf, 0.5): np.inf, (np.inf, 1.0): 1.0, (np.inf, 2.0): 0.0, (np.inf, 3.0): 0.0, (np.inf, np.inf): 0.0}
    # XLA looks at the pole in q before it looks at x < 1
    limits |= {(x, q): np.nan for x in (0.0, -2.0) for q in (0.0, -1.0, -2.0, -np.inf)}
    assert_like("zeta", lax.zeta, 2, limits)
    limits = {(m, np.inf): 0.0 for m in (1.0, 2.0, 3.0)}
    assert_like("polygamma", lax.polygamma, 2, limits | {(0.0, 0.0): None})
    assert given("polygamma", [0.0, 0.0], [0.0, -0.0]).tolist() == [-np.inf, np.inf]


def test_incomplete_gamma_at_the_ends() -> None:
    one_sided: dict[tuple[float, ...], float | None] = {(np.inf, x): 0.0 for x in (0.5, 1.0, 2.0, 3.0)}
    # the sum from which XLA takes igamma(0, 1/2) is NaN times 0
    assert_like("igamma", lax.igamma, 2, one_sided | {(0.0, 0.5): 1.0})
    assert_like("igammac", lax.igammac, 2, dict.fromkeys(one_sided, 1.0))
    assert_like("igamma_grad_a", lax.igamma_grad_a, 2, {})
    assert_like("random_gamma_grad", lax.random_gamma_grad, 2, {})


def test_incomplete_beta_at_the_ends() -> None:
    assert_like("regularized_incomplete_beta", lax.betainc, 3, {})


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("bessel_i0", "i0"),
        ("bessel_i1", "i1"),
        ("bessel_i0e", "i0e"),
        ("bessel_i1e", "i1e"),
        ("bessel_j0", "j0"),
        ("bessel_j1", "j1"),
        ("bessel_y0", "y0"),
        ("bessel_y1", "y1"),
        ("bessel_k0", "k0"),
        ("bessel_k1", "k1"),
        ("bessel_k0e", "k0e"),
        ("bessel_k1e", "k1e"),
        ("erfcx", "erfcx"),
        ("ndtri", "ndtri"),
        ("log_ndtr", "log_ndtr"),
    ],
)
def test_functions_of_one_operand_as_scipy_has_them(name: str, function: str) -> None:
    finite = [x for x in POINTS if np.isfinite(x)]
    points = np.array([*finite, np.nan, 30.0, -30.0, 1e-10, 0.999], np.float32)
    got, want = given(name, points), getattr(scipy.special, function)(points.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-30)
    some = ~np.isnan(got) & (points != 0)
    np.testing.assert_array_equal(np.signbit(got)[some], np.signbit(want)[some])


def test_odd_functions_keep_zeros() -> None:
    for name in ("bessel_i1", "bessel_i1e", "bessel_j1"):
        assert [str(x) for x in given(name, [0.0, -0.0]).tolist()] == ["0.0", "-0.0"], name


def test_infinities() -> None:
    """The limits at inf and -inf, their zeros with the sign from which they are reached where that is one."""
    nan, inf = "nan", "inf"
    for name, at_plus, at_minus in (
        ("bessel_i0", inf, inf),
        ("bessel_i1", inf, "-inf"),
        ("bessel_i0e", "0.0", "0.0"),
        ("bessel_i1e", "0.0", "-0.0"),
        ("bessel_j0", "0.0", "0.0"),
        ("bessel_j1", "0.0", "-0.0"),
        ("bessel_y0", "0.0", nan),
        ("bessel_y1", "0.0", nan),
        ("bessel_k0", "0.0", nan),
        ("bessel_k1", "0.0", nan),
        ("bessel_k0e", "0.0", nan),
        ("bessel_k1e", "0.0", nan),
        ("erfcx", "0.0", inf),
        ("ndtri", nan, nan),
        ("log_ndtr", "-0.0", "-inf"),
    ):
        assert [str(x) for x in given(name, [np.inf, -np.inf]).tolist()] == [at_plus, at_minus], name


def test_log_add_exp_at_the_ends() -> None:
    assert_like("log_add_exp", jnp.logaddexp, 2, {})


# ---- exact and nearly exact values ----------------------------------------------------------------------------------


def word(fmt: Format, value: Fraction | int | float) -> int:
    return encode(fmt, Fraction(value))


@pytest.mark.parametrize("fmt", [FORMATS["float32"], FORMATS["float64"], FORMATS["float128"]], ids=str)
def test_rational_values_of_the_incomplete_beta_function(fmt: Format) -> None:
    """Binomial tails, which are exact, and I(1/2; a, a), against sums of fractions."""
    from math import comb

    def beta(a: Any, b: Any, x: Any) -> tuple[int, Flags]:
        return elementary("regularized_incomplete_beta", fmt, word(fmt, a), word(fmt, b), word(fmt, x))

    for a, b in ((1, 1), (1, 5), (4, 1), (3, 4), (20, 9)):
        for x in (Fraction(1, 2), Fraction(3, 4), Fraction(5, 2**12), 1 - Fraction(1, 2**20)):
            n = a + b - 1
            exact = sum((comb(n, j) * x**j * (1 - x) ** (n - j) for j in range(a, n + 1)), Fraction(0))
            got, flags = beta(a, b, x)
            assert got == word(fmt, exact)
            assert (flags == 0) == (decode(fmt, got) == exact)
    assert beta(0.625, 0.625, 0.5) == (word(fmt, 0.5), Flags(0))
    # sqrt(1/4) (1 + (1/2) (3/4)), and a midpoint: 1 - (1/2)**(precision + 1)
    assert beta(0.5, 2, 0.25) == (word(fmt, Fraction(11, 16)), Flags(0))
    assert beta(1, fmt.precision + 1, 0.5) == (word(fmt, 1), Flags.INEXACT)


@pytest.mark.parametrize("fmt", [FORMATS["bfloat16"], FORMATS["float64"], FORMATS["float128"]], ids=str)
def test_results_beside_a_number_of_the_format(fmt: Format) -> None:
    """Values that differ from a number less than any precision shows are rounded by their side, flags raised."""
    one, small = word(fmt, 1), word(fmt, Fraction(1, 2 ** (fmt.bias - 2)))
    for name in ("bessel_i0", "bessel_j0", "bessel_i0e", "erfcx"):
        assert elementary(name, fmt, small) == (one, Flags.INEXACT), name
    half = word(fmt, Fraction(1, 2 ** (fmt.bias - 1)))
    for name in ("bessel_i1", "bessel_j1", "bessel_i1e"):
        assert elementary(name, fmt, small) == (half, Flags.INEXACT | (Flags.UNDERFLOW if half < fmt.min_normal else 0))
    huge = word(fmt, 2 ** (fmt.bias - 2))
    assert elementary("bessel_k1", fmt, small) == (huge, Flags.INEXACT)
    assert elementary("bessel_k1e", fmt, small) == (huge, Flags.INEXACT)
    assert elementary("igamma", fmt, one, huge) == (one, Flags.INEXACT)
    assert elementary("igammac", fmt, huge, one) == (one, Flags.INEXACT)
    assert elementary("zeta", fmt, huge, one) == (one, Flags.INEXACT)
    assert elementary("log_add_exp", fmt, huge, one) == (huge, Flags.INEXACT)
    assert elementary("log_add_exp", fmt, one, fmt.sign_mask | huge) == (one, Flags.INEXACT)
    assert elementary("igamma", fmt, one, small)[0] == small
    square = word(fmt, 2 ** (fmt.bias // 2 // 2 * 2))
    root = word(fmt, Fraction(1, 2 ** (fmt.bias // 2 // 2)))
    assert elementary("polygamma", fmt, one, root) == (square, Flags.INEXACT)
    assert elementary("polygamma", fmt, one, huge) == (small, Flags.INEXACT)


def test_results_out_of_range() -> None:
    fmt = FORMATS["float32"]
    big, one = word(fmt, 2**100), word(fmt, 1)
    overflow, underflow = Flags.OVERFLOW | Flags.INEXACT, Flags.UNDERFLOW | Flags.INEXACT
    assert elementary("bessel_i0", fmt, big) == (fmt.inf, overflow)
    assert elementary("bessel_i1", fmt, fmt.sign_mask | big) == (fmt.sign_mask | fmt.inf, overflow)
    assert elementary("erfcx", fmt, fmt.sign_mask | big) == (fmt.inf, overflow)
    for name, operands in {
        "bessel_k0": (big,),
        "bessel_k1": (big,),
        "zeta": (big, word(fmt, 3)),
        "igamma": (big, one),
        "igammac": (one, big),
        "regularized_incomplete_beta": (big, one, word(fmt, 0.5)),
        "log_add_exp": (word(fmt, -200), word(fmt, -300)),
    }.items():
        want = (0, underflow) if name != "log_add_exp" else (word(fmt, -200), Flags.INEXACT)
        assert elementary(name, fmt, *operands) == want, name
    assert elementary("igamma_grad_a", fmt, one, big) == (fmt.sign_mask, underflow)
    assert elementary("polygamma", fmt, word(fmt, 50), word(fmt, 2.0**-20))[1] == overflow


def test_what_is_refused_says_why() -> None:
    type = TensorType((1,), parse_dtype("float64"))
    big = tensor(type, [word(FORMATS["float64"], 2**90)])
    nodes = [Node(0, "input", (), {}, (type,)), Node(1, "random_gamma_grad", (Ref(0), Ref(0)), {}, (type,))]
    with pytest.raises(UnsupportedError, match="TL0801") as caught:
        run(Graph(Body(tuple(nodes), (0,), (Ref(1),))), [big])
    assert "4096" in str(caught.value)


# ---- arrays ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SPECIAL)
@pytest.mark.parametrize("dtype", ["float8_e5m2", "float16", "float64", "float128"])
def test_arrays_hold_what_the_words_give(name: str, dtype: str) -> None:
    rng = random.Random(f"{name} {dtype}")
    type = TensorType((2, 3), parse_dtype(dtype))
    fmt = type.dtype.float_format
    columns = list(zip(*(draw(name, rng) for _ in range(6)), strict=True))
    words = [[word(fmt, value) for value in column] for column in columns]
    result, flags = evaluate_with_flags(name, [tensor(type, column) for column in words], type)
    expected = [elementary(name, fmt, *row) for row in zip(*words, strict=True)]
    assert words_of(result) == [one for one, _ in expected]
    assert flags == [int(raised) for _, raised in expected]


def test_jax_computes_the_same_functions() -> None:
    rng = np.random.default_rng(0)
    a, b, x = (rng.uniform(0.3, 6, 40).astype(np.float32) for _ in range(3))
    p = rng.random(40).astype(np.float32)
    for got, want, error in (
        (given("igamma", a, x), lax.igamma(a, x), 2e-5),
        (given("igammac", a, x), lax.igammac(a, x), 2e-4),
        (given("igamma_grad_a", a, x), lax.igamma_grad_a(a, x), 2e-4),
        (given("random_gamma_grad", a, x), lax.random_gamma_grad(a, x), 2e-4),
        (given("regularized_incomplete_beta", a, b, p), lax.betainc(a, b, p), 2e-4),
        (given("zeta", a + 1, x), lax.zeta(a + 1, x), 2e-5),
        (given("bessel_i0e", x - 3), lax.bessel_i0e(x - 3), 2e-6),
        (given("bessel_i1e", x - 3), lax.bessel_i1e(x - 3), 2e-6),
        (given("ndtri", p), jax.scipy.special.ndtri(p), 2e-5),
        (given("log_ndtr", x - 3), jax.scipy.special.log_ndtr(x - 3), 2e-5),
        (given("log_add_exp", a, x), jnp.logaddexp(a, x), 2e-6),
    ):
        np.testing.assert_allclose(got, np.asarray(want), rtol=error)
