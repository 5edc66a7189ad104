"""Small programs, each from a public report of a numerical fault, written in both frontends, with the value that is
right by the written program.

The faults were made by compilers and libraries that simplified what was written: a cast and its inverse left out, an
intermediate kept in a wider format, exp and log cancelled, products fused, a division made a product. The values are
derived here from exact or correctly rounded arithmetic, operation by operation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

F16, F32, BF16 = np.float16, np.float32, ml_dtypes.bfloat16


class Report(NamedTuple):
    """``expected`` are the outputs in their order; a NaN stands for any NaN."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    expected: tuple[Any, ...]


# ---- arguments and values, the same for both frontends --------------------------------------------------------------

NORMAL = np.random.default_rng(0).normal(size=16).astype(F32)

PAIRS = np.array([256.0, 1.0, 3.0], BF16), np.array([0.75, 0.00390625, 0.1], BF16)
"""x and y of y - ((x + y) - x)."""


def left_over(x: Any, y: Any) -> Any:
    """y - ((x + y) - x), every operation rounded to bfloat16."""

    def rounded(value: Any) -> Any:
        return np.asarray(value, np.float64).astype(BF16)

    x, y = x.astype(np.float64), y.astype(np.float64)
    total = rounded(x + y).astype(np.float64)
    back = rounded(total - x).astype(np.float64)
    return rounded(y - back)


SCORES, MASK = np.array([0.7, 0.5], F32), np.ones(2, F32)
FACTOR, SCALE = F32(1134139801600.0), F32(0.18033688)
THIRDS = np.array([-0.25], F32)
TRUTHS = np.array([-0.2, -0.1, 0.0, 0.1, 0.2], F32)
TWICE = np.array([1 + 2.0**-8 + 2.0**-40])
DIVIDENDS, DIVISORS = np.array([-7, 7, -7, 7], np.int64), np.array([2, 2, -2, -2], np.int64)
CONSTANTS = np.array(
    [0x7F800000, 0xFF800000, 0x7FC12345, 0xFFC54321, 0x80000000, 0x00000001, 0x80000001, 0x3F800000], np.uint32
).view(F32)
"""Both infinities, two NaNs with a payload, -0, the smallest subnormals, and 1."""
ROW = np.full((1, 8), 3.0, F16)
HIDDEN = np.array([[0.1, 0.2, 0.3, 0.4]], F32)


def _expected() -> dict[str, tuple[Any, ...]]:
    masked = np.array([0.0, F32(0.5) - F32(0.7)], F32)
    third = THIRDS / F32(0.75)
    return {
        "cast_and_back": (NORMAL.astype(BF16).astype(F32),),
        "left_over": (left_over(*PAIRS),),
        "log_of_exponential": (np.array([np.inf], F32), np.array([np.inf], F32)),
        "large_mask": (masked,),
        "half_square": (np.array([np.inf], F16),),
        "equal_products": (np.array([1.0], F32),),
        "masked_row": (np.full((1, 4), np.nan, F32), np.full((1, 4), 0.25, F32)),
        # the variance is 0, and 1e-8 is 0 in float16
        "constant_row": (np.full((1, 8), np.nan, F16),),
        "truth_of_integers": (np.zeros(5, np.bool_),),
        "rounded_once": (np.array([1.0078125], BF16),),
        "thirds": (third * F32(0.75) + F32(0.25),),
        "floor_division": (np.array([-4, 3, 3, -4], np.int64),),
        "special_constants": (CONSTANTS,),
    }


EXPECTED = _expected()

AS_DEFINED = {"torch": {"rounded_once": (np.array([1.0], BF16),)}}
"""What is right by the frontend's own definition: PyTorch converts float64 to bfloat16 by way of float32, and its
capture writes two conversions."""

AT_FAULT = {"jax": ("rounded_once",), "torch": ()}
"""Programs whose recorded outputs are not the right ones, operation by operation: XLA on the CPU rounds float64 to
bfloat16 twice. No artifact of these is kept."""

SIMPLIFIED = {"jax": ("log_of_exponential", "rounded_once"), "torch": ("cast_and_back",)}
"""Programs that the frontend's compiler gets wrong: XLA takes log(exp(x)) for x and sqrt(y * y) for |y|, and PyTorch's
takes a conversion to bfloat16 and back for nothing."""


def programs(frontend: str) -> Iterator[Report]:
    """The programs of a frontend; to be captured in the mode of ``wide``."""
    functions = _jax_functions() if frontend == "jax" else _torch_functions()
    for name, (function, arguments) in functions.items():
        yield Report(name, function, arguments, AS_DEFINED.get(frontend, EXPECTED).get(name, EXPECTED[name]))


def wide(frontend: str) -> AbstractContextManager[Any]:
    """The mode in which the programs are captured."""
    if frontend != "jax":
        return nullcontext()
    import jax

    manager: AbstractContextManager[Any] = jax.enable_x64(True)
    return manager


Functions = dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]


