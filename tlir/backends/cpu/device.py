"""Bodies run by compiled kernels; what has no kernel here is evaluated by the reference, with the same words."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.backends.automatic import operations
from tlir.backends.cpu.arena import empty
from tlir.backends.cpu.compiled import Compiled, CompiledStages, Plan, address, compile_kernel, effort
from tlir.backends.cpu.phases import phases, pieces_of
from tlir.backends.cpu.scratch import scratch_bytes
from tlir.backends.cpu.script import Script, touched, written
from tlir.backends.cpu.settle import passed_on
from tlir.backends.cpu.steps import Layout, Steps
from tlir.backends.cpu.threads import INTERRUPTIBLE_FROM, Phase, Schedule, scratch_address, share, threads
from tlir.backends.cpu.writer import Refused, Writer
from tlir.backends.interpreter import run_launch
from tlir.backends.reference import evaluate as by_reference
from tlir.backends.reference import evaluate_node
from tlir.backends.reference.control import REGION_EVALUATORS
from tlir.backends.unchanging import unchanging
from tlir.errors import UnsupportedError
from tlir.floatlib.soft import objects
from tlir.ir.graph import Body, Node, Ref
from tlir.ir.remember import remembered
from tlir.ir.tensor import Tensor, words_shape
from tlir.ir.types import TensorType
from tlir.kernel.ir import Alias, Fallback, Kernel, Launch, Program
from tlir.passes.lower import lower

SPLIT_FROM = 1 << 15
"""Scalar operations that a launch must do before a second thread pays: about 50 microseconds' worth."""

SPLIT_INSIDE_FROM = 1 << 18
"""Scalar operations that a launch inside a loop or branch must do for that: the loop then is no script."""

PIECES = 4
"""Parts of a launch for each thread, at least: who comes late takes fewer of them."""

REGION_COMPILED_FROM = 1 << 12
"""Scalar operations from which the body of a loop that has no kernel is compiled."""


@dataclass
class Statistics:
    """What one run did. ``reference`` has the nodes that the reference evaluated, with the reason; ``cache_hits`` and
    ``compiled`` count the kernels' modules, whenever that was."""

    kernels: int = 0
    fused: int = 0
    bytes_moved: int = 0
    reference: list[tuple[int, str]] = field(default_factory=list)
    lower_seconds: float = 0.0
    compile_seconds: float = 0.0
    transfer_seconds: float = 0.0
    cache_hits: int = 0
    compiled: int = 0

    def count(self, script: Script) -> None:
        """Adds the launches of a script."""
        self.kernels += script.kernels
        self.fused += script.fused
        self.bytes_moved += script.bytes_moved


@dataclass
class Call:
    """A launch that is compiled: its function, what it reads and writes, and how much work it is."""

    compiled: Any
    arguments: tuple[tuple[Ref, tuple[tuple[int, ...], np.dtype[Any], TensorType] | None], ...]
    """Each value, and for one that is written the shape and NumPy type of its words and its type."""
    work: int
    bytes: int


