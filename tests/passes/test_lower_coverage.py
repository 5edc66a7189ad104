"""Every operation has a lowering or a reason why it has none."""

from __future__ import annotations

import pytest

from tlir.floatlib.elementary import COMPLEX_NAMES
from tlir.floatlib.elementary.complex import loop as pairs
from tlir.floatlib.elementary.double import loop as double
from tlir.floatlib.elementary.narrow import arrays as narrow
from tlir.floatlib.elementary.wide import loop as wide
from tlir.floatlib.format import FORMATS, Format
from tlir.ir.ops import OPERATIONS, elementary, special
from tlir.ir.types import DType
from tlir.kernel.verify import ELEMENTWISE
from tlir.passes.lower import LOWERED, REASONS
from tlir.passes.lower.functions import has_complex_kernel, has_kernel

CUSTOM = [
    Format(exponent, precision - 1, bias, infinities, nans, signed_zero)
    for exponent in (4, 8, 9, 10, 11, 12, 15, 16, 19, 22, 30)
    for precision in (5, 17, 24, 25, 31, 32, 40, 50, 51, 52, 53, 54, 64, 113, 129, 237, 238, 400)
    for infinities, nans, signed_zero in ((True, "ieee", True), (False, "all_ones", True), (True, "none", True))
    for bias in ((1 << (exponent - 1)) - 1, (1 << (exponent - 1)) - 40, 1 << exponent)
] + [Format(8, precision, signed=False, signed_zero=False) for precision in (20, 23, 24, 40, 112)]
"""Formats beside the named ones, at and beyond the limits of what there is code for."""


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_is_lowered_or_has_a_reason(name: str) -> None:
    assert (name in LOWERED) != (name in REASONS)


def test_there_are_no_others() -> None:
    assert LOWERED | REASONS.keys() == OPERATIONS.keys()
    assert all(len(reason) > 10 for reason in REASONS.values())


def test_every_elementwise_operation_but_some_functions_is_lowered() -> None:
    functions = {operation.name for family in (elementary, special) for operation in family.OPERATIONS}
    assert functions >= ELEMENTWISE - LOWERED


@pytest.mark.parametrize(
    "name", [operation.name for family in (elementary, special) for operation in family.OPERATIONS]
)
def test_functions_have_kernels_where_there_is_code_for_them(name: str) -> None:
    for fmt in (*FORMATS.values(), *CUSTOM):
        there = narrow.applies(name, fmt) or double.applies(name, fmt) or wide.applies(name, fmt)
        assert has_kernel(name, DType("custom", "float", fmt.width, fmt)) == there, fmt


@pytest.mark.parametrize("name", sorted({*COMPLEX_NAMES, "erf", "log_add_exp"}))
def test_complex_functions_have_kernels_where_there_is_code_for_them(name: str) -> None:
    for fmt in (*FORMATS.values(), *CUSTOM):
        component = DType("custom", "float", fmt.width, fmt)
        assert has_complex_kernel(name, component) == pairs.applies(name, fmt), fmt
