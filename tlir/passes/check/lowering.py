"""Whether kernels compute what the graph says: both are evaluated on expressions, and every output element must be the
same expression, the same operations in the same order.

At the graph's own shapes if that is little work, and otherwise at small shapes of the same structure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import prod

import numpy as np

from tlir.ir.graph import Body, Graph, Node, Ref
from tlir.ir.types import DType
from tlir.kernel.interpret import OutOfBounds, run_kernel
from tlir.kernel.ir import Alias, Fallback, Launch, Program
from tlir.kernel.verify import verify_program
from tlir.passes.check.expressions import SALTS, Expressions, Ids, SymbolicDomain
from tlir.passes.check.matrices import CHANGES
from tlir.passes.check.matrices import MEANINGS as FACTORIZATIONS
from tlir.passes.check.report import Check, Finding, counted
from tlir.passes.check.shrink import TRANSFORMS, prime_factors, shrunk
from tlir.passes.check.step import constant, leaves
from tlir.passes.check.symbolic import evaluate, whole
from tlir.passes.lower import lower
from tlir.passes.lower.control import trip_count

WORK = 200_000
"""Operations on elements that are evaluated one by one; a graph of more is evaluated at smaller shapes."""

_DATA_DECIDES = frozenset(
    {
        "gather",
        "scatter",
        "dynamic_slice",
        "dynamic_update_slice",
        "select_and_scatter",
        "sort",
        "top_k",
        "lu",
        "geqrf",
        "eigh",
        "svd",
        "case",
        "while",
    }
)


def check_lowering(graph: Graph, program: Program | None = None) -> Check:
    """The check ``lowering`` of a well-typed graph; ``program`` is its own if none is given.

    A finding has the rule ``TL0303`` (an element is another expression) or the rule of ``tlir.kernel.verify`` that a
    kernel breaks."""
    body = graph.body
    at = "at its own shapes"
    if program is None and work(body) > WORK and work(body, _left(lower(body))) > WORK:
        for transforms in TRANSFORMS:
            small = shrunk(body, transforms)
            if (least := work(small, _left(lower(small)))) <= WORK:
                break
        else:
            covered = f"no shapes of its structure are small enough to evaluate ({least} operations on elements)"
            return Check("lowering", "not applicable", covered)
        body, at = small, f"at small shapes of the same structure ({_shapes(small)})"
    program = program or lower(body)
    broken = verify_program(program, body)
    findings = [Finding("error", fault.rule, fault.message) for fault in broken.faults]
    notes = [Finding.note(fault.rule, fault.message) for fault in broken.undecided]
    if not findings:
        findings = differences(body, program)
    kernels = sum(isinstance(step, Launch) for step in program.steps)
    left = [body.nodes[step.node].op for step in program.steps if isinstance(step, Fallback)]
    elements = sum(type.size for type in body.output_types)
    covered = f"{counted(elements, 'output element')} of {counted(kernels, 'kernel')} {at}"
    if left:
        covered += f"; left to the reference: {', '.join(sorted(set(left)))}"
    return Check("lowering", "failed" if findings else "passed", covered, (*findings, *notes))


def differences(body: Body, program: Program) -> list[Finding]:
    """One finding for each output that is not the expression that the graph says."""
    salts = SALTS if any(node.op in _DATA_DECIDES for node in body.walk()) else SALTS[:1]
    for salt in salts:
        table = Expressions(salt)
        inputs = [leaves(table, f"input {k}", type) for k, type in enumerate(body.input_types)]
        expected = evaluate(table, body, inputs, _left(program))
        try:
            results = run_symbolic(table, program, body, inputs)
        except OutOfBounds as error:
            return [Finding("error", "KV08", f"a kernel uses {error}")]
        findings = []
        for k, (one, other) in enumerate(zip(expected, results, strict=True)):
            if not np.array_equal(one, other):
                findings.append(_difference(table, body, k, one, other))
        if findings:
            return findings
    return []


def _difference(table: Expressions, body: Body, output: int, expected: Ids, found: Ids) -> Finding:
    index = tuple(int(i) for i in np.argwhere(expected != found)[0])
    here, there = table.first_difference(int(expected[index]), int(found[index]))
    node = body.nodes[body.outputs[output].node]
    place = f"output {output}" + (f" at {list(index)}" if index else "")
    message = f"{place}: the kernels compute {table.text(there)} where the graph says {table.text(here)}"
    return Finding("error", "TL0303", message, str(node), node.id, node.source)


def run_symbolic(table: Expressions, program: Program, body: Body, inputs: Sequence[Ids]) -> list[Ids]:
    """The expressions of the program's outputs."""
    domain = SymbolicDomain(table)
    values: dict[Ref, Ids] = dict(zip(program.inputs, inputs, strict=True))
    for ref, tensor in program.constants.items():
        values[ref] = constant(table, tensor, None if ref in program.tables else ref.node)
    for step in program.steps:
        if isinstance(step, Fallback):
            node = body.nodes[step.node]
            results = whole(table, node, [values[ref] for ref in node.inputs])
            values |= {Ref(node.id, k): result for k, result in enumerate(results)}
        elif isinstance(step, Alias):
            values[step.value] = values[step.of].reshape(program.types[step.value].shape)
        else:
            buffers = [buffer for buffer in step.kernel.buffers if buffer.role != "local"]
            memory = {}
            for buffer, ref in zip(buffers, step.arguments, strict=True):
                if buffer.role == "output":
                    memory[buffer] = domain.blank(buffer.dtype, buffer.size)
                else:
                    memory[buffer] = in_memory(table, values[ref], program.types[ref].dtype)
            run_kernel(step.kernel, memory, domain)
            for buffer, ref in zip(buffers, step.arguments, strict=True):
                if buffer.role == "output":
                    elements = from_memory(table, memory[buffer], program.types[ref].dtype)
                    values[ref] = elements.reshape(program.types[ref].shape)
    return [values[ref] for ref in program.outputs]


