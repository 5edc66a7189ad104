"""Small programs about single facts of arithmetic, written in both frontends, each with the inputs that show the fact.

Every one of them is exact in its frontend, so the tests compare words: what rounds, rounds once; zeros keep their
signs; a division is a division.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Program = tuple[str, Callable[..., Any], tuple[Any, ...]]


def programs(frontend: str) -> Iterator[Program]:
    """Name, function and arguments of each program."""
    if frontend == "jax":
        import jax

        with jax.enable_x64(True):
            yield from _jax_programs()
    else:
        yield from _torch_programs()


# Values at which roundings, signs and special cases show; none is subnormal, since XLA flushes those on the CPU.
_EDGES = [0.0, -0.0, 1.0, -1.0, 3.0, -7.0, 0.1, -0.3, 1e30, -1e-30, np.inf, -np.inf, np.nan]
_DIVISORS = [3.0, 5.0, -0.0, 0.0, 7.0, 3.0, 0.3, 0.1, 1e-30, 1e30, 2.0, np.inf, 1.0]


def _jax_programs() -> Iterator[Program]:
    import jax.numpy as jnp

    def through_float32(x: Any) -> Any:
        return x.astype(jnp.float32).astype(jnp.float64)

    def signs_and_roots(x: Any) -> Any:
        return -x, jnp.sqrt(x), jnp.abs(x)

    def quotient(x: Any, y: Any) -> Any:
        return x / y, x / jnp.float32(3.0)

    def constants(x: Any) -> Any:
        table = np.array([np.inf, -np.inf, -0.0, 1.5], np.float32)
        payload = np.array([0x7FC12345, 0xFFC00001, 0x00000001, 0x80000000], np.uint32).view(np.float32)
        return jnp.where(x > 0, table, payload)

    def small_formats(x: Any) -> Any:
        half, brain = x.astype(jnp.float16), x.astype(jnp.bfloat16)
        return half + half * half, brain + brain * brain

    yield "float64_through_float32", through_float32, (np.array([16777217.0, 1.0, 0.1]),)
    yield "signs_and_roots", signs_and_roots, (np.array(_EDGES, np.float32),)
    yield "quotient", quotient, (np.array(_EDGES, np.float32), np.array(_DIVISORS, np.float32))
    yield "constants", constants, (np.array([1.0, -1.0, -1.0, 1.0], np.float32),)
    yield "small_formats", small_formats, (np.array([1.0, 1.001, -0.37, 3.14159, 77.7], np.float32),)


def _torch_programs() -> Iterator[Program]:
    import torch

    def through_float32(x: Any) -> Any:
        return x.to(torch.float32).to(torch.float64)

    def signs_and_roots(x: Any) -> Any:
        return -x, torch.sqrt(x), torch.abs(x)

    def quotient(x: Any, y: Any) -> Any:
        return x / y, x / 3.0

    def constants(x: Any) -> Any:
        table = torch.tensor([torch.inf, -torch.inf, -0.0, 1.5])
        payload = torch.tensor([0x7FC12345, -0x3FFFFF, 0x00000001, -0x80000000], dtype=torch.int32).view(torch.float32)
        return torch.where(x > 0, table, payload)

    def small_formats(x: Any) -> Any:
        half, brain = x.to(torch.float16), x.to(torch.bfloat16)
        return half + half * half, brain + brain * brain

    def subnormals(x: Any) -> Any:
        return x * 0.5, x + x, x / 2.0

    yield "float64_through_float32", through_float32, (torch.tensor([16777217.0, 1.0, 0.1], dtype=torch.float64),)
    yield "signs_and_roots", signs_and_roots, (torch.tensor(_EDGES, dtype=torch.float32),)
    yield "quotient", quotient, (torch.tensor(_EDGES), torch.tensor(_DIVISORS))
    yield "constants", constants, (torch.tensor([1.0, -1.0, -1.0, 1.0]),)
    yield "small_formats", small_formats, (torch.tensor([1.0, 1.001, -0.37, 3.14159, 77.7]),)
    yield "subnormals", subnormals, (torch.tensor([1e-45, 3e-45, 1.1754944e-38, -1e-45, 5e-39]),)
