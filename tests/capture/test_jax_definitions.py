"""Primitives that are read through the function that defines them: JAX's own, other libraries', and linear solves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special as jsp
import numpy as np
import pytest
from jax import lax
from jax.extend import core as jax_core
from jax.interpreters import batching, mlir
from jax_oracle import capture, checked, expect_ulps, expect_words, ops, outputs

from tlir.backends.reference import evaluate
from tlir.ir.tensor import Tensor

X = np.array([[0.5, 1.5, 2.5], [3.5, 0.25, 7.0]], np.float32)


def test_running_logsumexp() -> None:
    for reverse in (False, True):
        expect_ulps(16, lambda x, r=reverse: lax.cumlogsumexp(x, axis=1, reverse=r), X)


SPECIAL: dict[str, Callable[..., Any]] = {
    "igamma": lambda x: lax.igamma(x, x + 1),
    "igammac": lambda x: lax.igammac(x, x + 1),
    "betainc": lambda x: lax.betainc(x, x + 1, x / 8),
    "i0e": lambda x: jsp.i0e(x),
    "gamma_grad": lambda x: lax.random_gamma_grad(x, x + 1),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions_are_jaxs_own_formulas(name: str) -> None:
    for got, want in _values(SPECIAL[name], X):
        np.testing.assert_allclose(got, want, rtol=2e-5)


def _values(fn: Callable[..., Any], *args: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(got.to_numpy(), want.to_numpy()) for got, want in outputs(fn, *args)]


def test_a_linear_solve_is_its_solver() -> None:
    def solve(a: Any, b: Any) -> Any:
        steps = lambda f, b: lax.fori_loop(0, 4, lambda k, x: x + (b - f(x)) * 0.5, b)  # noqa: E731
        return lax.custom_linear_solve(lambda x: a * x, b, steps, symmetric=True)

    a, b = np.array([1, 2, 1.5], np.float32), np.array([1, -2, 4], np.float32)
    expect_words(solve, a, b)
    assert "scan" in ops(capture.export(solve, a, b))
    expect_words(jax.grad(lambda b: jnp.sum(solve(a, b))), b)


def test_the_branch_of_the_platform_is_taken() -> None:
    def fn(x: Any) -> Any:
        return lax.platform_dependent(x, cpu=lambda x: x + 1, tpu=lambda x: x * 2, default=lambda x: x - 1)

    expect_words(fn, X)
    assert ops(capture.export(fn, X))[-1] == "add"
    other = lambda x: lax.platform_dependent(x, tpu=lambda x: x * 2, default=lambda x: x - 1)  # noqa: E731
    assert ops(capture.export(other, X))[-1] == "subtract"


def third_party() -> Any:
    """A primitive as other libraries define theirs: an ordinary function for its value, traced for its compilation."""
    primitive = jax_core.Primitive("third_party_average")
    implementation = lambda x, y, *, weight: x * weight + y * (1 - weight)  # noqa: E731
    primitive.def_impl(implementation)
    primitive.def_abstract_eval(lambda x, y, *, weight: x)
    mlir.register_lowering(primitive, mlir.lower_fun(implementation, multiple_results=False))
    batching.defvectorized(primitive)
    return primitive


def test_primitives_of_other_libraries() -> None:
    average = third_party()
    fn = lambda x: average.bind(x, x * 2, weight=0.25)  # noqa: E731
    expect_words(fn, X)
    assert {"multiply", "add"} <= set(ops(capture.export(fn, X)))
    expect_words(lambda x: lax.scan(lambda c, r: (average.bind(c, r, weight=0.5), c), x[0], x), X)
    expect_words(jax.vmap(fn), X)


def test_what_has_no_definition_is_refused_by_name() -> None:
    unknown = jax_core.Primitive("third_party_unknown")
    unknown.def_abstract_eval(lambda x: x)
    with pytest.raises(capture.UnsupportedError, match=r"third_party_unknown at .*there is no operation"):
        capture.export(lambda x: unknown.bind(x), X)
    opaque = jax_core.Primitive("third_party_opaque")
    opaque.def_abstract_eval(lambda x: x)
    opaque.def_impl(lambda x: np.sort(np.array(x)))
    with pytest.raises(capture.UnsupportedError, match="third_party_opaque"):
        capture.export(lambda x: opaque.bind(x), X)


def test_pivots_become_a_permutation() -> None:
    expect_words(lambda p: lax.linalg.lu_pivots_to_permutation(p, 4), np.array([2, 2, 3], np.int32))


def raises(index: Any) -> Any:
    raise RuntimeError("negative")


def checked_root(x: Any) -> Any:
    """An error check as equinox writes it: a choice, one of whose branches calls a function that raises."""
    result = jax.eval_shape(lambda: x)
    return lax.cond(x < 0, lambda: jax.pure_callback(raises, result, jnp.int32(0)), lambda: lax.sqrt(x))


def test_error_checks_of_equinox_are_its_nan_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(capture.UnsupportedError, match=r"pure_callback.*it calls a Python function"):
        capture.export(checked_root, np.float32(4))
    monkeypatch.setattr(raises, "__module__", "equinox._errors")
    with pytest.warns(UserWarning, match="error checks of equinox are recorded as its mode EQX_ON_ERROR=nan"):
        graph = checked(capture.export(checked_root, np.float32(4)))
    (root,) = evaluate(graph.body, graph.samples[0].inputs)
    assert root.to_numpy() == 2
    (failed,) = evaluate(graph.body, [Tensor.from_numpy(np.array(-4, np.float32))])
    assert np.isnan(failed.to_numpy())
    with pytest.warns(UserWarning, match="equinox"), pytest.raises(capture.CaptureError, match="pure_callback"):
        capture.export(checked_root, np.float32(-4))


def test_collectives_over_mapped_axes_are_reductions() -> None:
    x = np.arange(12, dtype=np.int32).reshape(3, 4)

    def each(row: Any) -> Any:
        return row - lax.psum(row, "rows"), lax.pmax(row, "rows"), lax.pmin(row[0], "rows"), lax.pmean(row, "rows")

    expect_words(jax.vmap(each, axis_name="rows"), x)


def test_index_dimensions_given_as_a_range() -> None:
    x, numbers = np.zeros((4, 4), np.float32), lax.ScatterDimensionNumbers(range(0), (0, 1), (0, 1))
    rows = np.array([[0, 1], [2, 3]], np.int32)
    expect_words(lambda x: lax.scatter(x, rows, np.ones(2, np.float32), numbers), x)
