"""Every rule has a kernel that breaks it and nothing else; lowered kernels break none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lower_graphs import random_graph

from tlir.ir.graph import Body, Ref
from tlir.ir.types import NAMED, TensorType
from tlir.kernel.ir import Alias, Block, Each, Kernel, Launch, Literal, Program
from tlir.kernel.parse import parse_kernel
from tlir.kernel.verify import RULES, verify, verify_program
from tlir.passes.lower import lower

GOOD = """kernel @k(a: input float32[12], m: input bool[3], o: output float32[12], t: local int64[4]) space(i0 < 3) {
  v0: float32 = literal 0x3f800000
  v1: bool = load m[i0]
  v5: float32 = loop i1 < 4 carry(v2: float32 = v0) {
    v3: float32 = load a[4*i0 + i1]
    v4: float32 = add(v2, v3)
    v6: int64 = position i0 + i1
    store t[i1] = v6
    yield v4
  }
  v9: float32 = if v1 {
    v8: float32 = negate(v5)
    yield v8
  } else {
    yield v5
  }
  each i2 < 4 {
    v10: int64 = load t[i2]
    v11: float32 = convert(v10)
    v12: float32 = load a[4*i0 + i2 - 1] where 1 <= 4*i0 + i2 < 12 else v0
    v13: float32 = add(v11, v12)
    v14: float32 = add(v13, v9)
    store o[4*i0 + i2] = v14
  }
}"""


def rules(kernel: Kernel) -> set[str]:
    return {fault.rule for fault in verify(kernel).faults}


def test_the_kernel_that_the_others_are_made_of_is_sound() -> None:
    found = verify(parse_kernel(GOOD))
    assert found.ok
    assert not found.undecided


@pytest.mark.parametrize(
    ("rule", "before", "after"),
    [
        ("KV01", "v4: float32 = add(v2, v3)", "v4: float32 = add(v2, v3)\n v0: float32 = add(v2, v3)"),
        ("KV01", "each i2 < 4 {", "each i2 < 4, i1 < 1 {"),
        ("KV02", "m: input bool[3]", "m: input bool[3], m: input bool[4]"),
        (
            "KV02",
            "m: input bool[3], o: output float32[12], t: local int64[4]",
            "t: local int64[4], m: input bool[3], o: output float32[12]",
        ),
        ("KV03", "each i2 < 4 {", "v20: float32 = add(v5, v4)\n each i2 < 4 {"),
        ("KV03", "store o[4*i0 + i2] = v14", "store o[4*i0 + i2] = v8"),
        ("KV03", "each i2 < 4 {", "v20: float32 = load a[i1]\n each i2 < 4 {"),
        ("KV03", "each i2 < 4 {", "v20: float32 = load a[[v1: 0 to 1]]\n each i2 < 4 {"),
        ("KV04", "literal 0x3f800000", "literal 0x13f800000"),
        ("KV04", "literal 0x3f800000", "literal 0x1, 0x2"),
        ("KV04", "each i2 < 4 {", "v20: float32 = position i0\n each i2 < 4 {"),
        ("KV04", "each i2 < 4 {", "v20: float64 = load a[0]\n each i2 < 4 {"),
        ("KV04", "< 12 else v0", "< 12 else v1"),
        ("KV04", "= v14", "= v10"),
        ("KV05", "v8: float32 = negate(v5)", "v8: float32 = reduce(v5)"),
        ("KV05", "v8: float32 = negate(v5)", "v8: float32 = negate(v5, v5)"),
        ("KV05", "v8: float32 = negate(v5)", "v8: float32 = negate(v5) {exponent = 2}"),
        ("KV05", "v8: float32 = negate(v5)", "v8: float32 = integer_pow(v5)"),
        ("KV05", "v8: float32 = negate(v5)", "v8: float32 = is_finite(v5)"),
        ("KV05", "v4: float32 = add(v2, v3)", "v4: float32 = add(v2, v1)"),
        ("KV06", "if v1 {", "if v0 {"),
        ("KV06", "yield v8", "yield v1"),
        ("KV06", "yield v8", "yield v8, v8"),
        ("KV07", "yield v4", "yield v6"),
        ("KV07", "carry(v2: float32 = v0)", "carry(v2: float32 = v1)"),
        ("KV08", "load a[4*i0 + i1]", "load a[4*i0 + i1 + 1]"),
        ("KV08", "load a[4*i0 + i1]", "load a[4*i0 - i1]"),
        ("KV08", "store t[i1]", "store t[2*i1]"),
        ("KV09", " else v0", ""),
        ("KV10", "store t[i1] = v6", "store m[i0] = v1\n store t[i1] = v6"),
        ("KV10", "    store t[i1] = v6\n", ""),
        ("KV12", "space(i0 < 3)", "space(i0 < 3, i9 < 2)"),
        ("KV13", "each i2 < 4 {", "each i2 < 3 {"),
        ("KV13", "o: output float32[12]", "o: output float32[13]"),
    ],
)
def test_a_broken_rule_is_named(rule: str, before: str, after: str) -> None:
    assert before in GOOD
    assert rules(parse_kernel(GOOD.replace(before, after, 1))) == {rule}


TRIANGLE = """kernel @t(a: input float32[9], o: output float32[3]) space() {
  v0: float32 = literal 0x0
  loop i0 < 3 carry() {
    store o[i0] = v0
    each i1 < 3 from i0 to 3 {
      v1: float32 = load a[3*i0 + i1]
      store o[i1] = v1
    }
  }
}"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from i0 to 3", "from i0 - 1 to 3"),
        ("from i0 to 3", "from i0 to i0 + 2"),
        ("from i0 to 3", "from 0 to i1"),
        ("each i1 < 3 from i0 to 3 {", "each i2 < 3 {\n each i1 < 3 from i2 to 3 {"),
        ("each i1 < 3 from", "each i1 < 3, i2 < 1 from"),
    ],
)
def test_a_span_that_is_none(before: str, after: str) -> None:
    assert not rules(parse_kernel(TRIANGLE))
    text = TRIANGLE.replace(before, after)
    if "i2 < 3 {" in after:
        text = text.replace("    }", "    } }")
    assert "KV14" in rules(parse_kernel(text))


