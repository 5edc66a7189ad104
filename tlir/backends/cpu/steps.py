"""A program ready to run on arrays: its script, and the memory that it runs in."""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.backends.cpu.arena import Source
from tlir.backends.cpu.commands import ARGUMENTS, CODE, LIMIT, SCRATCH, SLOTS, follow
from tlir.backends.cpu.compiled import address
from tlir.backends.cpu.script import ALIGNMENT, Evaluated, Script, Shared, nbytes
from tlir.backends.cpu.settle import passed_on
from tlir.backends.cpu.threads import INTERRUPTIBLE_FROM
from tlir.floatlib.soft.objects import writable_address
from tlir.ir.graph import Node
from tlir.ir.tensor import Tensor, words_shape
from tlir.ir.types import TensorType
from tlir.kernel.ir import Program

Array = NDArray[Any]
Layout = Callable[[TensorType], tuple[tuple[int, ...], np.dtype[Any]]]
Launched = Callable[[Any, list[int], int, object], None]
"""``launched(compiled, addresses, work, held)`` runs the code of a launch; ``held`` keeps its memory."""
Evaluate = Callable[[Node, tuple[Tensor, ...]], Sequence[Tensor]]

KEPT = 1 << 22
"""Bytes of a program's memory up to which it is kept between runs; more comes from where large arrays come from."""


class Frame:
    """The slots of one run, and its memory."""

    def __init__(self, script: Script, code: Any) -> None:
        self.slots: Any = (ctypes.c_int64 * max(script.slots, 1))()
        self.words: NDArray[np.int64] = np.ctypeslib.as_array(self.slots)
        """The same memory."""
        for slot, array in script.fixed.items():
            self.slots[slot] = address(array)
        scratch: NDArray[np.uint8] = np.empty(script.scratch + ALIGNMENT, np.uint8)
        start = address(scratch)
        arguments = (ctypes.c_int64 * script.arguments)()
        self.control = (ctypes.c_int64 * 5)()
        self.control[CODE], self.control[SLOTS] = ctypes.addressof(code), ctypes.addressof(self.slots)
        self.control[SCRATCH], self.control[ARGUMENTS] = start + -start % ALIGNMENT, ctypes.addressof(arguments)
        self.control[LIMIT] = INTERRUPTIBLE_FROM
        self.address = ctypes.addressof(self.control)
        self.memory: Any = None
        self._held = (scratch, arguments)


class Steps:
    """Runs a script. What it makes has the shape and NumPy type of ``layout``; with ``new`` every output is an array
    that no other one shares its memory with, nor an input."""

    def __init__(
        self,
        program: Program,
        script: Script,
        layout: Layout,
        launched: Launched,
        evaluate: Evaluate,
        new: bool = False,
    ) -> None:
        self.script, self._launched, self._evaluate = script, launched, evaluate
        self.evaluated = [row.node for row in script.rows if isinstance(row, Evaluated)]
        """The nodes that are not in the script."""
        self._code = (ctypes.c_int64 * max(len(script.code), 1))(*script.code)
        self._follow = follow()
        self._offsets = np.array(list(script.placed.values()), np.int64)
        self._placed = np.array(list(script.placed), np.intp)
        self._memory = Source((script.memory + ALIGNMENT,), np.dtype(np.uint8))
        self._frames: deque[Frame] = deque()
        count, types = len(program.inputs), [program.types[ref] for ref in program.outputs]
        self._sources: list[Source] = []
        self._results: list[tuple[int, tuple[int, ...] | None, bool]] = []
        """Of each output the number of its array among the inputs, what is made, and fixed ones; its shape, if that is
        not the array's; and whether it is a copy."""
        self._fixed: list[Array] = []
        places: dict[int, int] = {}
        shapes = {k: layout(program.types[ref])[0] for k, ref in enumerate(program.inputs)}
        for slot, type in zip(script.outputs, types, strict=True):
            shape, dtype = layout(type)
            if slot < count:
                place = slot
            elif slot in places:
                place = places[slot]
            elif slot in script.fixed:
                place = count + script.made + len(self._fixed)
                self._fixed.append(script.fixed[slot].view(dtype).reshape(shape))
            else:
                place = count + len(self._sources)
                self._sources.append(Source(shape, dtype))
            shapes.setdefault(place, shape)
            shared = slot in places or not count <= place < count + script.made
            places[slot] = place
            self._results.append((place, None if shapes[place] == shape else shape, new and shared))
        self._plain = self._results == [(count + k, None, False) for k in range(script.made)]
        """Whether the outputs are just what is made, in order."""

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs for contiguous arrays that are just what the inputs take."""
        try:
            addresses = list(map(writable_address, inputs))
        except (TypeError, ValueError, BufferError):
            addresses = list(map(address, inputs))
        made = []
        for source in self._sources:
            array, start = source.new()
            made.append(array)
            addresses.append(start)
        try:
            frame = self._frames.pop()
        except IndexError:
            frame = Frame(self.script, self._code)
        if frame.memory is None and self.script.memory:
            frame.memory, start = self._memory.new()
            frame.words[self._placed] = self._offsets + (start + -start % ALIGNMENT)
        frame.slots[: len(addresses)] = addresses
        for row in self.script.rows:
            if isinstance(row, int):
                while (row := self._follow(frame.address, row)) >= 0:
                    passed_on()
            elif isinstance(row, Shared):
                addresses = [frame.slots[slot] for slot in row.slots]
                self._launched(row.compiled, addresses, row.work, (frame, inputs, made))
            else:
                self._between(frame, row)
        passed_on()
        if self.script.memory > KEPT:
            frame.memory = None
        self._frames.append(frame)
        return made if self._plain else self._chosen([*inputs, *made, *self._fixed])

    def _chosen(self, values: Sequence[Array]) -> list[Array]:
        results = []
        for place, shape, copied in self._results:
            array = values[place] if shape is None else values[place].reshape(shape)
            results.append(array.copy() if copied else array)
        return results

    def _between(self, frame: Frame, row: Evaluated) -> None:
        """A node that commands do not do."""
        operands = tuple(Tensor(type, _words(frame.slots[slot], type).copy()) for slot, type in row.operands)
        for (slot, type), result in zip(row.results, self._evaluate(row.node, operands), strict=True):
            _words(frame.slots[slot], type)[...] = result.words


def _words(place: int, type: TensorType) -> Array:
    """The words of a tensor at an address."""
    size = nbytes(type)
    memory: Any = (ctypes.c_char * size).from_address(place)
    return np.frombuffer(memory, type.dtype.word_dtype).reshape(words_shape(type))
