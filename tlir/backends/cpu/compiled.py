"""Machine code of kernels that can be called, kept on disk under the kernel's own text.

What is kept says how the code is called as well, so that a process that finds it emits nothing: it does not even load
the modules that emit.
"""

from __future__ import annotations

import ctypes
import json
import re
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from tlir.backends.cpu.arena import Source
from tlir.backends.cpu.phases import Shape
from tlir.backends.cpu.settle import provide, provide_block
from tlir.backends.cpu.stages import staged, work_of
from tlir.backends.cpu.threads import threads
from tlir.floatlib.exclusive import exclusive
from tlir.floatlib.soft import objects
from tlir.floatlib.soft.objects import address
from tlir.kernel.ir import Kernel, Loop, results_of
from tlir.kernel.text import kernel_text

TILES = 384
"""How many scalar operations of a sum of products by tiles take as long as one elsewhere."""


CALLS = 8
"""How many times as long as others a kernel takes that calls those of thousands of operations."""


@dataclass(frozen=True)
class Plan:
    """How a kernel's function is called: the outer iterations and lanes in all, the lanes of a block, the bytes of
    scratch memory that a thread needs, and whether there is no iteration at all. ``shape`` has how it can be shared in
    phases, if it can; its outer iterations then are batches, and its lanes units. ``blocks`` has the keys of what it
    calls (``tlir.floatlib.soft.blocks``)."""

    outer: int
    lanes: int
    block: int
    scratch: int
    empty: bool
    shape: Shape | None = None
    blocks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Compiled:
    """A kernel's function: ``call(outer_from, outer_to, lane_from, lane_to, scratch, buffers...)``. ``part`` is that
    with the buffers' addresses in an array, ``phase`` the one for parts of phases; both with their addresses.
    ``schedules`` remembers how threads share the kernel, by their number."""

    plan: Plan
    call: Any
    part: tuple[int, Any]
    phase: tuple[int, Any] | None
    schedules: dict[int, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class CompiledStages:
    """A kernel in stages: for each its code, the arrays that it takes (``tlir.backends.cpu.stages.Stage.arguments``)
    and its scalar operations; and where the temporary arrays come from."""

    stages: tuple[tuple[Compiled, tuple[int, ...], int], ...]
    sources: tuple[Source, ...]


def compile_kernel(kernel: Kernel) -> Compiled | CompiledStages | str:
    """The kernel's machine code, kept or made; or why it is not compiled."""
    parts = staged(kernel, threads())
    if parts is None:
        return _compile(kernel)
    stages = []
    for stage in parts.stages:
        compiled = _compile(stage.kernel)
        if isinstance(compiled, str):
            return compiled
        stages.append((compiled, stage.arguments, effort(compiled, stage.kernel)))
    sources = tuple(Source((size * dtype.limbs,), dtype.word_dtype) for dtype, size in parts.temporaries)
    return CompiledStages(tuple(stages), sources)


def effort(compiled: object, kernel: Kernel) -> int:
    """Roughly how long a kernel takes, in scalar operations."""
    work = work_of(kernel)
    if not isinstance(compiled, Compiled):
        return work
    return work * (CALLS if compiled.plan.blocks else 1) // (1 if compiled.plan.shape is None else TILES)


def _compile(kernel: Kernel) -> Compiled | str:
    key = objects.digest(_sources(), *_formats(kernel), _nameless(kernel))
    provide()
    buffers = sum(buffer.role != "local" for buffer in kernel.buffers)
    data = objects.kept(key)
    if data is not None:
        try:
            return _loaded(data, buffers)
        except (ValueError, TypeError, KeyError, RuntimeError):
            objects.was_foreign()
    made = _emitted(kernel)
    if isinstance(made, str):
        return made
    plan, text = made
    data = json.dumps(asdict(plan)).encode() + b"\n" + objects.object_code(text, objects.PLAIN)
    objects.keep(key, data)
    return _loaded(data, buffers)


@exclusive
def _emitted(kernel: Kernel) -> tuple[Plan, str] | str:
    """``emission.emitted``, which makes kernels of elementary functions with their tables."""
    from tlir.backends.cpu.emission import emitted

    return emitted(kernel)


def _loaded(data: bytes, buffers: int) -> Compiled:
    """A kernel from what is kept of it. ValueError, TypeError, KeyError or RuntimeError for something else."""
    head, code = data.split(b"\n", 1)
    fields = json.loads(head)
    if fields["shape"] is not None:
        fields["shape"] = Shape(**fields["shape"])
    fields["blocks"] = tuple(fields["blocks"])
    plan = Plan(**fields)
    for block in plan.blocks:
        provide_block(block)
    names = ["kernel", "kernel_part", *(["phase_part"] if plan.shape is not None else [])]
    found = objects.load(code, names)
    numbers, pointer = [ctypes.c_int64] * 4, ctypes.c_void_p
    direct = ctypes.CFUNCTYPE(None, *numbers, *[pointer] * (1 + buffers))(found["kernel"])
    kind = ctypes.CFUNCTYPE(None, *numbers, pointer, pointer)
    parts = [(found[name], kind(found[name])) for name in names[1:]]
    return Compiled(plan, direct, parts[0], parts[1] if len(parts) > 1 else None)


def _nameless(kernel: Kernel) -> str:
    """The kernel's text without names that its code does not depend on: layers of a model share theirs."""
    text = kernel_text(replace(kernel, name="kernel", nodes=()))
    numbers = {buffer.name: k for k, buffer in enumerate(kernel.buffers)}
    if len(numbers) < len(kernel.buffers) or any(buffer.dtype.name in numbers for buffer in kernel.buffers):
        return text
    names = "|".join(map(re.escape, numbers))
    place = re.compile(rf"(?<![\w.])({names})(?=\[|: (?:input|output|local|temporary) )")
    return place.sub(lambda found: f"b{numbers[found[1]]}", text)


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
    return objects.states(files)


__all__ = ["Compiled", "CompiledStages", "Plan", "address", "compile_kernel", "effort"]
