"""The loops of the elementary functions, compiled and on NumPy, against the specification: words and flags."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gmpy2
import numpy as np
import pytest
from elementary_hardest import HARDEST
from floatlib_elementary import all_words, exact_values, float32_rows

from tlir.floatlib.elementary import ElementaryError, elementary, evaluate
from tlir.floatlib.elementary.narrow import loop as elementary_loop
from tlir.floatlib.elementary.narrow.arrays import NAMES, evaluate_fast
from tlir.floatlib.elementary.narrow.kernels import BINARY, KERNELS, UNARY
from tlir.floatlib.elementary.narrow.loop import loop, make_loop
from tlir.floatlib.elementary.narrow.outcome import Kernel, Outcome
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.soft import numpy_loop
from tlir.floatlib.soft.catalog import UNDECIDED
from tlir.floatlib.words import word_dtype

try:
    from tlir.floatlib.soft import llvm
except ImportError:
    WAYS: dict[str, Callable[..., Any]] = {"numpy": numpy_loop.run}
else:
    WAYS = {"numpy": numpy_loop.run, "compiled": llvm.run}

FLOAT32 = FORMATS["float32"]


LEFT = {"zeta": 0.25, "polygamma": 0.5, "igamma": 0.1, "igammac": 0.1, "regularized_incomplete_beta": 0.25}
LEFT |= {"igamma_grad_a": 0.75, "random_gamma_grad": 0.75}
"""Of operands of every kind, the share that kernels leave: those below 0 and large orders; operands next to each other
that are large; values that may be numbers of the format, where there are flags; operands that are refused."""


def specified(name: str, fmt: Format, row: tuple[int, ...]) -> tuple[int | None, int]:
    """The specification's word and flags; no word where it refuses the operands."""
    try:
        return elementary(name, fmt, *row)
    except ElementaryError:
        return None, 0


def differences(name: str, fmt: Format, columns: list[np.ndarray], way: str, share: float) -> list[Any]:
    """Operands whose word or flags are decided and are not the specification's, or which it refuses; at most ``share``
    is undecided."""
    found = []
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    want = [specified(name, fmt, row) for row in rows]
    for flags in (False, True):
        words, marks = WAYS[way](loop(name, fmt, flags), tuple(columns))
        if not KERNELS[name].wide:
            assert (marks >= UNDECIDED).mean() <= max(share, LEFT.get(name, 0.0))
        for row, word, mark, (expected, raised) in zip(rows, words.tolist(), marks.tolist(), want, strict=True):
            if mark < UNDECIDED and (word, mark) != (expected, int(raised) if flags else 0):
                found.append(([hex(part) for part in row], hex(word), mark, hex(expected), raised))
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NAMES)
def test_float32(name: str, way: str) -> None:
    columns = float32_rows(name, len(KERNELS[name].fallback), 100)
    assert not differences(name, FLOAT32, columns, way, 0.02)


SMALL = [fmt for fmt in FORMATS.values() if fmt.width <= 8]
ODD = [FORMATS["float16"], FORMATS["bfloat16"], FORMATS["tfloat32"], Format(6, 17), Format(9, 20, bias=100),
       Format(8, 23, infinities=False, nans="negative_zero", signed_zero=False),
       Format(7, 23, signed=False, signed_zero=False), Format(5, 10, infinities=False, nans="none"),
       Format(7, 24 - 1, bias=-20), Format(4, 20, subnormals=False, infinities=False, nans="all_ones",
                                            signed_zero=False)]  # fmt: skip
"""Formats between 9 and 32 bits with every convention."""


@pytest.mark.parametrize("name", UNARY)
def test_every_word_of_small_formats(name: str) -> None:
    """A third of the formats, which differ by function."""
    for k, fmt in enumerate(SMALL):
        if (k + len(name)) % 3 == 0:
            for way in WAYS if k == len(name) % 3 else ("numpy",):
                assert not differences(name, fmt, [all_words(fmt)], way, 0.1), fmt


@pytest.mark.parametrize("fmt", ODD, ids=str)
def test_samples_of_other_formats(fmt: Format) -> None:
    """A third of the functions for each format."""
    rng = np.random.default_rng(fmt.width)
    special = np.array([*elementary_loop.special_words(fmt), fmt.invalid_word, fmt.max_finite, fmt.min_subnormal])
    for k, name in enumerate(NAMES[ODD.index(fmt) % 3 :: 3]):
        drawn = [rng.integers(0, 1 << fmt.width, 60) for _ in KERNELS[name].fallback]
        columns = [np.concatenate([part, rng.permutation(special)]).astype(word_dtype(fmt)) for part in drawn]
        for way in WAYS if k == fmt.width % 9 else ("numpy",):
            assert not differences(name, fmt, columns, way, 0.1), (name, way)


