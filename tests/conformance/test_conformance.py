"""Every case of the ``cases_*`` modules on every device."""

from __future__ import annotations

import cases_data
import cases_floats
import cases_integers
import cases_reductions
import pytest
from conformance import Case, evaluate, tensor_type, to_tensor, words_of

CASES = [case for module in (cases_data, cases_floats, cases_integers, cases_reductions) for case in module.CASES]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.op}: {case.name}")
def test_case(case: Case, device: str) -> None:
    operands = [to_tensor(operand) for operand in case.operands]
    result = evaluate(case.op, operands, tensor_type(case.expected.type), case.attrs, device)
    assert [hex(word) for word in words_of(result)] == [hex(word) for word in case.expected.words]


def test_names_are_unique() -> None:
    names = [(case.op, case.name) for case in CASES]
    assert len(set(names)) == len(names)
