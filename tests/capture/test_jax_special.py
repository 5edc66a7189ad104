"""Special functions against JAX, and against SciPy in binary64 where JAX is the less accurate side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from jax import lax
from jax_oracle import capture, checked, expect_ulps, ops, outputs

from tlir.backends.reference import evaluate

RNG = np.random.default_rng(23)
A, B, X = (RNG.uniform(0.1, 6, 40).astype(np.float32) for _ in range(3))
UNIT = RNG.uniform(0, 1, 40).astype(np.float32)

FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...], Callable[..., Any]]] = {
    "igamma": (lax.igamma, (A, X), scipy.special.gammainc),
    "igammac": (lax.igammac, (A, X), scipy.special.gammaincc),
    "regularized_incomplete_beta": (lax.betainc, (A, B, UNIT), scipy.special.betainc),
    "bessel_i0e": (lax.bessel_i0e, (A - B,), scipy.special.i0e),
    "bessel_i1e": (lax.bessel_i1e, (A - B,), scipy.special.i1e),
    "zeta": (lax.zeta, (A + 1, X), scipy.special.zeta),
    "polygamma": (lax.polygamma, (np.floor(A), X), lambda n, x: scipy.special.polygamma(n.astype(int), x)),
    "lgamma": (lax.lgamma, (X,), scipy.special.gammaln),
    "digamma": (lax.digamma, (X,), scipy.special.digamma),
    "erf_inv": (lax.erf_inv, (2 * UNIT - 1,), scipy.special.erfinv),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_functions_are_single_operations_that_round_once(name: str) -> None:
    fn, args, exact = FUNCTIONS[name]
    artifact = capture.export(fn, *args)
    assert ops(artifact) == [name]
    graph = checked(artifact)
    (got,) = (tensor.to_numpy() for tensor in evaluate(graph.body, graph.samples[0].inputs))
    theirs = graph.samples[0].outputs[0].to_numpy()
    wanted = exact(*(x.astype(np.float64) for x in args))
    # SciPy's binary64 is accurate to some 1e-13: what is rounded from it is right but for ties
    np.testing.assert_allclose(got, wanted, rtol=6.1e-8)
    assert np.abs(got - theirs).max() <= 2e-5 * max(1, np.abs(wanted).max())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_planted_error_is_seen(name: str) -> None:
    fn, args, exact = FUNCTIONS[name]
    graph = checked(capture.export(lambda *args: fn(*args[:-1], args[-1] * np.float32(0.999)), *args))
    (got,) = (tensor.to_numpy() for tensor in evaluate(graph.body, graph.samples[0].inputs))
    wanted = exact(*(x.astype(np.float64) for x in args))
    assert np.abs(got / wanted - 1).max() > 1e-6


def test_derivatives_of_gamma_samples_and_functions() -> None:
    def close(fn: Callable[..., Any], *args: Any) -> None:
        for got, want in outputs(fn, *args):
            np.testing.assert_allclose(got.to_numpy(), want.to_numpy(), rtol=1e-4, atol=1e-6)

    close(lambda a, x: lax.random_gamma_grad(a, x), A, X)
    close(jax.vmap(jax.grad(lambda a, x: lax.igamma(a, x))), A[:8], X[:8])
    close(jax.vmap(jax.grad(lambda x: lax.lgamma(x) * lax.digamma(x))), X[:8])
    close(lambda x: jax.scipy.special.i0(x) * jax.scipy.special.i1(x), X)
    close(lambda a, x: (jax.scipy.stats.gamma.cdf(x, a), jax.scipy.stats.beta.logpdf(x / 7, a, 2.0)), A, X)


def test_half_precision_rounds_once() -> None:
    a, x = A.astype(jnp.bfloat16), X.astype(jnp.bfloat16)
    expect_ulps(1, lambda a, x: (lax.igamma(a, x), lax.bessel_i0e(x), lax.erf_inv(x / 8)), a, x)


@pytest.mark.parametrize("reverse", [False, True])
def test_running_logaddexp(reverse: bool) -> None:
    x = RNG.standard_normal((5, 7)).astype(np.float32)
    artifact = capture.export(lambda x: lax.cumlogsumexp(x, 1, reverse), x)
    assert ops(artifact) == ["cumulative"]
    expect_ulps(16, lambda x: lax.cumlogsumexp(x, 1, reverse), x)
    z = (x[:3, :4] + 1j * x[2:5, :4]).astype(np.complex64)
    (pair,) = outputs(lambda z: lax.cumlogsumexp(z, 0, reverse), z)
    np.testing.assert_allclose(pair[0].to_numpy(), pair[1].to_numpy(), rtol=1e-5)
