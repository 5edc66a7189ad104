"""Loops of the cpu device against the interpreter that defines kernels: what they carry may be any NaN at first, and
many lanes go through them side by side."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from tlir.backends.cpu import arena
from tlir.backends.cpu.compiled import Compiled, compile_kernel
from tlir.backends.cpu.device import execute
from tlir.backends.interpreter import WordDomain
from tlir.kernel.interpret import run_kernel
from tlir.kernel.parse import parse_kernel

SPECIAL = np.array([0x7F800001, 0xFFC12345, 0x7FC00000, 0x80000000, 0, 0x7F800000, 0x3F800000, 0xC2280000], np.uint32)

STEPS = {
    "arithmetic": "v3: float32 = multiply(v1, v2)\n v4: float32 = add(v3, v2)",
    "a sign": "v3: float32 = negate(v1)\n v4: float32 = add(v3, v2)",
    "a magnitude": "v3: float32 = add(v2, v2)\n v4: float32 = copysign(v1, v3)",
    "nothing": "v4: float32 = bitcast_convert(v1)",
    "a choice": 'v3: bool = compare(v1, v2) {comparison_direction = "LT"}\n v4: float32 = select(v3, v2, v1)',
    "an extremum": "v4: float32 = maximum(v1, v2)",
}


def both(text: str, *inputs: Any) -> Compiled:
    """Runs a kernel with one output of the first input's size on both; the compiled one."""
    kernel = parse_kernel(text)
    memory = dict(zip(kernel.buffers, inputs, strict=False))
    output = next(b for b in kernel.buffers if b.role == "output")
    memory[output] = np.zeros(output.size, output.dtype.word_dtype)
    run_kernel(kernel, memory, WordDomain())
    compiled = compile_kernel(kernel)
    assert isinstance(compiled, Compiled)
    result = np.empty(output.size, output.dtype.word_dtype)
    execute(compiled, [*inputs, result], 1)
    assert np.array_equal(result, memory[output])
    return compiled


@pytest.mark.parametrize("steps", [0, 1, 2, 5])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("count", [2, 16, 100, 4096, 5000])
def test_what_a_loop_carries(step: str, steps: int, count: int) -> None:
    text = f"""
        kernel @k(n0: input float32[{count}], n1: output float32[{count}]) space(i0 < {count}) {{
          v0: float32 = load n0[i0]
          v2: float32 = literal 0x3f000000
          v5: float32 = loop i1 < {steps} carry(v1: float32 = v0) {{
            {STEPS[step]}
            yield v4
          }}
          store n1[i0] = v5
        }}
        """
    words = np.resize(SPECIAL, count)
    compiled = both(text, words)
    if step == "arithmetic" and count >= 4096:
        assert compiled.plan.block == 256


def test_what_two_loops_hand_on() -> None:
    """The inner loop only calculates with what the outer one carries; the outer one may leave what it was given."""
    text = """
        kernel @k(n0: input float32[64], n1: output float32[64]) space(i0 < 64) {
          v0: float32 = load n0[i0]
          v1: float32 = literal 0x3f000000
          v9: float32, v10: float32 = loop i1 < 2 carry(v2: float32 = v0, v3: float32 = v1) {
            v6: float32 = loop i2 < 3 carry(v4: float32 = v2) {
              v5: float32 = multiply(v4, v1)
              yield v5
            }
            yield v3, v2
          }
          v11: float32 = copysign(v9, v10)
          store n1[i0] = v11
        }
        """
    both(text, np.resize(SPECIAL, 64))


@pytest.mark.parametrize("rows", [1, 3, 40])
@pytest.mark.parametrize("size", [2, 9, 67, 130])
def test_spans(rows: int, size: int) -> None:
    """Steps that the loops around decide, none of them too, with lanes along rows or along what is independent."""
    text = f"""
        kernel @k(n0: input float32[{rows * size}], n1: output float32[{rows * size}], t0: local float32[{size}])
        space({f"i0 < {rows}" if rows > 1 else ""}) {{
          each i1 < {size} {{
            v0: float32 = load n0[{size}*i0 + i1]
            store t0[i1] = v0
          }}
          loop i2 < {size} carry() {{
            v1: float32 = load t0[i2]
            v6: float32 = loop i3 < {size} from i2 to {size} carry(v2: float32 = v1) {{
              v3: float32 = load n0[{size}*i0 + i3]
              v4: float32 = multiply(v2, v3)
              v5: float32 = subtract(v4, v1)
              yield v5
            }}
            each i4 < {size} from 0 to i2 {{
              v7: float32 = load t0[i4]
              v12: float32 = loop i5 < {size} from i2 to {size} carry(v8: float32 = v7) {{
                v9: float32 = load n0[{size}*i0 + i5]
                v10: float32 = subtract(v8, v9)
                v11: float32 = add(v10, v6)
                yield v11
              }}
              store t0[i4] = v12
            }}
          }}
          each i6 < {size} {{
            v13: float32 = load t0[i6]
            store n1[{size}*i0 + i6] = v13
          }}
        }}
        """
    text = text if rows > 1 else text.replace(f"{size}*i0 + ", "")
    words = np.random.default_rng(size).standard_normal(rows * size).astype(np.float32).view(np.uint32)
    both(text, words)
    words[::5] = np.resize(SPECIAL, words[::5].size)
    both(text, words)


def test_memory_is_used_again_once_nothing_refers_to_it() -> None:
    arena.clear()
    first = arena.empty((1 << 18,), np.dtype(np.uint32))
    view = first.reshape(512, 512)[::2]
    place = first.ctypes.data
    assert place % arena.ALIGNMENT == 0
    del first
    gc.collect()
    assert arena.empty((1 << 18,), np.dtype(np.uint32)).ctypes.data != place
    view[:] = 7
    del view
    gc.collect()
    again = [arena.empty((1 << 17,), np.dtype(np.uint64)) for _ in range(2)]
    assert place in {array.ctypes.data for array in again}
    assert all(array.flags.c_contiguous and array.flags.writeable for array in again)
    assert again[0].ctypes.data != again[1].ctypes.data


def test_no_more_memory_is_kept_than_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    arena.clear()
    monkeypatch.setattr(arena, "KEPT", 3 << 20)
    arrays = [arena.empty((1 << 20,), np.dtype(np.uint8)) for _ in range(5)]
    del arrays
    gc.collect()
    assert sum(size * len(blocks) for size, blocks in arena._free.items()) <= 3 << 20


def test_small_and_empty_arrays() -> None:
    assert arena.empty((0, 1 << 20), np.dtype(np.uint8)).shape == (0, 1 << 20)
    assert arena.empty((), np.dtype(np.uint16)).shape == ()
