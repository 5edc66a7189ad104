"""From a graph's body to a program of kernels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from heapq import heapify, heappop, heappush

from tlir.ir.graph import Body, Node, Ref
from tlir.ir.remember import remembered
from tlir.ir.tensor import Tensor
from tlir.ir.types import TensorType
from tlir.kernel.ir import Alias, Fallback, Launch, Program, Step
from tlir.passes.lower import (
    contraction,
    control,
    elementwise,
    factorizations,
    indexing,
    jacobi,
    reduction,
    reflectors,
    shape,
    sorting,
    transforms,
    windows,
)
from tlir.passes.lower.dead import without
from tlir.passes.lower.elementwise import element_reason
from tlir.passes.lower.emitter import Compute, Emit, Frame, Refused
from tlir.passes.lower.fusion import Fusion
from tlir.passes.lower.matrices import matrix_reason
from tlir.passes.lower.merge import merged
from tlir.passes.lower.parts import in_parts
from tlir.passes.lower.series import Plan, Series

_FAMILIES = (elementwise, shape, reduction, contraction, indexing, windows, control)

COMPUTES: dict[str, Compute] = {name: compute for family in _FAMILIES for name, compute in family.COMPUTES.items()}
"""Operations whose elements are computed on demand, inside the kernels that use them."""

EMITS: dict[str, Emit] = {**indexing.EMITS, **windows.EMITS, **factorizations.EMITS, **reflectors.EMITS, **jacobi.EMITS}
"""Operations that have a kernel of their own."""

PLANS: dict[str, Plan] = {**sorting.SERIES, **transforms.SERIES}
"""Operations that take several kernels of their own, one after the other."""

LOWERED: frozenset[str] = frozenset((*COMPUTES, *EMITS, *PLANS, *control.COUNTED, "input", "constant"))
"""The operations that kernels compute, or that need no work."""

REASONS: dict[str, str] = {}
"""Why an operation has no kernel in any dtype and is left to the reference; there is none now. Some nodes of other
operations have none either: ``reason`` says why."""


@remembered()
def lower(body: Body) -> Program:
    """The program that computes what the body computes, word for word. The last few bodies are remembered."""
    return _lower(body)


def reason(body: Body, node: Node) -> str | None:
    """Why the node has no kernel; None if it has one, or needs none."""
    if node.op in REASONS:
        return REASONS[node.op]
    if node.inputs and (why := element_reason(node.op, node.attrs, body.type_of(node.inputs[0]).dtype)):
        return why
    if node.inputs and (why := matrix_reason(node.op, body.type_of(node.inputs[0]).dtype)):
        return why
    if node.op == "bitcast_convert":
        return elementwise.bitcast_reason(Frame(body), node)
    if node.op == "case":
        return control.case_reason(body, node)
    if node.op in control.COUNTED:
        loop = control.recurrence(body, node)
        return loop if isinstance(loop, str) else None
    return None


def _lower(own: Body) -> Program:
    body, replaced = merged(own)
    fusion = Fusion(body, COMPUTES, EMITS, PLANS, lambda node: reason(body, node))
    steps: dict[Ref, list[Step]] = {}
    series: list[Series] = []
    done: set[Ref] = set()
    waiting = [_last_first(ref) for ref in fusion.stored]
    heapify(waiting)
    while waiting:
        node_id, result = heappop(waiting)
        ref = Ref(-node_id, -result)
        if ref in done:
            continue
        done.add(ref)
        node = body.nodes[ref.node]
        why = reason(body, node)
        before = set(fusion.stored)
        if why is not None:
            steps[ref] = [Fallback(node.id, why)]
            done |= {Ref(node.id, k) for k in range(len(node.types))}
        elif node.op in control.COUNTED:
            done |= {Ref(node.id, k) for k in range(len(node.types))}
            try:
                launched = fusion.loop_kernels(node)
                steps[ref] = [Launch(kernel, arguments) for kernel, arguments in launched]
            except Refused as refused:
                steps[ref] = [Fallback(node.id, refused.reason)]
                fusion.store(node.inputs)
        elif node.op in PLANS:
            done |= {Ref(node.id, k) for k in range(len(node.types))}
            try:
                kernels, made = fusion.series(node)
                steps[ref] = [Launch(kernel, arguments) for kernel, arguments in kernels]
                series.append(made)
            except Refused as refused:
                steps[ref] = [Fallback(node.id, refused.reason)]
                fusion.store(node.inputs)
        elif node.op == "reshape":
            operand = node.inputs[0]
            steps[ref] = [Alias(ref, operand)]
            fusion.store([operand])
        else:
            try:
                kernel, arguments = fusion.kernel(ref, fusion.stored - done)
                steps[ref] = [Launch(kernel, arguments)]
                done |= filled(steps[ref])
            except Refused as refused:
                steps[ref] = [Fallback(node.id, refused.reason)]
                done |= {Ref(node.id, k) for k in range(len(node.types))}
                fusion.store(node.inputs)
        for new in fusion.stored - before:
            heappush(waiting, _last_first(new))
    ordered = in_order(body, [step for ref in sorted(steps) for step in steps[ref]])
    kept = [
        replace(step, kernel=in_parts(step.kernel)) if isinstance(step, Launch) else step
        for step in needed(body, ordered)
    ]
    return _program(own, _renamed(own, kept, replaced), series)


def _last_first(ref: Ref) -> tuple[int, int]:
    return (-ref.node, -ref.result)


def _parts(body: Body, step: Step) -> tuple[set[Ref], set[Ref]]:
    """What a step reads and what it computes."""
    if isinstance(step, Alias):
        return {step.of}, {step.value}
    if isinstance(step, Fallback):
        node = body.nodes[step.node]
        return set(node.inputs), {Ref(node.id, k) for k in range(len(node.types))}
    pairs = list(zip(step.kernel.buffers, step.arguments, strict=False))
    outputs = {ref for buffer, ref in pairs if buffer.role == "output"}
    return {ref for buffer, ref in pairs if buffer.role == "input"}, outputs


def filled(steps: list[Step]) -> set[Ref]:
    """What launches compute."""
    launches = [step for step in steps if isinstance(step, Launch)]
    pairs = [pair for step in launches for pair in zip(step.kernel.buffers, step.arguments, strict=False)]
    return {ref for buffer, ref in pairs if buffer.role == "output"}


def in_order(body: Body, steps: list[Step]) -> list[Step]:
    """The steps so that each comes after those that compute what it reads; otherwise as they are."""
    parts = [_parts(body, step) for step in steps]
    maker = {ref: k for k, (_, computed) in enumerate(parts) for ref in computed}
    needs = [{maker[ref] for ref in reads if ref in maker} for reads, _ in parts]
    users: list[list[int]] = [[] for _ in steps]
    for k, before in enumerate(needs):
        for other in before:
            users[other].append(k)
    missing = [len(before) for before in needs]
    ready = [k for k, count in enumerate(missing) if not count]
    ordered = []
    while ready:
        k = heappop(ready)
        ordered.append(steps[k])
        for user in users[k]:
            missing[user] -= 1
            if not missing[user]:
                heappush(ready, user)
    assert len(ordered) == len(steps), "steps wait for each other"
    return ordered


def _renamed(body: Body, steps: list[Step], replaced: Mapping[Ref, Ref]) -> list[Step]:
    """The steps with another name for each value that was replaced and that the reference or an output asks for."""
    named: list[Step] = []
    known: set[Ref] = set()

    def name(refs: Iterable[Ref]) -> None:
        for ref in refs:
            # the words of a constant are there under its own name
            if ref in replaced and ref not in known and body.nodes[ref.node].op != "constant":
                known.add(ref)
                named.append(Alias(ref, replaced[ref]))

    for step in steps:
        if isinstance(step, Fallback):
            name(body.nodes[step.node].inputs)
        named.append(step)
    name(body.outputs)
    return named


def needed(body: Body, steps: list[Step]) -> list[Step]:
    """The steps without arrays that only the kernel that fills them would use, and without steps whose results nobody
    uses: nodes that are like earlier ones among them."""
    wanted = set(body.outputs)
    kept: list[Step] = []
    for step in reversed(steps):
        if isinstance(step, Launch):
            trimmed = without(step, wanted)
            if trimmed is None:
                continue
            step = trimmed
        reads, computed = _parts(body, step)
        if computed.isdisjoint(wanted):
            continue
        wanted |= reads
        kept.append(step)
    return kept[::-1]


def _program(body: Body, steps: list[Step], series: Iterable[Series]) -> Program:
    used: set[Ref] = set(body.outputs) | {Ref(i) for i in body.input_ids}
    for step in steps:
        match step:
            case Launch(arguments=arguments):
                used |= set(arguments)
            case Fallback(node=number):
                node = body.nodes[number]
                used |= set(node.inputs) | {Ref(number, k) for k in range(len(node.types))}
            case Alias(value=value, of=of):
                used |= {value, of}
    between = {ref: type for made in series for ref, type in made.types.items()}
    tables = {ref: name for made in series for ref, name in made.tables.items() if ref in used}
    types: dict[Ref, TensorType] = {ref: between.get(ref) or body.type_of(ref) for ref in sorted(used)}
    constants: dict[Ref, Tensor] = {
        ref: body.nodes[ref.node].attrs["value"] for ref in types if body.nodes[ref.node].op == "constant"
    }
    constants |= {ref: tensor for made in series for ref, tensor in made.constants().items() if ref in tables}
    return Program(types, constants, tuple(Ref(i) for i in body.input_ids), body.outputs, tuple(steps), tables)
