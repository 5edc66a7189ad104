"""Which launches of a program give the same words in every run, so that they need to run only once."""

from __future__ import annotations

from tlir.ir.graph import Ref
from tlir.kernel.ir import Alias, Launch, Program

KEPT_BYTES = 1 << 26
"""Results of so many bytes are kept from one run of a program to the next."""


def unchanging(program: Program) -> frozenset[int]:
    """The numbers of the launches that read nothing, or constants and what such launches compute.

    Without those whose arrays a run hands out, and without what would take more than ``KEPT_BYTES`` in all."""
    known: set[Ref] = set(program.constants)
    given_out = _given_out(program)
    found: set[int] = set()
    room = KEPT_BYTES
    for number, step in enumerate(program.steps):
        if isinstance(step, Alias) and step.of in known:
            known.add(step.value)
        elif isinstance(step, Launch):
            pairs = list(zip(step.kernel.buffers, step.arguments, strict=False))
            made = {ref for buffer, ref in pairs if buffer.role == "output"}
            size = sum(program.types[ref].nbytes for ref in made)
            if known >= {ref for _, ref in pairs} - made and not made & given_out and size <= room:
                found.add(number)
                known |= made
                room -= size
    return frozenset(found)


def _given_out(program: Program) -> set[Ref]:
    """The outputs, and what they are other names of."""
    given_out = set(program.outputs)
    for step in reversed(program.steps):
        if isinstance(step, Alias) and step.value in given_out:
            given_out.add(step.of)
    return given_out
