"""Kernels of thousands of operations as functions that are called: each is in a source once, and not inlined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any

from tlir.backends.cuda.builder import Builder, Text, expression
from tlir.backends.cuda.machine import CudaMachine
from tlir.floatlib.soft.catalog import Kernel
from tlir.floatlib.soft.lanes import I64
from tlir.floatlib.soft.tape import record


@dataclass(frozen=True)
class Called:
    """A function ``name(limbs…)`` of 64-bit words, its definition, and the tables that it reads. What it returns has
    the limbs of the result and then the flags."""

    name: str
    text: str
    tables: Mapping[str, str]


@lru_cache(maxsize=256)
def called(kernel: Kernel) -> Called:
    """The function of a kernel."""
    b = Builder()
    tape = record(kernel, kernel.bits, kernel.operands, kernel.flags)
    operands = [Text(I64, f"a{k}") for k in range(len(tape.inputs))]
    results = tape.carried_out(CudaMachine(b, 64, 1), operands)
    b.line(f"return {{{{{', '.join(map(expression, results))}}}}};")
    parameters = ", ".join(f"uint64_t {operand}" for operand in operands)
    body = "\n".join([f"({parameters}) {{", *b.lines, "}", ""])
    label = "".join(c if c.isalnum() else "_" for c in kernel.name)
    name = f"{label}_{sha256(body.encode()).hexdigest()[:12]}"
    return Called(name, f"TL_CALLED tl_words<{len(results)}> {name}{body}", b.tables)


def call(b: Builder, function: Called, operands: Sequence[Any], results: int) -> list[Any]:
    """A call, and what it returns as 64-bit words."""
    b.tables |= function.tables
    b.tables[function.name] = function.text
    name = b.name()
    b.line(f"const tl_words<{results}> {name} = {function.name}({', '.join(map(expression, operands))});")
    return [b.define(I64, f"{name}.at[{k}]") for k in range(results)]