@pytest.mark.parametrize("name", BINARY)
def test_pairs_of_small_formats(name: str) -> None:
    for fmt_name in ("float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float6_e2m3fn"):
        fmt = FORMATS[fmt_name]
        words = all_words(fmt)[:: 1 if fmt.width < 8 else 5]
        left, right = (part.ravel() for part in np.meshgrid(words, words))
        for way in WAYS if fmt_name == "float8_e5m2" else ("numpy",):
            assert not differences(name, fmt, [left, right], way, 0.1), fmt


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", HARDEST)
def test_hardest_operands(name: str, way: str) -> None:
    """Against MPFR: what is decided is right, and so is what ``evaluate`` makes of the rest."""
    words = np.array(HARDEST[name], dtype=np.uint32)
    exact = exact_values(name, words.view(np.float32).tolist())
    with gmpy2.context(precision=24):
        # the results are normal numbers, so that rounding to 24 bits is rounding to float32
        want = [float(gmpy2.mpfr(value)) for value in exact]
    got, marks = WAYS[way](loop(name, FLOAT32), (words,))
    results = got.view(np.float32).tolist()
    for word, result, mark, expected in zip(words.tolist(), results, marks.tolist(), want, strict=True):
        assert mark or result == expected, hex(word)
    assert evaluate(name, FLOAT32, np.resize(words, 128))[: words.size].view(np.float32).tolist() == want


@pytest.mark.parametrize("way", WAYS)
def test_a_wrong_bound_is_noticed(way: str) -> None:
    """A kernel that is off by 2**-30 and says that it is within 2**-50: the hardest operands show it."""
    right = KERNELS["exponential"]

    def wrong(x: Any) -> Outcome:
        return Outcome(right.function(x) * (1 + 2.0**-30))

    words = np.array(HARDEST["exponential"], dtype=np.uint32)
    kernel = make_loop("exponential", FLOAT32, replace(right, function=wrong, error=2.0**-50))
    got, marks = WAYS[way](kernel, (words,))
    want = [elementary("exponential", FLOAT32, word)[0] for word in words.tolist()]
    assert (marks == 0).all()
    assert got.tolist() != want


@pytest.mark.parametrize("name", [name for name, kernel in KERNELS.items() if kernel.wide])
def test_large_angles(name: str) -> None:
    rng = np.random.default_rng(2)
    words = rng.integers(0x49800000 - 10, 0x7F800000, 1200).astype(np.uint32)
    words[::2] |= np.uint32(1 << 31)
    for flags in (False, True):
        got, raised, places = evaluate_fast(name, FLOAT32, words, flags=flags)
        assert places.size <= 1
        for index in set(range(0, words.size, 4)) - set(places.tolist()):
            word, flag = elementary(name, FLOAT32, int(words[index]))
            assert got[index] == word
            assert raised is None or raised[index] == flag


def test_domains_and_fallbacks() -> None:
    """Every kernel declares operands inside its domain."""
    from tlir.floatlib.elementary.number import Number
    from tlir.floatlib.soft.machine import NumpyMachine

    machine = NumpyMachine(64)
    for kernel in KERNELS.values():
        assert isinstance(kernel, Kernel)
        numbers = [Number(machine, np.array([value])) for value in kernel.fallback]
        assert kernel.inside(*numbers).all()
        nan = [Number(machine, np.array([np.nan])), *numbers[1:]]
        assert not kernel.inside(*nan).any()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["sine", "cosine", "tan"])
def test_the_kernels_of_large_angles_decide_nothing_wrong_anywhere(name: str, way: str) -> None:
    """They get what the usual kernel leaves open, and that may be of any size."""
    random = np.random.default_rng(4)
    exponents = np.arange(1, 255, dtype=np.uint32) << np.uint32(23)
    words = exponents | random.integers(0, 1 << 23, exponents.size, dtype=np.uint32)
    got, marks = WAYS[way](loop(name, FLOAT32, False, True), (words,))
    decided = marks & 0x80 == 0
    assert decided[exponents >> 23 > 150].mean() > 0.9
    for word, result in zip(words[decided].tolist(), got[decided].tolist(), strict=True):
        assert elementary(name, FLOAT32, word)[0] == result, hex(word)
