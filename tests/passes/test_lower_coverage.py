"""Every operation has a lowering or a reason why it has none."""

from __future__ import annotations

import pytest

from tlir.ir.ops import OPERATIONS
from tlir.kernel.verify import ELEMENTWISE
from tlir.passes.lower import LOWERED, REASONS


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_is_lowered_or_has_a_reason(name: str) -> None:
    assert (name in LOWERED) != (name in REASONS)


def test_there_are_no_others() -> None:
    assert LOWERED | REASONS.keys() == OPERATIONS.keys()
    assert all(len(reason) > 10 for reason in REASONS.values())


def test_every_elementwise_operation_is_lowered() -> None:
    assert ELEMENTWISE <= LOWERED
