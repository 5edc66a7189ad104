"""Every operation has a lowering or a reason why it has none."""

from __future__ import annotations

import pytest

from tlir.floatlib.elementary.double import loop as double
from tlir.floatlib.elementary.narrow import arrays as narrow
from tlir.ir.ops import OPERATIONS, elementary, special
from tlir.ir.types import NAMED
from tlir.kernel.verify import ELEMENTWISE
from tlir.passes.lower import LOWERED, REASONS
from tlir.passes.lower.functions import has_kernel


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
    for dtype in NAMED.values():
        if dtype.is_float:
            fmt = dtype.float_format
            there = narrow.applies(name, fmt) or (dtype.name == "float64" and double.applies(name, fmt))
            assert has_kernel(name, dtype) == there, dtype
