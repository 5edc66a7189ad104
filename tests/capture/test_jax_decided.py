"""Values that the JAX capture takes from NumPy: the same words as XLA's, on ordinary and on special operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from capture import jax_capture

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, np.inf, -np.inf, np.nan]
ROUNDS = 300


def _program(fn: Callable[..., Any], *args: Any) -> jax_capture.Program:
    closed = jax.make_jaxpr(fn)(*args)
    return jax_capture.Program(closed.jaxpr, closed.consts)


def _words(array: Any) -> tuple[Any, ...]:
    array = np.asarray(array)
    return array.dtype, array.shape, np.ascontiguousarray(array).tobytes()


def _compare(fn: Callable[..., Any], draws: list[tuple[Any, ...]]) -> int:
    """Compares NumPy with XLA wherever NumPy decides the one step of ``fn``; the number of draws that it decided."""
    program = _program(fn, *draws[0])
    (step,) = program.steps
    decided = 0
    for operands in draws:
        with np.errstate(all="ignore"):
            mine = step.decided(operands, program)
        if mine is None:
            continue
        decided += 1
        shape = program.values[step.outputs[0]].shape
        given = operands
        if step.primitive in jax_capture.BROADCASTING:
            given = [jax_capture._broadcast_value(x, shape) for x in operands]
        theirs = step.equation.primitive.bind(*given, **step.equation.params)
        theirs = theirs if step.equation.primitive.multiple_results else [theirs]
        assert list(map(_words, mine)) == list(map(_words, theirs)), (step.primitive, operands)
    return decided


def _floats(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...], special: float) -> np.ndarray:
    """Numbers of all magnitudes, some special, subnormal, or at an end of the normal range."""
    info = np.finfo(dtype)
    unsigned = np.dtype(f"u{np.dtype(dtype).itemsize}")
    any_words = rng.integers(0, np.iinfo(unsigned).max, shape, unsigned, endpoint=True).view(dtype)
    x = np.where(rng.random(shape) < 0.8, rng.standard_normal(shape).astype(dtype) * 4, any_words)
    x[np.isnan(x)] = 1
    ends = [*SPECIAL, info.tiny, -info.tiny, info.smallest_subnormal, info.tiny / 2, info.max, info.eps]
    return np.where(rng.random(shape) < special, rng.choice(np.array(ends, dtype), shape), x).astype(dtype)


def _integers(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...], small: float) -> np.ndarray:
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    return np.where(rng.random(shape) < small, rng.integers(0, 5, shape), x).astype(dtype)


BINARY = [lax.add, lax.sub, lax.mul, lax.div, lax.max, lax.min, lax.eq, lax.ne, lax.lt, lax.le, lax.gt, lax.ge]
UNARY: list[Callable[..., Any]] = [
    lax.neg,
    lax.abs,
    lax.sqrt,
    lax.square,
    lax.floor,
    lax.ceil,
    lax.is_finite,
    lambda x: lax.integer_pow(x, 2),
    lambda x: lax.integer_pow(x, 3),
    lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
    *(lambda x, name=name: lax.convert_element_type(x, name) for name in ("int32", "int8", "uint32", "bool")),
    lambda x: lax.argmax(x, 0, np.int32),
    lambda x: lax.argmin(x, 0, np.int32),
    lambda x: lax.reduce_max_p.bind(x, axes=(0,), out_sharding=None),
    lambda x: lax.reduce_min_p.bind(x, axes=(0,), out_sharding=None),
]


@pytest.mark.parametrize("x64", [False, True])
def test_floats(x64: bool) -> None:
    rng = np.random.default_rng(1)
    dtype = np.float64 if x64 else np.float32
    cases: list[tuple[Callable[..., Any], int]] = [(fn, 2) for fn in BINARY] + [(fn, 1) for fn in UNARY]
    cases += [(lax.clamp, 3)]
    with jax.enable_x64(x64):
        for fn, count in cases:
            draws = [
                tuple(_floats(rng, dtype, (4,), special) for _ in range(count))
                for special in (0.0, 0.2)
                for _ in range(ROUNDS // 2)
            ]
            decided = _compare(fn, draws)
            assert 5 < decided <= ROUNDS, fn


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_exponent(dtype: str) -> None:
    """One operation on each pair of a wide range of exponents: where rounding, overflow and underflow meet."""
    info = np.finfo(dtype)
    rng = np.random.default_rng(2)
    step = 16 if dtype == "float64" else 2
    exponents = np.arange(info.minexp, info.maxexp, step)
    with jax.enable_x64(dtype == "float64"):
        for fn in (lax.mul, lax.div, lax.add, lax.sub):
            for shift in (-2, -1, 0, 1, 2, info.minexp // 2, info.nmant):
                x = np.ldexp(1 + rng.random(len(exponents)).astype(dtype), exponents).astype(dtype)
                y = np.ldexp(1 + rng.random(len(exponents)).astype(dtype), shift).astype(dtype)
                pairs = [(np.stack([a] * 4), np.stack([b] * 4)) for a, b in zip(x, y, strict=True)]
                assert _compare(fn, pairs[:3] + pairs[3::5] + pairs[-3:])


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "uint32", "int64", "uint64"])
def test_integers(dtype: str) -> None:
    rng = np.random.default_rng(3)
    binary = [lax.add, lax.sub, lax.mul, lax.max, lax.min, lax.eq, lax.lt, lax.ge, lax.bitwise_and, lax.bitwise_xor]
    binary += [lax.shift_left, lax.shift_right_logical, lax.shift_right_arithmetic]
    unary: list[Callable[..., Any]] = [lax.bitwise_not]
    unary += [lambda x: lax.reduce_max_p.bind(x, axes=(0,), out_sharding=None)]
    unary += [lambda x: lax.reduce_sum_p.bind(x, axes=(0,), out_sharding=None), lambda x: lax.argmax(x, 0, np.int32)]
    targets = ["int8", "uint16", "int32", "float32", "bool"] + (["float64"] if dtype.endswith("64") else [])
    unary += [lambda x, name=name: lax.convert_element_type(x, name) for name in targets if name != dtype]
    if dtype.startswith("int"):
        unary += [lax.neg, lax.abs, lax.sign]
    with jax.enable_x64(dtype.endswith("64")):
        for fn, count in [(fn, 2) for fn in binary] + [(fn, 1) for fn in unary]:
            draws = [tuple(_integers(rng, dtype, (5,), 0.5) for _ in range(count)) for _ in range(60)]
            if fn in binary[-3:]:
                draws = [(x, np.abs(y.astype(np.int64) % np.int64(10)).astype(dtype)) for x, y in draws]
            expected = len(draws) if fn not in binary[-3:] else 1
            assert expected <= _compare(fn, draws) <= len(draws), fn


def test_placing() -> None:
    rng = np.random.default_rng(4)
    x = _floats(rng, np.float32, (5, 6), 0.5)
    index = np.array([[0], [3], [4], [1]], np.int32)
    batched = lax.GatherDimensionNumbers((1,), (), (1,), (0,), (0,))
    rows = lax.GatherDimensionNumbers((1,), (0,), (0,))
    window = lax.GatherDimensionNumbers((0, 2), (), (0, 1))
    element, nothing = lax.GatherDimensionNumbers((), (0, 1), (0, 1)), lax.GatherDimensionNumbers((), (), ())
    cases: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
        (lambda x: lax.pad(x, np.float32(2), ((1, 0, 2), (0, 3, 1))), (x,)),
        (lambda x: lax.rev(x, (1,)), (x,)),
        (lambda x: lax.split(x, (1, 2, 3), axis=1), (x,)),
        (lambda x: lax.concatenate([x, x, x], 1), (x,)),
        (lambda x: lax.select_n(x > 1, x, -x), (x,)),
        (lambda x, i, j: lax.dynamic_slice(x, (i, j), (3, 2)), (x, np.int32(-4), np.int32(5))),
        (lambda x, i, j: lax.dynamic_update_slice(x, x[:2, :3], (i, j)), (x, np.int32(9), np.int32(2))),
        (lambda x, i: lax.gather(x, i, rows, (1, 6), mode="clip"), (x, index)),
        (lambda x, i: lax.gather(x, i, window, (2, 3), mode="fill"), (x, np.array([[0, 1], [3, 3]], np.int32))),
        (lambda x, i: lax.gather(x, i, batched, (1, 2), mode="clip"), (x, np.arange(5, dtype=np.int32)[::-1, None])),
        (lambda x, i: lax.gather(x, i, element, (1, 1), mode="clip"), (x, np.array([2, 3], np.int32))),
        (lambda x, i: lax.gather(x, i, nothing, (), mode="clip"), (x[1, 2], np.zeros((3, 0), np.int32))),
        (lambda x: lax.pad(x, np.float32(2), ()), (x[1, 1],)),
        (lambda x: lax.reshape(x, ()), (x[:1, :1],)),
        (lambda x: lax.squeeze(x, (0, 1)), (x[:1, :1],)),
        (lambda x: lax.select_n(x > 1, x, -x), (x[1, 1],)),
        (lambda x: lax.reduce_max(x, (0, 1)), (np.arange(6.0, dtype=np.float32).reshape(2, 3),)),
        (lambda x: lax.argmax(x, 0, np.int32), (np.arange(6.0, dtype=np.float32),)),
        (lambda: lax.broadcasted_iota(np.int32, (3, 4), 1), ()),
        (lambda: lax.broadcasted_iota(np.float32, (3, 4), 0), ()),
    ]
    for fn, operands in cases:
        program = _program(fn, *operands)
        values = dict(program.constants) | dict(zip(program.inputs, operands, strict=True))
        jax_capture._evaluate(program, operands, values.__setitem__)
        last = program.steps[-1]
        assert last.decided([values[value] for value in last.inputs], program) is not None
        expected = jax.tree_util.tree_leaves(fn(*operands))
        assert [_words(values[value]) for value in program.outputs] == list(map(_words, expected))


def test_gather_out_of_bounds_is_left_to_xla() -> None:
    numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    x, index = np.ones((3, 2), np.float32), np.array([[1], [3]], np.int32)
    for mode in ("clip", "fill"):
        program = _program(lambda x, i, mode=mode: lax.gather(x, i, numbers, (1, 2), mode=mode), x, index)
        assert program.steps[-1].decided((x, index), program) is None


def _attention(p: dict[str, Any], x: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    x = (x - mean) * lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5)
    q, k, v = jnp.split(x @ p["qkv"], 3, -1)
    scores = jnp.where(jnp.tril(jnp.ones((8, 8), bool)), q @ k.T / 4, -jnp.inf)
    x = x + jax.nn.softmax(scores, -1) @ v
    return jax.nn.log_softmax(jax.nn.gelu(x) ** 3 @ p["out"])[jnp.array([-1, 0, 2])]


def _training(p: dict[str, Any], x: Any) -> Any:
    loss, grads = jax.value_and_grad(lambda p: -_attention(p, x).mean())(p)
    clipped = jax.tree.map(lambda g: jnp.clip(g, -0.1, 0.1), grads)
    return loss, jax.tree.map(lambda w, g: w - 0.1 * g / (jnp.sqrt(g * g) + 1e-8), p, clipped)


@pytest.mark.parametrize("fn", [_attention, _training])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_recorded_values(fn: Callable[..., Any], dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every recorded value of whole programs is the same with and without NumPy."""
    rng = np.random.default_rng(5)
    normal = lambda *shape: jnp.asarray(rng.standard_normal(shape) * 0.3, dtype)  # noqa: E731
    p, x = {"qkv": normal(16, 48), "out": normal(16, 10)}, normal(8, 16)
    mine = jax_capture.export(fn, p, x, trace=True)
    monkeypatch.setattr(jax_capture, "_NUMPY", {})
    assert jax_capture.export(fn, p, x, trace=True) == mine
