"""The array form of the elementary functions: the specification at every element, whatever the shape."""

from __future__ import annotations

import numpy as np
import pytest

from tlir.floatlib.elementary import NAMES, elementary, evaluate
from tlir.floatlib.elementary.scalar import BINARY
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.words import from_ints, to_ints


@pytest.mark.parametrize("fmt", [FORMATS["float8_e4m3fn"], FORMATS["float16"], FORMATS["float64"], FORMATS["float256"]])
@pytest.mark.parametrize("name", NAMES)
def test_elements_are_those_of_the_specification(name: str, fmt: Format) -> None:
    rng = np.random.default_rng(7)
    count = 2 if name in BINARY else 1
    one = fmt.encode(0, 1, 0)
    pool = [
        0,
        1,
        one,
        one + 1,
        one - 1,
        fmt.sign_mask,
        fmt.sign_mask | one,
        fmt.max_finite,
        fmt.nan,
        fmt.encode(0, 3, -2),
    ]
    values = [rng.choice(np.array(pool, dtype=object), (3, 2)) for _ in range(count)]
    words, flags = evaluate(name, fmt, *(from_ints(fmt, value) for value in values), flags=True)
    assert flags.dtype == np.uint8
    assert flags.shape == (3, 2)
    assert words.shape == from_ints(fmt, values[0]).shape
    for index in np.ndindex(3, 2):
        want = elementary(name, fmt, *(int(value[index]) for value in values))
        assert (to_ints(fmt, words)[index], flags[index]) == want


@pytest.mark.parametrize("fmt", [FORMATS["bfloat16"], FORMATS["float32"], FORMATS["float128"]], ids=str)
def test_shapes(fmt: Format) -> None:
    one = from_ints(fmt, fmt.encode(0, 1, 0))
    scalar, flags = evaluate("exponential", fmt, one, flags=True)
    assert scalar.shape == one.shape
    assert flags.shape == ()
    empty = np.broadcast_to(one, (4, 0, *one.shape))
    words, flags = evaluate("log", fmt, empty, flags=True)
    assert words.shape == empty.shape
    assert words.dtype == one.dtype
    assert flags.shape == (4, 0)
    row, column = (np.broadcast_to(one, (*shape, *one.shape)) for shape in ((1, 3), (2, 1)))
    assert evaluate("hypot", fmt, row, column).shape == (2, 3, *one.shape)


def test_layouts_are_checked() -> None:
    with pytest.raises(ValueError, match="words of float32 are uint32"):
        evaluate("exponential", FORMATS["float32"], np.zeros(3, np.float32))
    with pytest.raises(KeyError):
        evaluate("cotangent", FORMATS["float16"], np.zeros(3, np.uint16))


def test_results_do_not_alias_what_is_kept() -> None:
    fmt = FORMATS["float16"]
    operand = np.arange(100, dtype=np.uint16)
    first = evaluate("exponential", fmt, operand)
    first[:] = 0
    assert evaluate("exponential", fmt, operand)[0] == fmt.encode(0, 1, 0)
