"""Equations that are compiled in one module, each as a branch of a conditional: the words that they have alone."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.interpreters.ad import add_jaxvals_p

from capture import jax_capture

Case = tuple[Callable[..., Any], tuple[Any, ...]]

ROWS, COLUMNS = 5, 67  # a row is some vectors and a rest
UNARY = "exp exp2 expm1 log log1p sin cos tanh logistic erf erf_inv rsqrt sqrt square neg abs sign floor is_finite"
BINARY = "add sub mul div pow max min eq ne lt le gt ge"


def _numbers(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers of all magnitudes, among them infinities, NaN, both zeros and subnormal ones."""
    kind = jnp.dtype(dtype)
    unsigned = np.dtype(f"u{kind.itemsize}")
    words = rng.integers(0, np.iinfo(unsigned).max, shape, unsigned, endpoint=True).view(kind)
    if kind.kind == "i":
        return np.where(rng.random(shape) < 0.5, words, rng.integers(-3, 4, shape)).astype(kind)
    ordinary = (rng.standard_normal(shape) * 2).astype(kind)
    special = rng.choice(np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -3e-39, 0.5, 1, 2.5]), shape).astype(kind)
    which = rng.random(shape)
    return np.where(which < 0.7, ordinary, np.where(which < 0.85, special, words)).astype(kind)


def _cases(dtype: str) -> list[Case]:
    """Every kind of equation in float32; in the other dtypes those whose arithmetic is another's."""
    rng = np.random.default_rng(7)

    def new(*shape: int) -> np.ndarray:
        return _numbers(rng, dtype, shape)

    x, y, z = (new(ROWS, COLUMNS) for _ in range(3))
    index = np.array([[0], [3], [9], [1], [3]], np.int32)
    rows = lax.GatherDimensionNumbers((1,), (0,), (0,))
    into = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    at = (np.int32(3), np.int32(-2))
    of_many: list[Case] = [
        (lambda x, y: lax.concatenate([x, y], 1), (x, y)),
        (lambda x, fill: lax.pad(x, fill, ((1, 0, 2), (-3, 3, 0))), (x, new())),
        (lambda x, i, j: lax.dynamic_slice(x, (i, j), (3, 20), allow_negative_indices=False), (x, *at)),
        (lambda x, y, i, j: lax.dynamic_update_slice(x, y, (i, j), allow_negative_indices=False), (x, y[:3, :20], *at)),
        (lambda x, i: lax.gather(x, i, rows, (1, COLUMNS), mode="fill"), (x, index)),
        (lambda x, i, y: lax.scatter_add(x, i, y, into, mode="drop"), (x, index, y)),
        (lambda x, y: lax.dot_general(x, y, (((1,), (0,)), ((), ()))), (x, new(COLUMNS, 9))),
        (lambda x, y: lax.dot_general(x, y, (((1,), (1,)), ((0,), (0,)))), (x, y)),
        (lambda x, y: lax.dot_general(x, y, (((0,), (0,)), ((), ()))), (new(33, 17), new(33, 12))),
        (lambda x: lax.reduce_sum(x, (1,)), (x,)),
        (lambda x: lax.reduce_sum(x, (0,)), (x,)),
        (lambda x: lax.reduce_sum(x, (0, 1)), (new(40, 67),)),
        (lambda x: lax.reduce_max(x, (1,)), (x,)),
        (lambda x: lax.reduce_min(x, (0,)), (x,)),
        (lambda x: lax.argmax(x, 1, np.int32), (x,)),
        (lambda x: lax.argmin(x, 0, np.int32), (x,)),
        (lambda x: lax.cumsum(x, 1), (x,)),
    ]
    summing = [of_many[k] for k in (5, 6, 9, 14, 16)]
    if dtype == "int32":
        return summing
    if dtype != "float32":
        few: list[Case] = [(getattr(lax, name), (x,)) for name in ("exp", "tanh")]
        return [*few, *([(lax.pow, (x, y)), (lax.div, (x, y))] if dtype == "bfloat16" else []), *summing[:3]]
    cases: list[Case] = [(getattr(lax, name), (x,)) for name in UNARY.split()]
    cases += [(getattr(lax, name), (x, y)) for name in BINARY.split()]
    return [
        *cases,
        *of_many,
        (lambda x, y: add_jaxvals_p.bind(x, y), (x, y)),
        (lambda x: lax.integer_pow(x, 3), (x,)),
        (lambda x: lax.round(x), (x,)),
        (lambda p, x, y: lax.select_n(p, x, y), (x == y, x, y)),
        (lax.clamp, (y, x, z)),
        (lambda x: lax.convert_element_type(x, "float16"), (x,)),
        (lambda x: lax.convert_element_type(x, "int32"), (x,)),
        (lambda x: lax.cumlogsumexp(x, 1), (x,)),
    ]


