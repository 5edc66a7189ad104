"""A program as commands (``commands``) and the memory in which they are followed.

Every value has a slot with its address. What a program makes beside its outputs lies in one piece of memory, in which a
value's place is free again after the last step that reads it. ``writer`` makes a script of a lowered program, ``steps``
runs it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

from numpy.typing import NDArray

from tlir.backends.cpu.compiled import Compiled, CompiledStages
from tlir.ir.graph import Body, Node, Ref
from tlir.ir.tensor import words_shape
from tlir.ir.types import TensorType
from tlir.kernel.ir import Alias, Launch, Step

ALIGNMENT = 64


@dataclass(frozen=True)
class Shared:
    """A launch between stretches of commands: its code, the slots of its arguments, and its scalar operations."""

    compiled: Compiled | CompiledStages
    slots: tuple[int, ...]
    work: int


@dataclass(frozen=True)
class Evaluated:
    """A node between stretches of commands, with the slots of its operands and results."""

    node: Node
    operands: tuple[tuple[int, TensorType], ...]
    results: tuple[tuple[int, TensorType], ...]


@dataclass
class Script:
    """``rows``: starts of stretches of commands in ``code``, and what stands between them. The first slots are those of
    the inputs and of the outputs that the program makes, which ``made`` counts; ``outputs`` has the slots of all
    outputs. ``fixed`` slots hold the addresses of arrays, ``placed`` ones offsets in ``memory`` bytes. ``scratch``:
    bytes that kernels take beside; ``arguments``: the most that one has. ``held`` keeps the code that is called.
    ``kernels``, ``fused`` and ``bytes_moved`` count launches, their nodes and the bytes of their values, those inside a
    loop or branch once."""

    code: list[int] = field(default_factory=list)
    rows: list[int | Shared | Evaluated] = field(default_factory=list)
    slots: int = 0
    made: int = 0
    outputs: list[int] = field(default_factory=list)
    fixed: dict[int, NDArray[Any]] = field(default_factory=dict)
    placed: dict[int, int] = field(default_factory=dict)
    memory: int = 0
    scratch: int = 0
    arguments: int = 1
    held: list[object] = field(default_factory=list)
    kernels: int = 0
    fused: int = 0
    bytes_moved: int = 0


def nbytes(type: TensorType) -> int:
    """The bytes of a tensor's words in memory."""
    return prod(words_shape(type)) * type.dtype.word_dtype.itemsize


class Memory:
    """Places in one piece of memory."""

    def __init__(self) -> None:
        self.size = 0
        self._free: list[tuple[int, int]] = []

    def take(self, size: int) -> tuple[int, int]:
        """The first place that is large enough: its offset and its size."""
        size = -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
        for k, (offset, room) in enumerate(self._free):
            if room >= size:
                self._free[k : k + 1] = [(offset + size, room - size)] if room > size else []
                return offset, size
        if self._free and sum(self._free[-1]) == self.size:
            offset, _ = self._free.pop()
        else:
            offset = self.size
        self.size = offset + size
        return offset, size

    def give(self, place: tuple[int, int]) -> None:
        """A place that is no longer needed."""
        merged: list[tuple[int, int]] = []
        for offset, size in sorted([*self._free, place]):
            if merged and sum(merged[-1]) == offset:
                merged[-1] = (merged[-1][0], merged[-1][1] + size)
            else:
                merged.append((offset, size))
        self._free = merged


def touched(body: Body, step: Step) -> tuple[Ref, ...]:
    """The values that a step reads or makes."""
    if isinstance(step, Launch):
        return step.arguments
    if isinstance(step, Alias):
        return (step.value, step.of)
    node = body.nodes[step.node]
    return (*node.inputs, *(Ref(node.id, k) for k in range(len(node.types))))


def written(launch: Launch) -> list[Ref]:
    """The values that a launch makes."""
    buffers = [buffer for buffer in launch.kernel.buffers if buffer.role != "local"]
    return [ref for buffer, ref in zip(buffers, launch.arguments, strict=True) if buffer.role == "output"]