class Executable:
    """A body lowered for this processor; kernels are compiled when they are first run."""

    def __init__(self, body: Body) -> None:
        self.body = body
        start = time.perf_counter()
        self.program: Program = lower(body)
        self.statistics = Statistics(lower_seconds=time.perf_counter() - start)
        self._calls: dict[int, Call | str] = {}
        self._last = _last_uses(self.program, body)
        self.unchanging = unchanging(self.program)
        self._kept: dict[int, dict[Ref, Any]] = {}
        """What the launches that are the same in every run have computed, by their steps."""
        self._loops: dict[int, Steps | None] = {}
        """Loops and branches by themselves, ready to run in the first run."""
        self._ready: Callable[[Sequence[Tensor]], list[Tensor]] | None = None

    def call(self, number: int, launch: Launch) -> Call | str:
        """The compiled launch at a step, or why it is not compiled."""
        known = self._calls.get(number)
        if known is None:
            start, before = time.perf_counter(), dict(objects.counts)
            known = self._calls[number] = self._compile(launch)
            self.statistics.compile_seconds += time.perf_counter() - start
            self.statistics.cache_hits += objects.counts["hits"] - before["hits"]
            self.statistics.compiled += objects.counts["compiled"] - before["compiled"]
        return known

    def compile(self, kernel: Kernel) -> Any:
        """Code for a kernel, or why there is none."""
        return compile_kernel(kernel)

    def execute(self, call: Call, arrays: Sequence[NDArray[Any]]) -> None:
        """Runs the code of a launch on contiguous arrays of words."""
        execute(call.compiled, arrays, call.work)

    def _compile(self, launch: Launch) -> Call | str:
        compiled = self.compile(launch.kernel)
        if isinstance(compiled, str):
            return compiled
        outputs = set(written(launch))
        arguments = []
        for ref in launch.arguments:
            type = self.program.types[ref]
            new = (words_shape(type), type.dtype.word_dtype, type) if ref in outputs else None
            arguments.append((ref, new))
        moved = sum(self.program.types[ref].nbytes for ref in launch.arguments)
        return Call(compiled, tuple(arguments), effort(compiled, launch.kernel), moved)

    def peak_memory(self) -> tuple[int, Node | None]:
        """Bytes of the values that are there at once, at most, with what a kernel takes beside them, and a node at
        which they are."""
        program, peak, worst, count = self.program, 0, None, threads()
        held = {ref: type.nbytes for ref, type in program.types.items() if ref in program.inputs}
        held |= {ref: program.types[ref].nbytes for ref in program.constants}
        total = sum(held.values())
        for number, step in enumerate(program.steps):
            beside = 0
            if isinstance(step, Launch):
                made, node = written(step), step.kernel.nodes[-1] if step.kernel.nodes else None
                beside = scratch_bytes(step.kernel, count)
            elif isinstance(step, Fallback):
                made, node = [Ref(step.node, k) for k in range(len(self.body.nodes[step.node].types))], step.node
            else:
                made, node = [], None
            for ref in made:
                total -= held.get(ref, 0)
                held[ref] = program.types[ref].nbytes
                total += held[ref]
            if node is not None and total + beside > peak:
                peak, worst = total + beside, self.body.nodes[node]
            for ref in self._last[number]:
                total -= held.pop(ref, 0)
        return peak, worst

    def steps(self, layout: Layout, new: bool = False) -> Steps | None:
        """The program ready to run (``new``: see ``Steps``); None where a kernel is not compiled."""
        try:
            script = Writer(executable, SPLIT_FROM, SPLIT_INSIDE_FROM).write(self)
        except Refused:
            return None
        return Steps(self.program, script, layout, execute_at, _evaluated, new)

    def run(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """The outputs for inputs in the order of ``input_ids``."""
        if self._ready is not None:
            return self._ready(inputs)
        results = self._first_run(inputs)
        self._ready = self._made_ready()
        return results

    def _made_ready(self) -> Callable[[Sequence[Tensor]], list[Tensor]]:
        """What runs the program from its second run on."""
        steps = self.steps(_words_layout)
        if steps is None:
            return self._first_run
        evaluated = {node.id for node in steps.evaluated}
        left = [step for step in self.program.steps if isinstance(step, Fallback) and step.node in evaluated]
        statistics = replace(self.statistics, kernels=0, fused=0, bytes_moved=0)
        statistics.reference = [(step.node, step.reason) for step in left]
        statistics.count(steps.script)
        types = [self.program.types[ref] for ref in self.program.outputs]

        def ready(inputs: Sequence[Tensor]) -> list[Tensor]:
            arrays = []
            for tensor in inputs:
                words = tensor.words
                arrays.append(words if words.flags.c_contiguous else np.ascontiguousarray(words))
            self.statistics = statistics
            return list(map(made_of, types, steps.run(arrays)))

        return ready

    def _first_run(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        values: dict[Ref, Tensor] = dict(zip(self.program.inputs, inputs, strict=True))
        values.update(self.program.constants)
        statistics = Statistics()
        for number, step in enumerate(self.program.steps):
            if number in self._kept:
                values |= self._kept[number]
            elif isinstance(step, Launch):
                self._launch(number, step, values, statistics)
                self.keep(number, step, values)
            elif isinstance(step, Fallback):
                node = self.body.nodes[step.node]
                results = self._fallback(node, step.reason, tuple(values[ref] for ref in node.inputs), statistics)
                values |= {Ref(step.node, k): tensor for k, tensor in enumerate(results)}
            else:
                values[step.value] = self._renamed(step, values)
            for ref in self._last[number]:
                values.pop(ref, None)
        for once in ("lower_seconds", "compile_seconds", "cache_hits", "compiled"):
            setattr(statistics, once, getattr(self.statistics, once))
        self.statistics = statistics
        return [values[ref] for ref in self.program.outputs]

    def _fallback(
        self, node: Node, reason: str, operands: tuple[Tensor, ...], statistics: Statistics
    ) -> Sequence[Tensor]:
        """The results of a node that has no kernel: of a loop or branch that is work enough by commands, of others by
        the reference."""
        if node.op == "while":
            operands, ended = _begun(node, operands)
            if ended:
                statistics.reference.append((node.id, reason))
                return operands
        steps = self._region_steps(node)
        if steps is None:
            statistics.reference.append((node.id, reason))
            return _evaluated(node, operands)
        statistics.count(steps.script)
        words = [np.ascontiguousarray(tensor.words).reshape(words_shape(tensor.type)) for tensor in operands]
        return list(map(made_of, node.types, steps.run(words)))

    def _region_steps(self, node: Node) -> Steps | None:
        """A loop or branch by itself, ready to run; None where it is little work, or not all of it commands."""
        if node.op not in REGION_EVALUATORS:
            return None
        alone = _alone(self.body, node)
        if node.op != "while" and operations(alone) < REGION_COMPILED_FROM:
            return None
        if node.id not in self._loops:
            self._loops[node.id] = Executable(alone).steps(_words_layout)
        steps = self._loops[node.id]
        return None if steps is None or steps.evaluated else steps

    def keep(self, number: int, launch: Launch, values: dict[Ref, Any]) -> None:
        """Keep what a launch has computed if it is the same in every run."""
        if number in self.unchanging:
            self._kept[number] = {ref: values[ref] for ref in written(launch)}

    def kept(self) -> dict[Ref, Tensor]:
        """The results of all launches that are the same in every run."""
        values = dict(self.program.constants)
        for number, step in enumerate(self.program.steps):
            if isinstance(step, Launch) and number in self.unchanging:
                if number not in self._kept:
                    self._launch(number, step, values, Statistics())
                    self.keep(number, step, values)
                values |= self._kept[number]
            elif isinstance(step, Alias) and step.of in values:
                values[step.value] = self._renamed(step, values)
        return {ref: tensor for number in self._kept for ref, tensor in self._kept[number].items()}

    def _renamed(self, alias: Alias, values: dict[Ref, Tensor]) -> Tensor:
        type = self.program.types[alias.value]
        return Tensor(type, np.ascontiguousarray(values[alias.of].words).reshape(words_shape(type)))

    def _launch(self, number: int, launch: Launch, values: dict[Ref, Tensor], statistics: Statistics) -> None:
        call = self._calls.get(number) or self.call(number, launch)
        if isinstance(call, str):
            # the nodes themselves may read values that the kernel does not, and that are gone
            values.update(run_launch(launch, self.program.types, values))
            statistics.reference += [(node, call) for node in launch.kernel.nodes]
            return
        arrays: list[NDArray[Any]] = []
        for ref, new in call.arguments:
            if new is None:
                words = values[ref].words
                arrays.append(words if words.flags.c_contiguous else np.ascontiguousarray(words))
            else:
                words = empty(new[0], new[1])
                values[ref] = Tensor(new[2], words)
                arrays.append(words)
        statistics.kernels += 1
        statistics.fused += len(launch.kernel.nodes)
        statistics.bytes_moved += call.bytes
        self.execute(call, arrays)


def made_of(type: TensorType, words: NDArray[Any]) -> Tensor:
    """A tensor of words that were made for its type, without looking at them again."""
    tensor = object.__new__(Tensor)
    tensor.__dict__.update(type=type, words=words)
    return tensor


def _words_layout(type: TensorType) -> tuple[tuple[int, ...], np.dtype[Any]]:
    return words_shape(type), type.dtype.word_dtype


def execute(compiled: Compiled | CompiledStages, arrays: Sequence[NDArray[Any]], work: int) -> None:
    """Runs a kernel on contiguous arrays, on several threads where the work is worth it."""
    execute_at(compiled, [address(array) for array in arrays], work, arrays)


def execute_at(compiled: Compiled | CompiledStages, addresses: list[int], work: int, held: object) -> None:
    """Runs a kernel on the arrays at these addresses, which ``held`` keeps."""
    if isinstance(compiled, CompiledStages):
        temporaries = [source.new() for source in compiled.sources]
        places = [*addresses, *(start for _, start in temporaries)]
        for stage, numbers, part in compiled.stages:
            execute_at(stage, [places[number] for number in numbers], part, (held, temporaries))
        return
    plan = compiled.plan
    if plan.empty:
        return
    count = threads() if work >= SPLIT_FROM else 1
    if count == 1 and work < INTERRUPTIBLE_FROM:
        compiled.call(0, plan.outer, 0, plan.lanes, scratch_address(plan.scratch), *addresses)
        passed_on()
        return
    schedule = compiled.schedules.get(count)
    if schedule is None:
        schedule = compiled.schedules[count] = _schedule(plan, count, work)
    if plan.shape is None or not schedule.in_phases:
        share(*compiled.part, schedule, addresses, plan.scratch, 0, work, count, held)
    else:
        assert compiled.phase is not None
        share(*compiled.phase, schedule, addresses, plan.shape.own, plan.shape.shared, work, count, held)


def _schedule(plan: Plan, count: int, work: int) -> Schedule:
    """Parts of the space for threads: of its outer iterations, or of the blocks of lanes; or the phases of a sum of
    products, where it has not enough batches for threads to take some each."""
    pieces = max(PIECES * count if count > 1 else 1, -(-work // INTERRUPTIBLE_FROM))
    if plan.shape is not None and plan.outer < PIECES * count:
        return Schedule(list(phases(plan.shape, pieces)), True)
    if plan.outer >= pieces:
        return Schedule([[(first, end, 0, plan.lanes) for first, end in pieces_of(0, plan.outer, pieces)]], False)
    each = -(-pieces // max(plan.outer, 1))
    lanes = pieces_of(0, plan.lanes, each, plan.block)
    parts: Phase = [(outer, outer + 1, first, end) for outer in range(plan.outer) for first, end in lanes]
    return Schedule([parts], False)


def _last_uses(program: Program, body: Body) -> list[list[Ref]]:
    """For each step the values that nothing after it needs."""
    kept = set(program.outputs) | set(program.constants)
    last: dict[Ref, int] = {}
    for number, step in enumerate(program.steps):
        for ref in touched(body, step):
            last[ref] = number
    uses: list[list[Ref]] = [[] for _ in program.steps]
    for ref, number in last.items():
        if ref not in kept:
            uses[number].append(ref)
    return uses


def _evaluated(node: Node, operands: tuple[Tensor, ...]) -> Sequence[Tensor]:
    """The results of a node that has no kernel: by the reference, but what is inside its regions as here."""
    if node.op in REGION_EVALUATORS:
        return REGION_EVALUATORS[node.op](node, operands, _region)
    return evaluate_node(node, operands)


def _region(body: Body, inputs: Sequence[Tensor]) -> list[Tensor]:
    if operations(body) < REGION_COMPILED_FROM:
        return by_reference(body, inputs)
    return executable(body).run(inputs)


def _begun(node: Node, operands: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], bool]:
    """Takes the steps of a loop of unknown length by the reference until they are work enough to be compiled: the
    carried values, and whether the loop has ended."""
    condition, body = node.regions
    each, spent = operations(condition) + operations(body), 0
    while spent + each < REGION_COMPILED_FROM:
        if not by_reference(condition, operands)[0].words:
            return operands, True
        operands = tuple(by_reference(body, operands))
        spent += max(each, 1)
    return operands, False


def _alone(body: Body, node: Node) -> Body:
    """A body of nothing but one of its nodes, whose operands are inputs."""
    types = [body.type_of(ref) for ref in node.inputs]
    inputs = [Node(k, "input", (), {}, (type,)) for k, type in enumerate(types)]
    own = replace(node, id=len(inputs), inputs=tuple(Ref(k) for k in range(len(inputs))))
    outputs = tuple(Ref(own.id, k) for k in range(len(own.types)))
    return Body((*inputs, own), tuple(range(len(inputs))), outputs)


@remembered()
def executable(body: Body) -> Executable:
    """The executable of a body; the last few are remembered."""
    return Executable(body)


def evaluate(
    body: Body, inputs: Sequence[Tensor], *, observe: Callable[..., None] | None = None, flags: Any = None
) -> list[Tensor]:
    """The outputs of a body by compiled code. UnsupportedError TL0802 for values of nodes and flags, which kernels do
    not have: they are the reference's."""
    require_plain("cpu", observe, flags)
    return executable(body).run(inputs)


def require_plain(device: str, observe: Callable[..., None] | None, flags: Any) -> None:
    """UnsupportedError TL0802 for what only the reference gives."""
    if observe is not None or flags is not None:
        what = "IEEE 754 flags" if flags is not None else "the values of nodes"
        raise UnsupportedError("TL0802", f"the device {device} does not give {what}", hint="use the device reference")
