"""A lowered program as a script, its loops and branches included.

A loop keeps its carried values in places of their own: the body's results are copied there, or change places with them
where they are large. What it leaves as it is stays where it was. A launch that threads should share is no command: at
the top of a program it stands between two stretches of commands, and so does a node without a kernel; inside a loop or
branch they refuse the whole of it (``Refused``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tlir.backends.cpu.commands import BRANCH, CALL, CHOOSE, COPY, COUNT, END, JUMP, LEAST, PLACE, SET, SWAP
from tlir.backends.cpu.compiled import Compiled, CompiledStages
from tlir.backends.cpu.script import Evaluated, Memory, Script, Shared, nbytes, touched, written
from tlir.ir.graph import Body, Node, Ref
from tlir.ir.tensor import Tensor
from tlir.ir.types import DType, TensorType
from tlir.kernel.ir import Alias, Launch, Program

LARGE = 1 << 12
"""Bytes from which a carried value changes places instead of being copied."""


class Refused(Exception):
    """Something that commands do not do."""


class Lowered(Protocol):
    """What ``tlir.backends.cpu.device.Executable`` has of a body."""

    body: Body
    program: Program
    unchanging: frozenset[int]

    def call(self, number: int, launch: Launch) -> Any: ...
    def kept(self) -> dict[Ref, Tensor]: ...


@dataclass
class Value:
    """A slot, and the places in memory that are its own."""

    slot: int
    places: list[tuple[int, int]] = field(default_factory=list)


class Writer:
    """Writes a program's commands. ``lowered`` gives what is known of a region's body; launches of at least ``shared``
    scalar operations are for threads, those of at least ``inside`` in loops and branches too."""

    def __init__(self, lowered: Callable[[Body], Lowered], shared: int, inside: int) -> None:
        self.script = Script()
        self._lowered, self._shared, self._inside = lowered, shared, inside
        self._memory = Memory()
        self._start: int | None = None

    def write(self, top: Lowered) -> Script:
        script, program = self.script, top.program
        script.slots = len(program.inputs)
        roots, computed = _roots(program), _made(top)
        made: dict[int, Ref] = {}
        for number, ref in enumerate(program.outputs):
            root = roots.get(ref, ref)
            if root in computed and root not in made.values():
                made[number] = root
        targets = {number: self._slot() for number in made}
        script.made = len(made)
        values = self._program(top, range(len(program.inputs)), targets, outermost=True)
        self._end_stretch()
        script.outputs = [value.slot for value in values]
        script.memory = self._memory.size
        return script

    # ---- slots, memory and commands ---------------------------------------------------------------------------------

    def _slot(self) -> int:
        self.script.slots += 1
        return self.script.slots - 1

    def _fixed(self, words: NDArray[Any]) -> int:
        slot = self._slot()
        self.script.fixed[slot] = np.ascontiguousarray(words)
        return slot

    def _new(self, size: int) -> Value:
        place = self._memory.take(size)
        value = Value(self._slot(), [place])
        self.script.placed[value.slot] = place[0]
        return value

    def _give(self, value: Value) -> None:
        for place in value.places:
            self._memory.give(place)
        value.places = []

    def _emit(self, *words: int) -> int:
        """Adds a command; where it begins."""
        if self._start is None:
            self._start = len(self.script.code)
        place = len(self.script.code)
        self.script.code += words
        return place

    def _here(self) -> int:
        return len(self.script.code)

    def _end_stretch(self) -> None:
        if self._start is not None:
            self._emit(END)
            self.script.rows.append(self._start)
            self._start = None

    def _between(self, row: Shared | Evaluated) -> None:
        self._end_stretch()
        self.script.rows.append(row)

    # ---- programs ---------------------------------------------------------------------------------------------------

    def _program(
        self, ex: Lowered, inputs: Sequence[int], targets: Mapping[int, int], outermost: bool = False
    ) -> list[Value]:
        """A program whose inputs are in these slots: its outputs, in the slots of ``targets`` (by their numbers) where
        it computes them and no earlier output is the same. The caller gives their memory back, but not what several
        have in common."""
        program, body = ex.program, ex.body
        roots, made = _roots(program), _made(ex)
        values = {ref: Value(slot) for ref, slot in zip(program.inputs, inputs, strict=True)}
        for ref, tensor in {**program.constants, **ex.kept()}.items():
            values[ref] = Value(self._fixed(tensor.words))
        aimed: dict[Ref, int] = {}
        for number, target in targets.items():
            root = roots.get(program.outputs[number], program.outputs[number])
            if root in made:
                aimed.setdefault(root, target)
        last = _last_uses(body, program, roots)
        for number, step in enumerate(program.steps):
            if isinstance(step, Alias):
                root = roots[step.value]
                if root in values:
                    values[step.value] = values[root]
                continue
            if isinstance(step, Launch) and number in ex.unchanging:
                continue
            if isinstance(step, Launch):
                self._launch(ex, number, step, values, aimed, outermost)
            else:
                self._node(ex, body.nodes[step.node], values, aimed, set(last.get(number, ())), outermost)
            for ref in last.get(number, ()):
                if ref in values:
                    self._give(values[ref])
        outputs: list[Value] = []
        for ref in program.outputs:
            value = values[roots.get(ref, ref)]
            outputs.append(value if value not in outputs else Value(value.slot))
        return outputs

    def _aimed(self, targets: Sequence[int | None], types: Sequence[TensorType]) -> list[Value]:
        """Values in these slots; new ones where there is none."""
        return [
            self._new(nbytes(type)) if target is None else Value(target)
            for target, type in zip(targets, types, strict=True)
        ]

    def _launch(
        self,
        ex: Lowered,
        number: int,
        launch: Launch,
        values: dict[Ref, Value],
        aimed: Mapping[Ref, int],
        outermost: bool,
    ) -> None:
        call = ex.call(number, launch)
        if isinstance(call, str) or not isinstance(call.compiled, Compiled | CompiledStages):
            raise Refused(call)
        for ref, new in call.arguments:
            if new is not None:
                (values[ref],) = self._aimed([aimed.get(ref)], [new[2]])
        slots = [values[ref].slot for ref, _ in call.arguments]
        self.script.kernels += 1
        self.script.fused += len(launch.kernel.nodes)
        self.script.bytes_moved += call.bytes
        if call.work >= self._shared and outermost:
            self._between(Shared(call.compiled, tuple(slots), call.work))
            return
        if call.work >= self._inside:
            raise Refused("threads share a launch inside")
        if isinstance(call.compiled, Compiled):
            self._call(call.compiled, slots, call.work)
            return
        temporaries = [self._new(source.nbytes) for source in call.compiled.sources]
        slots += [value.slot for value in temporaries]
        for stage, numbers, work in call.compiled.stages:
            self._call(stage, [slots[k] for k in numbers], work)
        for value in temporaries:
            self._give(value)

    def _call(self, compiled: Compiled, slots: Sequence[int], work: int) -> None:
        plan, script = compiled.plan, self.script
        if plan.empty:
            return
        script.scratch = max(script.scratch, plan.scratch)
        script.arguments = max(script.arguments, len(slots))
        script.held.append(compiled)
        self._emit(CALL, compiled.part[0], 0, plan.outer, 0, plan.lanes, max(work, LEAST), len(slots), *slots)

    def _node(
        self,
        ex: Lowered,
        node: Node,
        values: dict[Ref, Value],
        aimed: Mapping[Ref, int],
        done: set[Ref],
        outermost: bool,
    ) -> None:
        """A node without a kernel: a loop or a branch, or one that is evaluated between commands. Nothing after it
        needs the values ``done``."""
        operands = [values[ref].slot for ref in node.inputs]
        results = [Ref(node.id, k) for k in range(len(node.types))]
        targets = [aimed.get(ref) for ref in results]
        if node.op in ("while", "scan", "case"):
            before = self._state()
            try:
                if node.op == "case":
                    made = self._case(ex, node, operands, targets)
                else:
                    unused = {k for k, ref in enumerate(results) if ref in done}
                    made = (self._while if node.op == "while" else self._scan)(ex, node, operands, targets, unused)
            except Refused:
                if not outermost:
                    raise
                self._restore(before)
            else:
                values.update(zip(results, made, strict=True))
                return
        elif not outermost:
            raise Refused(node.op)
        places = self._aimed(targets, node.types)
        values.update(zip(results, places, strict=True))
        types = [ex.body.type_of(ref) for ref in node.inputs]
        self._between(
            Evaluated(
                node,
                tuple(zip(operands, types, strict=True)),
                tuple((value.slot, type) for value, type in zip(places, node.types, strict=True)),
            )
        )

    def _state(self) -> tuple[Any, ...]:
        script, memory = self.script, self._memory
        counts = script.kernels, script.fused, script.bytes_moved
        return len(script.code), list(script.rows), self._start, memory.size, list(memory._free), counts

    def _restore(self, state: tuple[Any, ...]) -> None:
        """Takes back the commands since then, and their memory."""
        script, memory = self.script, self._memory
        length, script.rows, self._start, memory.size, memory._free, counts = state
        script.kernels, script.fused, script.bytes_moved = counts
        del script.code[length:]

    # ---- control ----------------------------------------------------------------------------------------------------

    def _copy(self, to: int, origin: int, size: int) -> None:
        if size and to != origin:
            self._emit(COPY, to, origin, size)

    def _carried(self, operands: Sequence[int], types: Sequence[TensorType], staying: set[int]) -> list[Value]:
        """Places for carried values, which begin as the operands; those that stay as they are are the operands."""
        carried = [
            Value(operand) if k in staying else self._new(nbytes(types[k])) for k, operand in enumerate(operands)
        ]
        for value, operand, type in zip(carried, operands, types, strict=True):
            self._copy(value.slot, operand, nbytes(type))
        return carried

    def _spare(self, types: Sequence[TensorType], staying: set[int]) -> dict[int, Value]:
        """Places with which large carried values change theirs."""
        large = [k for k, type in enumerate(types) if nbytes(type) >= LARGE and k not in staying]
        return {k: self._new(nbytes(types[k])) for k in large}

    def _passed(
        self,
        carried: Sequence[Value],
        spare: Mapping[int, Value],
        results: Sequence[Value],
        types: Sequence[TensorType],
        staying: set[int],
    ) -> None:
        """What a step of a loop leaves becomes what the next one is given, all at once."""
        own = {value.slot: k for k, value in enumerate(carried) if k not in staying}
        kept = {}
        for k, result in enumerate(results):
            # what was given comes back in another place: it is read before anything is written there
            if own.get(result.slot, k) != k:
                kept[k] = self._new(nbytes(types[k]))
                self._copy(kept[k].slot, result.slot, nbytes(types[k]))
        swapped = [k for k, result in enumerate(results) if k in spare and result.slot == spare[k].slot]
        for k, (value, result, type) in enumerate(zip(carried, results, types, strict=True)):
            if k not in swapped and k not in staying:
                self._copy(value.slot, kept.get(k, result).slot, nbytes(type))
        # last, because what is copied may be another one's result too
        for k in swapped:
            self._emit(SWAP, carried[k].slot, spare[k].slot)
        for value in (*kept.values(), *results):
            self._give(value)

    def _left(
        self,
        carried: Sequence[Value],
        spare: Mapping[int, Value],
        targets: Sequence[int | None],
        types: Sequence[TensorType],
        copied: set[int],
    ) -> list[Value]:
        """The carried values at the end of a loop as results of its node; ``copied`` those in places of others."""
        left = []
        for k, (value, target, type) in enumerate(zip(carried, targets, types, strict=True)):
            if k in spare:
                value.places += spare[k].places
            if target is None and k in copied:
                left.append(self._new(nbytes(type)))
                self._copy(left[-1].slot, value.slot, nbytes(type))
            elif target is None:
                left.append(value)
            else:
                self._copy(target, value.slot, nbytes(type))
                self._give(value)
                left.append(Value(target))
        return left

    def _while(
        self,
        ex: Lowered,
        node: Node,
        operands: Sequence[int],
        targets: Sequence[int | None],
        unused: set[int],
    ) -> list[Value]:
        condition, body = (self._lowered(region) for region in node.regions)
        staying = _staying(body.program, 0, len(node.types))
        carried, spare = self._carried(operands, node.types, staying), self._spare(node.types, staying)
        slots = [value.slot for value in carried]
        begin = self._here()
        (holds,) = self._program(condition, slots, {})
        branch = self._emit(BRANCH, holds.slot, 0)
        self._give(holds)
        results = self._program(body, slots, {k: value.slot for k, value in spare.items()})
        self._passed(carried, spare, results, node.types, staying)
        self._emit(JUMP, begin)
        self.script.code[branch + 2] = self._here()
        return self._left(carried, spare, targets, node.types, staying - unused)

    def _scan(
        self,
        ex: Lowered,
        node: Node,
        operands: Sequence[int],
        targets: Sequence[int | None],
        unused: set[int],
    ) -> list[Value]:
        consts, carries, length = (node.attrs[name] for name in ("num_consts", "num_carry", "length"))
        given, stacked = list(operands[:consts]), operands[consts + carries :]
        types = node.types[:carries]
        body = self._lowered(node.regions[0]) if length else None
        staying = set(range(carries)) if body is None else _staying(body.program, consts, carries)
        carried = self._carried(operands[consts : consts + carries], types, staying)
        spare = self._spare(types, staying)
        made = self._aimed(targets[carries:], node.types[carries:])
        if body is not None:
            backward = node.attrs.get("reverse", False)
            first, step, end = (length - 1, -1, -1) if backward else (0, 1, length)
            counter = self._slot()
            self._emit(SET, counter, first)
            begin = self._here()
            slices = []
            for slot, ref in zip(stacked, node.inputs[consts + carries :], strict=True):
                slices.append(self._slice(slot, counter, nbytes(ex.body.type_of(ref)) // length))
            parts = [
                self._slice(value.slot, counter, nbytes(type) // length)
                for value, type in zip(made, node.types[carries:], strict=True)
            ]
            aims = {k: value.slot for k, value in spare.items()} | {carries + k: slot for k, slot in enumerate(parts)}
            results = self._program(body, [*given, *(value.slot for value in carried), *slices], aims)
            for part, result, type in zip(parts, results[carries:], node.types[carries:], strict=True):
                self._copy(part, result.slot, nbytes(type) // length)
                self._give(result)
            self._passed(carried, spare, results[:carries], types, staying)
            self._emit(COUNT, counter, step, end, begin)
        return [*self._left(carried, spare, targets[:carries], types, staying - unused), *made]

    def _slice(self, slot: int, counter: int, size: int) -> int:
        part = self._slot()
        self._emit(PLACE, part, slot, counter, size)
        return part

    def _case(self, ex: Lowered, node: Node, operands: Sequence[int], targets: Sequence[int | None]) -> list[Value]:
        made = self._aimed(targets, node.types)
        size, signed = _integer(ex.body.type_of(node.inputs[0]).dtype)
        count = len(node.regions)
        choice = self._emit(CHOOSE, operands[0], size, signed, count, *[0] * count)
        ends = []
        for number, region in enumerate(node.regions):
            self.script.code[choice + 5 + number] = self._here()
            results = self._program(
                self._lowered(region), operands[1:], {k: value.slot for k, value in enumerate(made)}
            )
            for value, result, type in zip(made, results, node.types, strict=True):
                self._copy(value.slot, result.slot, nbytes(type))
            for result in results:
                self._give(result)
            ends.append(self._emit(JUMP, 0))
        for place in ends:
            self.script.code[place + 1] = self._here()
        return made


def _staying(program: Program, first: int, count: int) -> set[int]:
    """Which carried values, the inputs from ``first`` on, a loop's body leaves as they are."""
    roots = _roots(program)
    return {k for k in range(count) if roots.get(program.outputs[k], program.outputs[k]) == program.inputs[first + k]}


