"""Control flow: regions that are evaluated as data decides, each with a scope of its own."""

from __future__ import annotations

from tlir.ir.ops.attributes import Boolean, Integer
from tlir.ir.ops.base import Attribute, Call, Operation, Violation, require_kind
from tlir.ir.types import BOOL, TensorType

_ANY = "any type"


def _expect(rule: str, what: str, given: tuple[TensorType, ...], expected: tuple[TensorType, ...]) -> None:
    if given != expected:
        have, want = (", ".join(map(str, types)) or "nothing" for types in (given, expected))
        raise Violation(rule, f"{what} {have}, where {want} is needed")


def _while(call: Call) -> tuple[TensorType, ...]:
    cond, body = call.regions
    _expect("C1", "the condition takes", cond.inputs, call.operands)
    _expect("C2", "the condition gives", cond.outputs, (TensorType((), BOOL),))
    _expect("C3", "the body takes", body.inputs, call.operands)
    _expect("C3", "the body gives", body.outputs, call.operands)
    return call.operands


def _case(call: Call) -> tuple[TensorType, ...]:
    index, operands = call.operands[0], call.operands[1:]
    if index.rank:
        raise Violation("C1", f"the index is {index}, not a scalar")
    require_kind("C1", index.dtype, ("bool", "int", "uint"), "the index")
    if not call.regions:
        raise Violation("C2", "there is no branch")
    for k, branch in enumerate(call.regions):
        _expect("C3", f"branch {k} takes", branch.inputs, operands)
        _expect("C4", f"branch {k} gives", branch.outputs, call.regions[0].outputs)
    return call.regions[0].outputs


def _scan(call: Call) -> tuple[TensorType, ...]:
    (body,) = call.regions
    consts, carries, length = call.attrs["num_consts"], call.attrs["num_carry"], call.attrs["length"]
    if consts + carries > len(call.operands) or carries > len(body.outputs):
        raise Violation("C1", f"{consts} constants and {carries} carried values of {len(call.operands)} operands")
    stacked = call.operands[consts + carries :]
    for k, operand in enumerate(stacked):
        if not operand.rank or operand.shape[0] != length:
            raise Violation(
                "C2", f"operand {consts + carries + k} is {operand}, not {length} slices along its first axis"
            )
    slices = tuple(TensorType(operand.shape[1:], operand.dtype) for operand in stacked)
    kept = call.operands[: consts + carries]
    _expect("C3", "the body takes", body.inputs, kept + slices)
    _expect("C4", "the body carries on", body.outputs[:carries], call.operands[consts : consts + carries])
    results = tuple(TensorType((length, *type.shape), type.dtype) for type in body.outputs[carries:])
    return body.outputs[:carries] + results


OPERATIONS = (
    Operation(
        "while",
        "control",
        ("operands...",),
        "The operands are the loop's values. As long as the first region gives true for them, they are replaced by "
        "what the second region gives; the result is the values at the end, the operands where the condition is false "
        "at once.",
        _ANY,
        _while,
        {
            "C1": "The condition takes the operands' types.",
            "C2": "The condition gives one bool scalar.",
            "C3": "The body takes and gives the operands' types.",
        },
        {},
        0,
        None,
        2,
    ),
    Operation(
        "case",
        "control",
        ("index", "operands..."),
        "The results of one region, its operands given: the region of that number, false and true being 0 and 1; an "
        "index below 0 or beyond the last region takes the last one, as StableHLO has it. The other regions are not "
        "evaluated.",
        _ANY,
        _case,
        {
            "C1": "The index is a bool or integer scalar.",
            "C2": "There is at least one region.",
            "C3": "Every region takes the types of the operands behind the index.",
            "C4": "All regions give the same types.",
        },
        {},
        1,
        None,
        None,
    ),
    Operation(
        "scan",
        "control",
        ("operands...",),
        "A loop of a fixed number of steps. Operands: num_consts values given to every step, num_carry values that "
        "each step replaces, and tensors of which step i gets slice i of the first axis (from the last to the first "
        "with `reverse`). Results: the carried values after the last step, then the other results of each step "
        "stacked along a new first axis at the step's own slice.",
        _ANY,
        _scan,
        {
            "C1": "num_consts and num_carry count operands, num_carry results of the body.",
            "C2": "Every other operand has length slices along its first axis.",
            "C3": "The body takes the constants, the carried values and one slice of every other operand.",
            "C4": "The body gives the carried values first, their types unchanged.",
        },
        {
            "length": Attribute(Integer(), "The number of steps."),
            "num_consts": Attribute(Integer(), "How many operands every step gets unchanged."),
            "num_carry": Attribute(Integer(), "How many values are carried from step to step."),
            "reverse": Attribute(Boolean(), "Whether the last slice comes first.", False, False),
        },
        0,
        None,
        1,
    ),
)