def in_memory(table: Expressions, elements: Ids, dtype: DType) -> Ids:
    """The expressions of the words of an array, in their order."""
    flat = elements.reshape(-1)
    if not dtype.is_complex:
        return flat
    parts = [[table.apply(part, {}, dtype.component, (x,)) for part in ("real", "imag")] for x in flat.tolist()]
    return np.array(parts, np.int64).reshape(-1)


def from_memory(table: Expressions, words: Ids, dtype: DType) -> Ids:
    """The expressions of the elements whose words these are."""
    if not dtype.is_complex:
        return words
    pairs = words.reshape(-1, 2).tolist()
    return np.array([table.apply("complex", {}, dtype, pair) for pair in pairs], np.int64)


# ---- how much there is to evaluate ----------------------------------------------------------------------------------


def _left(program: Program) -> set[int]:
    """The nodes that are left to the reference, and taken as a whole."""
    return {step.node for step in program.steps if isinstance(step, Fallback)}


def work(body: Body, left: Collection[int] = ()) -> int:
    """About how many operations on elements a body takes, without those of nodes that are ``left`` to the reference."""
    return sum(_work(body, node) for node in body.nodes if node.id not in left)


def _work(body: Body, node: Node) -> int:
    if node.op in ("input", "constant"):
        return 0
    result = max((type.size for type in node.types), default=0)
    operands = [type.size for type in body.operand_types(node)]
    inside = sum(work(region) for region in node.regions)
    match node.op:
        case "dot_general":
            axes = node.attrs["lhs_contracting_dimensions"]
            return result * prod(body.type_of(node.inputs[0]).shape[axis] for axis in axes)
        case "convolution":
            kernel = body.type_of(node.inputs[1])
            return result * kernel.size // max(kernel.shape[node.attrs["rhs_dimensions"][0]], 1)
        case "reduce_window":
            return result * prod(node.attrs["window_dimensions"])
        case "fft":
            return 4 * max(result, *operands) * sum(map(sum, map(prime_factors, node.attrs["fft_length"])))
        case "sort":
            return sum(operands) * max(operands[0], 1).bit_length()
        case "top_k":
            return operands[0] * (1 + 8 * node.attrs["k"])
        case "select_and_scatter":
            return max(operands) + operands[1] * prod(node.attrs["window_dimensions"])
        case "scan":
            return node.attrs["length"] * inside
        case "while":
            # one whose steps data decides is left to the reference, and taken as a whole
            return (trip_count(body, node) or 1) * inside
    most = max([result, inside, *operands])
    if node.op in FACTORIZATIONS:
        # each element is changed in as many steps as there are rows or columns
        steps = max(1, *(type.shape[-1] for type in body.operand_types(node))) * CHANGES.get(node.op, 1)
        return most * steps * (4 if body.type_of(node.inputs[0]).dtype.is_complex else 1)
    return most


def _shapes(body: Body) -> str:
    names = (f"{name} {type}" for name, type in zip(body.input_names(), body.input_types, strict=True))
    return ", ".join(_first(names, 4))


def _first(items: Iterable[str], count: int) -> list[str]:
    listed = list(items)
    return listed[:count] + (["…"] if len(listed) > count else [])