def _integer(dtype: DType) -> tuple[int, int]:
    """The bytes of an integer or Boolean, and whether it has a sign."""
    if dtype.is_bool:
        return 1, 0
    if dtype.bits not in (8, 16, 32, 64):
        raise Refused(str(dtype))
    return dtype.bits // 8, int(dtype.is_signed)


def _roots(program: Program) -> dict[Ref, Ref]:
    """For every alias the value that it is in the end."""
    roots: dict[Ref, Ref] = {}
    for step in program.steps:
        if isinstance(step, Alias):
            roots[step.value] = roots.get(step.of, step.of)
    return roots


def _made(ex: Lowered) -> set[Ref]:
    """What the steps of a program compute in every run."""
    made: set[Ref] = set()
    for number, step in enumerate(ex.program.steps):
        if isinstance(step, Launch):
            if number not in ex.unchanging:
                made |= set(written(step))
        elif not isinstance(step, Alias):
            made |= {Ref(step.node, k) for k in range(len(ex.body.nodes[step.node].types))}
    return made


def _last_uses(body: Body, program: Program, roots: Mapping[Ref, Ref]) -> dict[int, list[Ref]]:
    """For each step the values that nothing after it needs, under any name."""
    last: dict[Ref, int] = {}
    for number, step in enumerate(program.steps):
        for ref in touched(body, step):
            last[roots.get(ref, ref)] = number
    for ref in program.outputs:
        last.pop(roots.get(ref, ref), None)
    uses: dict[int, list[Ref]] = {}
    for ref, number in last.items():
        uses.setdefault(number, []).append(ref)
    return uses