def _kernels(cases: Sequence[Case]) -> list[tuple[jax_capture._Kernel, Sequence[Any]]]:
    """A kernel for the last step of each case, with its operands."""
    found = []
    for fn, operands in cases:
        closed = jax.make_jaxpr(fn)(*operands)
        program = jax_capture.Program(closed.jaxpr, closed.consts)
        values = dict(program.constants) | dict(zip(program.inputs, operands, strict=True))
        jax_capture._evaluate(program, operands, values.__setitem__)
        step = program.steps[-1]
        atoms = step.equation.invars, step.equation.outvars
        of_operands, of_results = (tuple((x.aval.shape, x.aval.dtype) for x in some) for some in atoms)
        kernel = jax_capture._Kernel(step.equation, None, of_operands, of_results)
        found.append((kernel, [values[value] for value in step.inputs]))
    return found


def _words(arrays: Sequence[Any]) -> list[Any]:
    return [(np.asarray(x).dtype, np.shape(x), np.ascontiguousarray(x).tobytes()) for x in arrays]


def _alone(kernel: jax_capture._Kernel, operands: Sequence[Any]) -> list[Any]:
    made = kernel.equation.primitive.bind(*operands, **kernel.equation.params)
    return list(made) if kernel.equation.primitive.multiple_results else [made]


COVERED: set[str] = set()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64", "int32"])
def test_words_in_a_module_with_others(dtype: str) -> None:
    with jax.enable_x64(dtype == "float64"), concurrent.futures.ThreadPoolExecutor(1) as pool:
        kernels = _kernels(_cases(dtype))
        groups = [jax_capture._Shared()]
        for kernel, _ in kernels:
            if not groups[-1].add(kernel):
                groups.append(jax_capture._Shared())
                assert groups[-1].add(kernel)
        for group in groups:
            group.compile(pool)
        for kernel, operands in kernels:
            name = kernel.equation.primitive.name
            assert jax_capture._may_share(kernel), name
            shared, branch = kernel.shared or (None, 0)
            assert shared is not None, name
            assert _words(shared(branch, operands)) == _words(_alone(kernel, operands)), (name, operands)
            COVERED.add(name)


def test_every_primitive_that_shares_is_compared() -> None:
    if len(COVERED) > 30:  # the other tests of this file were run
        assert COVERED == jax_capture._SHARING


def _step(x: Any) -> Any:
    """A loop whose equations are needed more often than was foreseen, a choice, and what follows in bfloat16."""

    def body(carry: tuple[Any, Any]) -> tuple[Any, Any]:
        k, y = carry
        return k + 1, lax.cond(k % 2 == 0, jnp.tanh, jnp.sin, jnp.exp(-y) @ y.T @ y / 8)

    y = lax.while_loop(lambda carry: carry[0] < 40, body, (0, x))[1]
    z = y.astype(jnp.bfloat16)
    return y.sum(1), (jnp.exp(z) @ z).sum(0)


def test_a_program_is_recorded_the_same_with_and_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax_capture, "_OWN_SECONDS", jax_capture._OWN_SECONDS / 20)
    x = np.random.default_rng(3).standard_normal((6, 6)).astype(np.float32)
    monkeypatch.setattr(jax_capture, "_KERNELS", {})
    together = jax_capture.export(_step, x, trace=True)
    shared = [kernel.shared for kernel in jax_capture._KERNELS.values()]
    assert any(shared)
    assert not all(shared)  # those of the loop were compiled alone in the end
    again = jax_capture.export(_step, x, trace=True)
    monkeypatch.setattr(jax_capture, "_KERNELS", {})
    monkeypatch.setattr(jax_capture, "_SHARING", frozenset())
    assert jax_capture.export(_step, x, trace=True) == together == again


def test_a_module_that_cannot_be_made_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Any:
        raise ValueError("not today")

    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    program = lambda x: jnp.exp(x) @ jnp.tanh(x).T  # noqa: E731
    expected = jax_capture.export(program, x)
    monkeypatch.setattr(jax_capture, "_KERNELS", {})
    monkeypatch.setattr(jax_capture._Shared, "compile", fails)
    assert jax_capture.export(program, x) == expected
    monkeypatch.setattr(jax_capture, "_KERNELS", {})
    monkeypatch.setattr(jax_capture._Kernel, "compile", fails)
    assert jax_capture.export(program, x) == expected