def _jax_functions() -> Functions:
    import jax.numpy as jnp

    def cast_and_back(x: Any) -> Any:
        return x.astype(jnp.bfloat16).astype(jnp.float32)

    def remainder(x: Any, y: Any) -> Any:
        return y - ((x + y) - x)

    def log_of_exponential(x: Any, y: Any) -> Any:
        return jnp.log(jnp.exp(x)), jnp.sqrt(y * y)

    def large_mask(scores: Any, m: Any) -> Any:
        masked = scores + (jnp.float32(-1) * jnp.float32(1e30) * (jnp.float32(1) - m))
        return masked - jnp.max(masked)

    def half_square(x: Any) -> Any:
        half = x.astype(jnp.float16)
        return half * half

    def equal_products(x: Any, s: Any) -> Any:
        return jnp.exp(x * s - x * s)

    def masked_row(x: Any) -> Any:
        def shares(x: Any) -> Any:
            weights = jnp.exp(x - jnp.max(x, axis=-1, keepdims=True))
            return weights / jnp.sum(weights, axis=-1, keepdims=True)

        return shares(x + jnp.float32(-jnp.inf)), shares(x + jnp.finfo(jnp.float32).min)

    def constant_row(x: Any) -> Any:
        mean = jnp.mean(x, axis=-1, keepdims=True)
        variance = jnp.mean((x - mean) ** 2, axis=-1, keepdims=True)
        return (x - mean) / jnp.sqrt(variance + jnp.float16(1e-8))

    def truth_of_integers(x: Any) -> Any:
        return x.astype(jnp.int32).astype(jnp.bool_)

    def rounded_once(x: Any) -> Any:
        return x.astype(jnp.bfloat16)

    def thirds(x: Any) -> Any:
        return (x / jnp.float32(0.75)) * jnp.float32(0.75) + jnp.float32(0.25)

    def special_constants(chosen: Any) -> Any:
        return jnp.where(chosen, CONSTANTS, jnp.float32(0))

    return {
        "cast_and_back": (cast_and_back, (NORMAL,)),
        "left_over": (remainder, PAIRS),
        "log_of_exponential": (log_of_exponential, (np.array([89.0], F32), np.array([1e20], F32))),
        "large_mask": (large_mask, (SCORES, MASK)),
        "half_square": (half_square, (np.array([5000.0], F32),)),
        "equal_products": (equal_products, (np.array([FACTOR]), np.array([SCALE]))),
        "masked_row": (masked_row, (HIDDEN,)),
        "constant_row": (constant_row, (ROW,)),
        "truth_of_integers": (truth_of_integers, (TRUTHS,)),
        "rounded_once": (rounded_once, (TWICE,)),
        "thirds": (thirds, (THIRDS,)),
        "floor_division": (lambda a, b: a // b, (DIVIDENDS, DIVISORS)),
        "special_constants": (special_constants, (np.ones(8, np.bool_),)),
    }


def _torch_functions() -> Functions:
    import torch

    def tensor(array: Any) -> Any:
        array = np.atleast_1d(array)
        if array.dtype == BF16:
            return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
        return torch.from_numpy(array.copy())

    def cast_and_back(x: Any) -> Any:
        return x.to(torch.bfloat16).to(torch.float32)

    def remainder(x: Any, y: Any) -> Any:
        return y - ((x + y) - x)

    def log_of_exponential(x: Any, y: Any) -> Any:
        return torch.log(torch.exp(x)), torch.sqrt(y * y)

    def large_mask(scores: Any, m: Any) -> Any:
        masked = scores + (-1 * 1e30 * (1 - m))
        return masked - masked.max()

    def half_square(x: Any) -> Any:
        half = x.to(torch.float16)
        return half * half

    def equal_products(x: Any, s: Any) -> Any:
        return torch.exp(x * s - x * s)

    def masked_row(x: Any) -> Any:
        def shares(x: Any) -> Any:
            weights = torch.exp(x - x.amax(-1, keepdim=True))
            return weights / weights.sum(-1, keepdim=True)

        return shares(x - torch.inf), shares(x + torch.finfo(torch.float32).min)

    def constant_row(x: Any) -> Any:
        mean = x.mean(-1, keepdim=True)
        variance = ((x - mean) ** 2).mean(-1, keepdim=True)
        return (x - mean) / torch.sqrt(variance + 1e-8)

    def truth_of_integers(x: Any) -> Any:
        return x.to(torch.int32).to(torch.bool)

    def rounded_once(x: Any) -> Any:
        return x.to(torch.bfloat16)

    def thirds(x: Any) -> Any:
        return (x / 0.75) * 0.75 + 0.25

    table = tensor(CONSTANTS)

    def special_constants(chosen: Any) -> Any:
        return torch.where(chosen, table, 0.0)

    return {
        "cast_and_back": (cast_and_back, (tensor(NORMAL),)),
        "left_over": (remainder, tuple(map(tensor, PAIRS))),
        "log_of_exponential": (log_of_exponential, (torch.tensor([89.0]), torch.tensor([1e20]))),
        "large_mask": (large_mask, (tensor(SCORES), tensor(MASK))),
        "half_square": (half_square, (torch.tensor([5000.0]),)),
        "equal_products": (equal_products, (tensor(FACTOR), tensor(SCALE))),
        "masked_row": (masked_row, (tensor(HIDDEN),)),
        "constant_row": (constant_row, (tensor(ROW),)),
        "truth_of_integers": (truth_of_integers, (tensor(TRUTHS),)),
        "rounded_once": (rounded_once, (tensor(TWICE),)),
        "thirds": (thirds, (tensor(THIRDS),)),
        "floor_division": (lambda a, b: a // b, (tensor(DIVIDENDS), tensor(DIVISORS))),
        "special_constants": (special_constants, (torch.ones(8, dtype=torch.bool),)),
    }
