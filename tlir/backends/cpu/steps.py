"""A program whose steps are all compiled, ready to run on arrays: what is the same in every run is looked up once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.backends.cpu.arena import Source
from tlir.backends.cpu.compiled import Compiled, address
from tlir.backends.cpu.settle import passed_on
from tlir.backends.cpu.threads import scratch_address
from tlir.floatlib.soft.objects import writable_address
from tlir.ir.graph import Ref
from tlir.ir.types import TensorType
from tlir.kernel.ir import Alias, Program

Array = NDArray[Any]
Layout = Callable[[TensorType], tuple[tuple[int, ...], np.dtype[Any]]]
Launched = Callable[[Any, list[int], int, object], None]
"""``launched(compiled, addresses, work, held)`` runs the code of a launch; ``held`` keeps its arrays."""


class Steps:
    """Every value has a place in a list: first the inputs, then ``fixed``, then what steps make.

    ``calls`` are the launches that every run needs, ``fixed`` the constants and what the other launches compute. What
    is made has the shape and NumPy type of ``layout``. Launches of less work than ``small`` are called at once, all
    others through ``launched``."""

    def __init__(
        self,
        program: Program,
        last_uses: Sequence[Sequence[Ref]],
        calls: Mapping[int, Any],
        fixed: Mapping[Ref, Array],
        layout: Layout,
        launched: Launched,
        small: int,
    ) -> None:
        self.launched = launched
        self.fixed = []
        for ref, words in fixed.items():
            shape, dtype = layout(program.types[ref])
            self.fixed.append(np.ascontiguousarray(words).view(dtype).reshape(shape))
        self._fixed_addresses = [address(words) for words in self.fixed]
        places = {ref: place for place, ref in enumerate((*program.inputs, *fixed))}
        self.steps: list[tuple[Any, ...]] = []
        for number, step in enumerate(program.steps):
            call = calls.get(number)
            if isinstance(step, Alias):
                shape, _ = layout(program.types[step.value])
                row: tuple[Any, ...] = (None, (places[step.of], shape), 0, (), ())
                places[step.value] = len(places)
            elif call is not None:
                made = [(ref, new[2]) for ref, new in call.arguments if new is not None]
                for ref, _ in made:
                    places[ref] = len(places)
                compiled, numbers = call.compiled, None
                if isinstance(compiled, Compiled) and (compiled.plan.empty or call.work < small):
                    numbers = (0, compiled.plan.outer, 0, compiled.plan.lanes)
                sources = tuple(Source(*layout(type)) for _, type in made)
                row = (compiled, numbers, call.work, sources, tuple(places[ref] for ref, _ in call.arguments))
            else:
                continue
            gone = tuple(places[ref] for ref in last_uses[number] if places[ref] >= len(program.inputs))
            self.steps.append((*row, gone))
        self.outputs = [places[ref] for ref in program.outputs]

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs for contiguous arrays that are just what the inputs take."""
        values: list[Any] = [*inputs, *self.fixed]
        try:
            addresses = [*map(writable_address, inputs), *self._fixed_addresses]
        except (TypeError, ValueError, BufferError):
            addresses = [*map(address, inputs), *self._fixed_addresses]
        for compiled, numbers, work, made, arguments, gone in self.steps:
            for source in made:
                array, start = source.new()
                values.append(array)
                addresses.append(start)
            if compiled is None:
                of, shape = numbers
                values.append(values[of].reshape(shape))
                addresses.append(addresses[of])
            elif numbers is None:
                self.launched(compiled, [addresses[place] for place in arguments], work, values)
            elif not compiled.plan.empty:
                scratch = scratch_address(compiled.plan.scratch)
                compiled.call(*numbers, scratch, *[addresses[place] for place in arguments])
            for place in gone:
                values[place] = None
        passed_on()
        return [values[place] for place in self.outputs]
