"""Kernels and programs as text, and back. ``docs/kernels.md`` describes the form.

kernel @k2_reduce(n0: input float32[12], n2: output float32[3]) space(i0 < 3) nodes(1, 2) {
  v0: float32 = literal 0x0
  v1: float32 = loop i1 < 4 carry(v2: float32 = v0) {
    v3: float32 = load n0[4*i0 + i1]
    v4: float32 = add(v2, v3)
    yield v4
  }
  store n2[i0] = v1
}
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tlir.kernel.index import Atom, Index, Quotient, Remainder, Variable
from tlir.kernel.ir import (
    Alias,
    Apply,
    Block,
    Bound,
    Branch,
    Each,
    Fallback,
    Kernel,
    Literal,
    Load,
    Loop,
    Position,
    Program,
    Span,
    Statement,
    Store,
    Value,
)


def index_text(index: Index) -> str:
    """``4*i0 + (i1 floordiv 2) - 3``; terms in the order that they have."""
    parts: list[str] = []
    for coefficient, atom in index.terms:
        size = abs(coefficient)
        term = _atom(atom) if size == 1 else f"{size}*{_atom(atom)}"
        parts.append(_signed(term, coefficient < 0, not parts))
    if index.constant or not parts:
        parts.append(_signed(str(abs(index.constant)), index.constant < 0, not parts))
    return "".join(parts)


def _signed(term: str, negative: bool, first: bool) -> str:
    if first:
        return f"-{term}" if negative else term
    return f" - {term}" if negative else f" + {term}"


def _atom(atom: Atom) -> str:
    match atom:
        case Variable():
            return f"i{atom.number}"
        case Quotient(dividend, divisor):
            return f"({index_text(dividend)} floordiv {divisor})"
        case Remainder(dividend, divisor):
            return f"({index_text(dividend)} mod {divisor})"
    return f"[{atom.value}: {atom.least} to {atom.greatest}]"


def kernel_text(kernel: Kernel) -> str:
    """The kernel, a line per statement, ending in a newline."""
    buffers = ", ".join(f"{b.name}: {b.role} {b.dtype.name}[{b.size}]" for b in kernel.buffers)
    nodes = f" nodes({', '.join(map(str, kernel.nodes))})" if kernel.nodes else ""
    head = f"kernel @{kernel.name}({buffers}) space({_variables(kernel.space)}){nodes} {{"
    return "\n".join([head, *_block(kernel.body, "  "), "}", ""])


def _variables(variables: tuple[Variable, ...]) -> str:
    return ", ".join(f"i{v.number} < {v.extent}" for v in variables)


def _block(block: Block, indent: str) -> Iterator[str]:
    for statement in block.statements:
        yield from _statement(statement, indent)
    if block.results:
        yield f"{indent}yield {', '.join(map(str, block.results))}"


def _typed(values: tuple[Value, ...]) -> str:
    return ", ".join(f"{value}: {value.dtype.name}" for value in values)


def _statement(statement: Statement, indent: str) -> Iterator[str]:
    inner = indent + "  "
    match statement:
        case Literal(result, word):
            written = ", ".join(f"{part:#x}" for part in word) if isinstance(word, tuple) else f"{word:#x}"
            yield f"{indent}{_typed((result,))} = literal {written}"
        case Position(result, index):
            yield f"{indent}{_typed((result,))} = position {index_text(index)}"
        case Load(result, buffer, offset, guard, otherwise):
            ending = f" where {_bounds(guard)}" if guard else ""
            ending += f" else {otherwise}" if otherwise is not None else ""
            yield f"{indent}{_typed((result,))} = load {buffer.name}[{index_text(offset)}]{ending}"
        case Apply(result, op, operands, attrs):
            yield f"{indent}{_typed((result,))} = {op}({', '.join(map(str, operands))}){_attributes(attrs)}"
        case Branch(results, condition, then, otherwise):
            given = f"{_typed(results)} = " if results else ""
            yield f"{indent}{given}if {condition} {{"
            yield from _block(then, inner)
            yield f"{indent}}} else {{"
            yield from _block(otherwise, inner)
            yield f"{indent}}}"
        case Loop(results, variable, start, parameters, body):
            pairs = zip(parameters, start, strict=True)
            carried = ", ".join(f"{_typed((parameter,))} = {value}" for parameter, value in pairs)
            given = f"{_typed(results)} = " if results else ""
            yield f"{indent}{given}loop {_variables((variable,))}{_span(statement.span)} carry({carried}) {{"
            yield from _block(body, inner)
            yield f"{indent}}}"
        case Each(variables, body):
            yield f"{indent}each {_variables(variables)}{_span(statement.span)} {{"
            yield from _block(body, inner)
            yield f"{indent}}}"
        case Store(buffer, offset, value):
            yield f"{indent}store {buffer.name}[{index_text(offset)}] = {value}"


def _span(span: Span | None) -> str:
    return "" if span is None else f" from {index_text(span.first)} to {index_text(span.end)}"


def _bounds(bounds: tuple[Bound, ...]) -> str:
    return ", ".join(f"{bound.low} <= {index_text(bound.index)} < {bound.high}" for bound in bounds)


def _attributes(attrs: Mapping[str, Any]) -> str:
    if not attrs:
        return ""
    return " {" + ", ".join(f"{name} = {json.dumps(value)}" for name, value in attrs.items()) + "}"


def program_text(program: Program) -> str:
    """The values with their types, the steps, and then the kernels. The words of constants are not written: they are
    the artifact's, or those of a table whose function is named."""
    lines = ["program {"]
    for ref, type in program.types.items():
        role = "input " if ref in program.inputs else "constant " if ref in program.constants else ""
        lines.append(f"  {role}{ref}: {type}" + (f" = {program.tables[ref]}" if ref in program.tables else ""))
    kernels = []
    for step in program.steps:
        if isinstance(step, Fallback):
            lines.append(f"  fallback {step.node} {json.dumps(step.reason)}")
        elif isinstance(step, Alias):
            lines.append(f"  alias {step.value} = {step.of}")
        else:
            lines.append(f"  launch @{step.kernel.name}({', '.join(map(str, step.arguments))})")
            if step.kernel not in kernels:
                kernels.append(step.kernel)
    lines += [f"  inputs({', '.join(map(str, program.inputs))})", f"  outputs({', '.join(map(str, program.outputs))})"]
    lines += ["}", ""]
    return "\n".join(lines) + "".join("\n" + kernel_text(kernel) for kernel in kernels)
