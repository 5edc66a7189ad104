"""Kernels of thousands of operations as machine code: functions that are called for eight elements at a time.

Each such kernel is a module of its own (``block_code``), with

* ``block(memory)``: 64-bit words, ``LANES`` for each limb of the operands, then of the result, then of the flags;
* ``loop(n, operands…, result, flags)``: arrays of n elements, as those of ``soft.llvm``.

The object code is kept on disk under the kernel's ``key``, so that a process that finds it builds nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from tlir.floatlib.soft import objects
from tlir.floatlib.soft.catalog import Kernel

LANES = 8
ENTRIES = ("block", "loop")

_known: dict[str, dict[str, int]] = {}


def functions(key: str, make: Callable[[], Kernel]) -> dict[str, int]:
    """The addresses of ``ENTRIES`` of the kernel with this key, which is made only if its code is not kept."""
    if key not in _known:
        name = _name(key)
        code, found = objects.kept(name), None
        if code is not None:
            try:
                found = objects.load(code, ENTRIES)
            except (KeyError, RuntimeError):
                objects.was_foreign()
        if found is None:
            from tlir.floatlib.soft.block_code import emit

            code = objects.object_code(emit(make()), objects.STRAIGHT)
            objects.keep(name, code)
            found = objects.load(code, ENTRIES)
        _known[key] = found
    return _known[key]


def is_at_hand(key: str) -> bool:
    """Whether the kernel with this key is compiled already, by this process or another one."""
    return key in _known or objects.is_kept(_name(key))


def _name(key: str) -> str:
    return objects.digest(objects.STRAIGHT, _sources(), key)


@lru_cache(maxsize=1)
def _sources() -> str:
    """What the code of a kernel depends on beside its key: the files of ``tlir.floatlib``, as they are now."""
    return objects.states(sorted(Path(__file__).parents[1].rglob("*.py")))
