"""Special functions, orthogonal polynomials, integer algorithms, histograms and distances against PyTorch's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch_oracle import captured, distances, family, far

special = torch.special
X = torch.tensor(
    [-7.5, -3.0, -1.0, -0.5, -0.0, 0.25, 0.5, 1.0, 1.5, 2.5, 4.0, 9.0, 30.0, 89.5, float("inf"), float("nan")]
)
UNIT = torch.linspace(-1, 1, 12)
POSITIVE = torch.tensor([0.03, 0.4, 0.5, 1.0, 1.7, 3.2, 8.0, 25.0])

UNARY: dict[str, Callable[[torch.Tensor], Any]] = {
    "i0": torch.i0,
    "i0e": special.i0e,
    "i1": special.i1,
    "i1e": special.i1e,
    "modified_bessel_i0": special.modified_bessel_i0,
    "modified_bessel_i1": special.modified_bessel_i1,
    "erfcx": special.erfcx,
    "spherical_bessel_j0": special.spherical_bessel_j0,
}


def test_special_functions() -> None:
    assert far(family(UNARY, X), {"i1": 16, "modified_bessel_i1": 16}, default=8) == {}


def test_special_functions_of_positive_numbers() -> None:
    functions = {
        name: getattr(special, name)
        for name in ("bessel_y0", "modified_bessel_k0", "modified_bessel_k1", "scaled_modified_bessel_k0")
    }
    functions |= {
        "scaled_modified_bessel_k1": special.scaled_modified_bessel_k1,
        "ndtri": lambda x: special.ndtri(x / 26),
    }
    functions |= {f"polygamma {n}": lambda x, n=n: torch.polygamma(n, x) for n in range(4)}
    functions |= {"zeta": lambda x: special.zeta(x + 1, x), "igamma": lambda x: torch.igamma(x, x + 0.5)}
    functions |= {"igammac": lambda x: torch.igammac(x + 0.5, x)}
    limits = {"polygamma 0": 40, "polygamma 2": 24, "polygamma 3": 24, "bessel_y0": 40}
    assert far(family(functions, POSITIVE), limits, default=12) == {}


def test_the_airy_function_on_all_of_its_pieces() -> None:
    x = torch.tensor(
        [-40.0, -9.5, -2.1, -2.0, -0.3, 0.0, 0.7, 2.0, 2.1, 5.0, 9.0, 60.0, 104.0, float("inf"), float("nan")]
    )
    (mine,) = distances(captured(special.airy_ai, x.double()))
    assert mine <= 1 << 12  # its zeros' neighbours; the values themselves are near 10^-1
    assert far(family({"airy": special.airy_ai}, torch.tensor([0.3, 2.5, 8.5, 104.0])), default=16) == {}


POLYNOMIALS = ["chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w"]
POLYNOMIALS += [f"shifted_{name}" for name in POLYNOMIALS]
POLYNOMIALS += ["hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"]


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_orthogonal_polynomials(name: str) -> None:
    """At every degree for itself: below zero, the first three, the recurrence, and the trigonometric form."""
    x, n = torch.meshgrid(torch.tensor([-1.5, -1.0, -0.3, 0.0, 0.6, 1.0, 1.2]), torch.arange(-1.0, 12.0), indexing="ij")
    function = getattr(special, name)
    graph = captured(lambda x, n: function(x, n), x.double(), n.double())
    mine = torch.from_numpy(_floats(graph))
    torch.testing.assert_close(mine, function(x.double(), n.double()), rtol=1e-12, atol=1e-11)
    scalar = captured(lambda x: function(x, 5), x)
    torch.testing.assert_close(torch.from_numpy(_floats(scalar)), function(x, 5).double(), rtol=2e-5, atol=2e-5)


def _floats(graph: Any) -> Any:
    from tlir.backends.reference import evaluate

    (result,) = evaluate(graph.body, graph.samples[0].inputs)
    name = {"float32": "<f4", "float64": "<f8"}[str(result.dtype)]
    return result.words.view(name).astype("<f8")


def test_greatest_divisors() -> None:
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randint(-60, 60, (40,), generator=generator) for _ in range(2))
    x[:3], y[:3] = torch.tensor([0, 0, 12]), torch.tensor([0, 7, 0])
    assert family({"gcd": torch.gcd, "lcm": torch.lcm}, x, y) == {"gcd": 0, "lcm": 0}
    small = x.to(torch.uint8), y.to(torch.uint8)
    assert family({"gcd": torch.gcd, "lcm": torch.lcm}, *small) == {"gcd": 0, "lcm": 0}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_mantissas_and_exponents(dtype: torch.dtype) -> None:
    smallest = torch.tensor([0, 1], dtype=torch.int16).view(torch.float16).to(torch.float64)[1]
    x = torch.cat([X.double(), smallest.reshape(1), -smallest.reshape(1) * 3, torch.tensor([1e-40])]).to(dtype)
    x = x[torch.isfinite(x)]  # what the exponents of infinities are is not defined
    assert distances(captured(lambda x: tuple(torch.frexp(x)), x)) == [0, 0]
    n = torch.arange(len(x)) - 5
    assert distances(captured(torch.ldexp, x, n)) == [0]


def test_bits_hashed_together() -> None:
    x = torch.tensor([[1.5, -2.0], [3.0, 0.25]])
    assert distances(captured(lambda x: torch.hash_tensor(x), x)) == [0]


HISTOGRAMS: dict[str, Callable[[torch.Tensor], Any]] = {
    "histc": lambda x: torch.histc(x, 6, -1.0, 2.0),
    "histc of the data's range": lambda x: torch.histc(x, 7),
    "histc of equal data": lambda x: torch.histc(x * 0 + 3, 4),
    "histogram": lambda x: tuple(torch.histogram(x, 5)),
    "histogram with a range": lambda x: tuple(torch.histogram(x, 5, range=(-1.0, 1.0), weight=x.abs())),
    "histogram of edges": lambda x: tuple(torch.histogram(x, torch.tensor([-2.0, -0.5, 0.0, 1.0]))),
    "histogramdd": lambda x: torch.histogramdd(x.reshape(-1, 2), [3, 4]).hist,
    "histogramdd, density": lambda x: torch.histogramdd(x.reshape(-1, 2), [2, 3], density=True).hist,
}


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_histograms(name: str) -> None:
    x = torch.randn(60, generator=torch.Generator().manual_seed(1))
    assert max(distances(captured(HISTOGRAMS[name], x))) <= (
        4 if "weight" in name or "," in name or "range" in name else 1
    )


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 3.0, float("inf")])
def test_distances(p: float) -> None:
    generator = torch.Generator().manual_seed(2)
    x, y = torch.randn(2, 5, 4, generator=generator), torch.randn(2, 3, 4, generator=generator)
    functions = {
        "cdist": lambda x, y: torch.cdist(x, y, p=p),
        "pdist": lambda x, y: torch.pdist(x[0], p=p),
        "dist": lambda x, y: torch.dist(x[:, :3], y, p=p),
    }
    assert far(family(functions, x, y), default=8) == {}


def test_distances_by_a_matrix_product() -> None:
    generator = torch.Generator().manual_seed(3)
    x, y = (torch.randn(n, 4, generator=generator, dtype=torch.float64) for n in (28, 27))
    graph = captured(lambda x, y: torch.cdist(x, y), x, y)
    torch.testing.assert_close(torch.from_numpy(_floats(graph)), torch.cdist(x, y), rtol=1e-12, atol=1e-7)


def test_a_wrong_degree_is_found() -> None:
    """The comparison of these tests is not so wide that a polynomial of the next degree would pass."""
    x, n = UNIT, torch.full_like(UNIT, 3.0)
    graph = captured(lambda x, n: special.legendre_polynomial_p(x, n), x, n)
    wrong = special.legendre_polynomial_p(x, n + 1).double()
    with pytest.raises(AssertionError):
        torch.testing.assert_close(torch.from_numpy(_floats(graph)), wrong, rtol=2e-5, atol=2e-5)


COMPLEX: dict[str, Callable[[torch.Tensor], Any]] = {
    "exp2": torch.exp2,
    "log2": torch.log2,
    "log10": torch.log10,
    "silu": torch.nn.functional.silu,
    "lerp": lambda z: torch.lerp(z, z.flip(0) * 1j, 0.75),
    "lerp near": lambda z: torch.lerp(z, z.flip(0) * 1j, 0.25),
    "var": lambda z: torch.var(z),
    "logsumexp": lambda z: torch.logsumexp(z, 0),
    "logcumsumexp": lambda z: torch.logcumsumexp(z * 4, 0),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_numbers(name: str) -> None:
    z = torch.complex(torch.tensor([0.5, -1.5, 2.0, 0.1]), torch.tensor([1.0, -0.25, 3.0, 0.0]))
    graph = captured(COMPLEX[name], z)
    from tlir.backends.reference import evaluate

    (result,) = evaluate(graph.body, graph.samples[0].inputs)
    expected = COMPLEX[name](z)
    words = "<c8" if expected.dtype.is_complex else "<f4"
    mine = torch.from_numpy(result.words.view(words).astype("<c16")).reshape(expected.shape)
    torch.testing.assert_close(mine, expected.to(torch.complex128), rtol=4e-6, atol=1e-6)


def test_bessel_functions_as_torch_approximates_them() -> None:
    """In float64 too, where torch is some 10^-7 away from the functions themselves."""
    x = torch.tensor([0.0, 1e-6, 0.3, 1.0, 2.2, 4.9, 5.0, 5.1, 11.0, 40.0, -3.0, -7.0], dtype=torch.float64)
    for name in ("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"):
        graph, expected = captured(getattr(special, name), x), getattr(special, name)(x)
        torch.testing.assert_close(torch.from_numpy(_floats(graph)), expected, rtol=1e-13, atol=1e-14, equal_nan=True)
