"""Machine code of kernels that can be called, kept on disk under the kernel's own text.

What is kept says how the code is called as well, so that a process that finds it emits nothing: it does not even load
the modules that emit.
"""

from __future__ import annotations

import ctypes
import json
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from threading import local
from typing import Any

import numpy as np

from tlir.backends.cpu.settle import provide
from tlir.backends.cpu.stages import staged, work_of
from tlir.floatlib.soft import objects
from tlir.floatlib.soft.objects import address
from tlir.kernel.ir import Kernel, Loop, results_of
from tlir.kernel.text import kernel_text

ALIGNMENT = 64


@dataclass(frozen=True)
class Plan:
    """How a kernel's function is called: the outer iterations and lanes in all, the lanes of a block, the bytes of
    scratch memory that a thread needs, and whether there is no iteration at all."""

    outer: int
    lanes: int
    block: int
    scratch: int
    empty: bool


@dataclass(frozen=True)
class Compiled:
    """A kernel's function: ``call(outer_from, outer_to, lane_from, lane_to, scratch, buffers...)``."""

    plan: Plan
    call: Any


@dataclass(frozen=True)
class CompiledStages:
    """A kernel in stages: for each its code, the arrays that it takes (``tlir.backends.cpu.stages.Stage.arguments``)
    and its scalar operations; and the NumPy type and words of each temporary array."""

    stages: tuple[tuple[Compiled, tuple[int, ...], int], ...]
    temporaries: tuple[tuple[np.dtype[Any], int], ...]


def compile_kernel(kernel: Kernel) -> Compiled | CompiledStages | str:
    """The kernel's machine code, kept or made; or why it is not compiled."""
    parts = staged(kernel)
    if parts is None:
        return _compile(kernel)
    stages = []
    for stage in parts.stages:
        compiled = _compile(stage.kernel)
        if isinstance(compiled, str):
            return compiled
        stages.append((compiled, stage.arguments, work_of(stage.kernel)))
    temporaries = tuple((dtype.word_dtype, size * dtype.limbs) for dtype, size in parts.temporaries)
    return CompiledStages(tuple(stages), temporaries)


def _compile(kernel: Kernel) -> Compiled | str:
    key = objects.digest(_sources(), *_formats(kernel), kernel_text(kernel))
    data = objects.kept(key)
    if data is None:
        from tlir.backends.cpu.emission import emitted

        made = emitted(kernel)
        if isinstance(made, str):
            return made
        plan, text = made
        code = objects.object_code(text, objects.PLAIN)
        objects.keep(key, json.dumps(asdict(plan)).encode() + b"\n" + code)
    else:
        head, code = data.split(b"\n", 1)
        plan = Plan(**json.loads(head))
    provide()
    pointers = [ctypes.c_void_p] * (1 + sum(buffer.role != "local" for buffer in kernel.buffers))
    entry = objects.load(code, ["kernel"])["kernel"]
    return Compiled(plan, ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 4, *pointers)(entry))


def _formats(kernel: Kernel) -> list[str]:
    """The formats of a kernel's values: its text has only their names, which another artifact may declare otherwise."""
    values = [value for statement in kernel.body.walk() for value in results_of(statement)]
    values += [
        value for statement in kernel.body.walk() if isinstance(statement, Loop) for value in statement.parameters
    ]
    dtypes = {value.dtype for value in values} | {buffer.dtype for buffer in kernel.buffers}
    return sorted(f"{dtype.name} {asdict(dtype.format)}" for dtype in dtypes if dtype.format is not None)


@lru_cache(maxsize=1)
def _sources() -> str:
    """What the code of a kernel depends on beside its text: the files of this package, as they are now."""
    root = Path(__file__).parents[2]
    files = sorted(path for folder in ("backends/cpu", "floatlib", "kernel") for path in (root / folder).rglob("*.py"))
    states = ((path, path.stat()) for path in files)
    return "\n".join(f"{path} {state.st_size} {state.st_mtime_ns}" for path, state in states)


_own = local()
"""Scratch memory of each thread: it runs one kernel at a time, and fresh pages cost more than many kernels."""


def scratch_address(size: int) -> int:
    """The address of at least ``size`` bytes that are this thread's own until it asks again; 0 for none."""
    if not size:
        return 0
    memory = getattr(_own, "memory", None)
    if memory is None or memory.size < size + ALIGNMENT:
        memory = _own.memory = np.empty(size + ALIGNMENT, np.uint8)
    start = address(memory)
    return start + -start % ALIGNMENT


__all__ = ["Compiled", "CompiledStages", "Plan", "address", "compile_kernel", "scratch_address"]
