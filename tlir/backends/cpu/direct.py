"""The shortest way from NumPy arrays to NumPy arrays, for graphs whose kernels take less time than looking at them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.backends.cpu.compiled import address
from tlir.backends.cpu.device import SPLIT_FROM, Call, Executable
from tlir.backends.cpu.settle import passed_on
from tlir.backends.cpu.threads import scratch_address
from tlir.ir.graph import Ref
from tlir.ir.tensor import numpy_dtype, words_shape
from tlir.kernel.ir import Launch

Array = NDArray[Any]


class Direct:
    """Runs a program whose steps are all compiled and small, on arrays that need no conversion."""

    def __init__(self, executable: Executable, calls: list[Call]) -> None:
        """``calls`` are those of the launches that are not the same in every run."""
        program = executable.program
        self.inputs = [(numpy_dtype(type.dtype), type.shape) for type in map(program.types.__getitem__, program.inputs)]
        self.input_count = len(self.inputs)
        places = {ref: k for k, ref in enumerate(program.inputs)}
        self.constants: list[Array] = []
        for ref, tensor in {**program.constants, **executable.kept()}.items():
            places[ref] = self.input_count + len(self.constants)
            self.constants.append(np.ascontiguousarray(tensor.words))
        self.steps: list[tuple[Any, int, int, int, list[tuple[int, Any]]]] = []
        for call in calls:
            arguments = []
            for ref, new in call.arguments:
                if new is not None:
                    places[ref] = len(places)
                arguments.append((places[ref], None if new is None else self._made(ref, new[2])))
            plan = call.compiled.plan
            self.steps.append((call.compiled.call, plan.outer, plan.lanes, plan.scratch, arguments))
        self.outputs = [places[ref] for ref in program.outputs]

    @staticmethod
    def _made(ref: Ref, type: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
        native = numpy_dtype(type.dtype)
        return (type.shape, native) if native is not None else (words_shape(type), type.dtype.word_dtype)

    def run(self, arrays: Sequence[Any]) -> list[Array] | None:
        """The outputs, new arrays; None where an array is not just what an input takes."""
        if len(arrays) != self.input_count:
            return None
        for array, (dtype, shape) in zip(arrays, self.inputs, strict=False):
            if type(array) is not np.ndarray or array.dtype != dtype or array.shape != shape:
                return None
            if not array.flags.c_contiguous:
                return None
        values: list[Array] = [*arrays, *self.constants]
        for call, outer, lanes, scratch, arguments in self.steps:
            addresses = [scratch_address(scratch)]
            for place, new in arguments:
                if new is not None:
                    values.append(np.empty(*new))
                addresses.append(address(values[place]))
            call(0, outer, 0, lanes, *addresses)
        passed_on()
        return [values[place] for place in self.outputs]


def direct(executable: Executable) -> Direct | None:
    """The short way for a program; None where it needs another one."""
    program = executable.program
    types = [program.types[ref] for ref in (*program.inputs, *program.outputs)]
    if any(numpy_dtype(type.dtype) is None or (type.dtype.is_integer and type.dtype.bits < 8) for type in types):
        return None
    made = {ref for step in program.steps if isinstance(step, Launch) for ref in step.arguments}
    if len(set(program.outputs)) != len(program.outputs) or any(
        ref in program.inputs or ref in program.constants or ref not in made for ref in program.outputs
    ):
        return None
    calls: list[Call] = []
    for number, step in enumerate(program.steps):
        if not isinstance(step, Launch):
            return None
        call = executable.call(number, step)
        if isinstance(call, str):
            return None
        if number in executable.unchanging:
            continue
        if call.work >= SPLIT_FROM or call.compiled.plan.empty:
            return None
        calls.append(call)
    return Direct(executable, calls)
