"""Software floats wider than 256 bits in kernels: calls of the functions that ``tlir.floatlib.soft.big`` makes.

A function reads and writes memory, one element at a time; lanes take turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from tlir.backends.cpu.values import Item, Lanes, word_type
from tlir.floatlib.soft import big
from tlir.floatlib.soft.catalog import Kernel
from tlir.floatlib.soft.lanes import I32, I64
from tlir.floatlib.soft.numpy_loop import count_limbs
from tlir.ir.types import DType

_BYTE = ir.IntType(8)


def called(lanes: Lanes, kernel: Kernel, result: DType, items: Sequence[Item]) -> tuple[Item, Any]:
    """The kernel's words of these operands, and its flags as words of 64 bits if it has them."""
    b, count = lanes.builder, lanes.lanes
    function = big.function(b.module, kernel)
    kinds = big.element_types(kernel)
    counts = [count_limbs(width) for width in (*kernel.operands, kernel.result)]
    with b.goto_entry_block():
        rooms = [b.alloca(kind, ir.Constant(I64, limbs)) for kind, limbs in zip(kinds, counts, strict=True)]
        raised = b.alloca(_BYTE)
    operands = [
        [lanes.resized(limb, kind) for limb in lanes.limbs(item)] for item, kind in zip(items, kinds, strict=False)
    ]
    words: list[list[Any]] = []
    for lane in range(count):
        for limbs, room in zip(operands, rooms, strict=False):
            for k, limb in enumerate(limbs):
                own = limb if count == 1 else b.extract_element(limb, ir.Constant(I32, lane))
                b.store(own, b.gep(room, [ir.Constant(I64, k)], inbounds=True))
        b.call(function, [*rooms, raised])
        found = [b.load(b.gep(rooms[-1], [ir.Constant(I64, k)], inbounds=True)) for k in range(counts[-1])]
        words.append([*found, b.zext(b.load(raised), I64)] if kernel.flags else found)
    columns = [_in_lanes(b, list(column)) for column in zip(*words, strict=True)]
    flags = columns.pop() if kernel.flags else None
    if result.is_bool:
        return lanes.truth(result, b.icmp_unsigned("!=", columns[0], lanes.splat(kinds[-1], 0))), flags
    return lanes.words(result, [lanes.resized(column, word_type(result)) for column in columns]), flags


def _in_lanes(b: ir.IRBuilder, values: list[Any]) -> Any:
    if len(values) == 1:
        return values[0]
    vector: Any = ir.Constant(ir.VectorType(values[0].type, len(values)), ir.Undefined)
    for lane, value in enumerate(values):
        vector = b.insert_element(vector, value, ir.Constant(I32, lane))
    return vector