def test_what_a_span_writes_may_be_nothing() -> None:
    found = verify(parse_kernel(TRIANGLE.replace("    store o[i0] = v0\n", "")))
    assert {fault.rule for fault in found.undecided} == {"KV13"}


@pytest.mark.parametrize(
    ("offsets", "size", "broken"),
    [
        (("i0", "i0 + 3"), 6, set()),
        (("2*i0", "2*i0 + 1", "2*i0 + 6", "2*i0 + 7"), 12, set()),
        (("4*i0", "4*i0 + 2", "4*i0 + 1", "4*i0 + 3"), 12, set()),
        (("i0", "i0 + 6", "i0 + 3"), 9, set()),
        (("i0", "i0 + 3", "i0 + 7"), 10, {"KV12", "KV13"}),
        (("i0", "i0 + 2"), 5, {"KV12", "KV13"}),
        (("i0", "i0 + 1", "i0 + 5"), 8, {"KV12", "KV13"}),
    ],
)
def test_several_stores_in_a_regular_distance(offsets: tuple[str, ...], size: int, broken: set[str]) -> None:
    stores = "".join(f"  store o[{offset}] = v0\n" for offset in offsets)
    head = f"kernel @k(o: output float32[{size}]) space(i0 < 3) {{\n  v0: float32 = literal 0x0\n"
    found = verify(parse_kernel(head + stores + "}\n"))
    assert {fault.rule for fault in (*found.faults, *found.undecided)} == broken


def test_blocks_that_leave_values_for_nobody() -> None:
    kernel = parse_kernel(GOOD)
    *others, each = kernel.body.statements
    assert isinstance(each, Each)
    literal = others[0]
    assert isinstance(literal, Literal)
    leaving = replace(each, body=Block(each.body.statements, (literal.result,)))
    assert rules(replace(kernel, body=Block((*others, leaving)))) == {"KV11"}
    assert rules(replace(kernel, body=Block(kernel.body.statements, (literal.result,)))) == {"KV11"}


@pytest.mark.parametrize(
    ("offset", "decided"),
    [
        ("4*i0 + i1", True),
        ("3*i1 + i0", True),
        ("-4*i0 - i1 + 11", True),
        ("2*i0 + i1", None),
        ("i1", False),
        ("(4*i0 + i1 floordiv 2)", None),
    ],
)
def test_whether_iterations_stay_apart(offset: str, decided: bool | None) -> None:
    text = f"""kernel @k(o: output bool[12]) space(i0 < 3, i1 < 4) {{
      v0: bool = literal 0x1
      store o[{offset}] = v0
    }}"""
    found = verify(parse_kernel(text))
    assert ("KV12" in {fault.rule for fault in found.faults}) == (decided is False)
    assert ("KV12" in {fault.rule for fault in found.undecided}) == (decided is None)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_lowered_programs_obey_every_rule(seed: int) -> None:
    body, _ = random_graph(seed, 10)
    found = verify_program(lower(body), body)
    assert not found.faults
    # only where data says where to write, or where a running total stores its first element by itself
    allowed = ("select_and_scatter", "scatter", "cumulative", "reduce_window", "convolution")
    assert all(any(op in fault.message for op in allowed) for fault in found.undecided if fault.rule != "KV08")


def program() -> tuple[Program, Body]:
    """The first random program of several launches."""
    for seed in range(1000):
        body, _ = random_graph(seed, 8)
        found = lower(body)
        if sum(isinstance(step, Launch) for step in found.steps) > 2:
            return found, body
    raise AssertionError("no such program")


def test_programs_have_rules_of_their_own() -> None:
    good, body = program()
    first = next(step for step in good.steps if isinstance(step, Launch))

    def broken(**parts: object) -> set[str]:
        return {fault.rule for fault in verify_program(replace(good, **parts), body).faults}  # type: ignore[arg-type]

    assert not broken()
    fewer = replace(first, arguments=first.arguments[:-1])
    assert "KV20" in broken(steps=tuple(fewer if step is first else step for step in good.steps))
    wrong = dict(good.types) | {first.arguments[-1]: TensorType((9999,), NAMED["bool"])}
    assert "KV20" in broken(types=wrong)
    assert "KV21" in broken(steps=(*good.steps, first))
    assert "KV21" in broken(steps=tuple(step for step in good.steps if step is not first))
    stranger = Ref(10**6)
    assert "KV22" in broken(steps=(*good.steps, Alias(stranger, first.arguments[-1])))


def test_every_rule_is_tested() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    assert all(f'"{rule}"' in source for rule in RULES)


def test_the_documentation_lists_every_rule() -> None:
    page = (Path(__file__).parents[2] / "docs" / "kernels.md").read_text(encoding="utf-8")
    for rule, text in RULES.items():
        assert f"| {rule} | {text} |" in page
