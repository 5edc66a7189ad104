"""The text of kernels and programs: what is printed is read back as the same records."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lower_graphs import CUSTOM, random_graph

from tlir.errors import ArtifactError
from tlir.kernel.ir import Launch
from tlir.kernel.parse import parse_kernel, parse_program
from tlir.kernel.text import kernel_text, program_text
from tlir.passes.lower import lower

FORMATS = {name: dtype.float_format for name, dtype in CUSTOM.items()}

SUM_OF_ROWS = """\
kernel @rows(n0: input float32[12], n2: output float32[3]) space(i0 < 3) nodes(1, 2) {
  v0: float32 = literal 0x0
  v4: float32 = loop i1 < 4 carry(v1: float32 = v0) {
    v2: float32 = load n0[4*i0 - i1 + 3]
    v3: float32 = add(v1, v2)
    yield v3
  }
  store n2[i0] = v4
}
"""

EVERYTHING = """\
kernel @all(n0: input complex<float16>[9], n1: input int32[4], n2: output bool[8], t0: local int64[5]) space(i0 < 4) {
  v0: complex<float16> = literal 0x1, 0x8000
  v1: complex<float16> = load n0[(i0 floordiv 2) + 3*(i0 mod 2)] where 0 <= i0 - 1 < 3, -2 <= i0 < 2 else v0
  v2: int32 = load n1[i0]
  v3: int64 = position 2*i0 - 7
  v4: int64 = convert(v2) {out_of_range = "saturate"}
  v5: bool = compare(v3, v4) {comparison_direction = "LT", compare_type = "DEFAULT"}
  v7: bool = if v5 {
    v6: bool = not(v5)
    yield v6
  } else {
    yield v5
  }
  if v5 {
    store t0[[v4: 0 to 4]] = v3
  } else {
  }
  loop i1 < 2 carry() {
    store t0[i1] = v3
  }
  v10: bool, v11: int64 = loop i2 < 3 carry(v8: bool = v7, v9: int64 = v3) {
    yield v8, v9
  }
  each i3 < 2, i4 < 1 {
    store n2[2*i0 + i3] = v10
  }
  loop i5 < 4 carry() {
    v14: int64 = loop i6 < 4 from 0 to i5 carry(v12: int64 = v3) {
      v13: int64 = position i6
      yield v13
    }
    each i7 < 5 from i5 + 1 to 4 {
      store t0[i7] = v14
    }
  }
}
"""


@pytest.mark.parametrize("text", [SUM_OF_ROWS, EVERYTHING])
def test_written_text_is_printed_again_as_it_was(text: str) -> None:
    assert kernel_text(parse_kernel(text)) == text


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_programs_come_back_as_they_were(seed: int) -> None:
    body, _ = random_graph(seed, 10)
    program = lower(body)
    again = parse_program(program_text(program), program.constants, FORMATS)
    assert again == program
    for step in program.steps:
        if isinstance(step, Launch):
            assert parse_kernel(kernel_text(step.kernel), FORMATS) == step.kernel


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("space", "place", "line 1"),
        ("float32[12]", "float33[12]", "not float33"),
        ("add(v1, v2)", "add(v1, v9)", "line 5"),
        ("4*i0", "4*i7", "not i7"),
        ("store n2", "store n3", "not n3"),
        ("input float32", "inward float32", "input, output or local"),
        ("literal 0x0", "literal zero", "a word"),
        ("}\n  store", "\n  store", "'}'"),
        ("store n2[i0] = v4\n}", "store n2[i0] = v4", "line 9"),
        ("}\n", "}\nmore", "a value"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(before: str, after: str, message: str) -> None:
    assert before in SUM_OF_ROWS
    with pytest.raises(ArtifactError) as caught:
        parse_kernel(SUM_OF_ROWS.replace(before, after, 1))
    assert caught.value.code == "TL0217"
    assert message in caught.value.message
