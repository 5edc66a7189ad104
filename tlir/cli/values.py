"""Tensors as text: exact values or words in NumPy's layout, large ones abbreviated, with statistics."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tlir.compare.exact import DISPLAY, leading, terms_of
from tlir.compare.text import element_text, element_words
from tlir.floatlib import words as layout
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.printing import to_decimal, to_hexadecimal, to_rational
from tlir.floatlib.rounding import round_exact
from tlir.ir.tensor import Tensor

THRESHOLD = 200
"""Tensors of more elements are abbreviated."""

Number = Callable[[Format, int], str]

NUMBERS: dict[str, Number] = {"decimal": to_decimal, "hex": to_hexadecimal, "rational": to_rational}
"""The exact ways to write a floating-point number; ``tlir.floatlib.text`` reads each back to the same word."""

EDGE = 3
"""Elements shown at either end of each axis of an abbreviated tensor."""


def array_text(tensor: Tensor, words: bool = False, width: int | None = None, number: Number = to_decimal) -> str:
    """The elements in brackets, aligned, as ``numpy.array2string`` lays them out; ``width`` is that of a line and
    ``number`` writes a floating-point number."""
    text = element_words if words else partial(element_text, number=number)
    if not tensor.shape:
        return text(tensor, 0)
    if tensor.type.size == 0:
        return "[]"
    # NumPy lays out the numbers of the elements; the formatter turns each into its text
    numbers = np.arange(tensor.type.size).reshape(tensor.shape)
    shown: dict[int, str] = {}

    def first_pass(number: Any) -> str:
        shown[int(number)] = text(tensor, int(number))
        return "0"

    def lay_out(formatter: Any, width: int) -> str:
        return np.array2string(
            numbers,
            max_line_width=width,
            separator=", ",
            formatter={"all": formatter},
            threshold=THRESHOLD,
            edgeitems=EDGE,
        )

    lay_out(first_pass, 80)
    longest = max(map(len, shown.values()))
    return lay_out(lambda number: shown[int(number)].rjust(longest), 10**9 if width is None else max(width, 20))


def is_abbreviated(tensor: Tensor) -> bool:
    """Whether ``array_text`` leaves elements out."""
    return bool(tensor.shape) and tensor.type.size > THRESHOLD


def statistics(tensor: Tensor) -> dict[str, str | int]:
    """Least, greatest and mean of the finite elements, and how many are NaN and infinite; of Booleans the true ones.

    Least and greatest are exact. The mean is that of the exact sum, shown with six digits. A complex element is NaN or
    infinite if one of its parts is; its mean is left out, as are least and greatest.
    """
    dtype = tensor.dtype
    if dtype.is_bool:
        return {"true": int(np.count_nonzero(tensor.words)), "false": int(np.count_nonzero(tensor.words == 0))}
    if dtype.is_integer:
        values = tensor.to_numpy().astype(np.int64 if dtype.is_signed else np.uint64).reshape(-1)
        total = int(np.sum(values >> 32, dtype=np.int64 if dtype.is_signed else np.uint64)) * 2**32
        total += int(np.sum(values & 0xFFFFFFFF, dtype=np.uint64))
        return {"min": str(values.min()), "max": str(values.max()), "mean": f"{total / len(values):.6g}"}
    fmt = dtype.float_format
    nan, finite = layout.is_nan(fmt, tensor.words), layout.is_finite(fmt, tensor.words)
    infinite = ~nan & ~finite
    if dtype.is_complex:
        return {"NaN": int(nan.any(axis=-1).sum()), "infinite": int((infinite.any(axis=-1) & ~nan.any(axis=-1)).sum())}
    found: dict[str, str | int] = {}
    words = tensor.words[finite]
    if len(words):
        found |= _extremes(fmt, words) | {"mean": _mean(fmt, words)}
    return found | {"NaN": int(nan.sum()), "infinite": int(infinite.sum())}


def _extremes(fmt: Format, words: Any) -> dict[str, str | int]:
    if layout.limbs(fmt) > 1:
        integers = layout.to_ints(fmt, words)
        keys = layout.to_ints(fmt, layout.order_keys(fmt, words))
        least, greatest = int(integers[keys.argmin()]), int(integers[keys.argmax()])
    else:
        keys = layout.order_keys(fmt, words)
        least, greatest = int(words[keys.argmin()]), int(words[keys.argmax()])
    return {"min": to_decimal(fmt, least), "max": to_decimal(fmt, greatest)}


def _mean(fmt: Format, words: Any) -> str:
    count = len(words)
    if fmt in (FORMATS["float16"], FORMATS["float32"], FORMATS["float64"]):
        values = words.view(f"f{words.dtype.itemsize}").astype(np.float64)
        try:
            return f"{math.fsum(values) / count:.6g}"
        except OverflowError:
            pass
    terms = [term for word in layout.to_ints(fmt, words) for term in terms_of(fmt, int(word))]
    n, k = leading(terms)
    # the quotient is rounded once to the 64 bits that differences are shown with
    shift = DISPLAY.precision + count.bit_length() + 2
    quotient, rest = divmod(abs(n) << shift, count)
    word, _ = round_exact(DISPLAY, int(n < 0), quotient, k - shift, rest != 0)
    from decimal import Decimal

    return f"{Decimal(to_decimal(DISPLAY, word)):.6g}"


def nested(tensor: Tensor, number: Number = to_decimal) -> Any:
    """The exact values as nested lists of text (Booleans and integers as such), for JSON."""
    dtype = tensor.dtype

    def item(flat: int) -> Any:
        text = element_text(tensor, flat, number)
        return text == "true" if dtype.is_bool else int(text) if dtype.is_integer else text

    items = np.empty(tensor.type.size, dtype=object)
    items[:] = [item(flat) for flat in range(tensor.type.size)]
    return items.reshape(tensor.shape).tolist()
