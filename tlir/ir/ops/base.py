"""What an operation is: one declarative record, from which the checker, the schema and the documentation derive.

An operation's ``constraints`` are numbered (C1, C2, …). Its type rule raises ``Violation`` with the number of the
constraint that does not hold; the same numbers stand in ``docs/ops.md`` and in the negative tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tlir.ir.ops.attributes import AttributeKind
from tlir.ir.types import DType, TensorType


class Violation(Exception):
    """Constraint ``rule`` of an operation does not hold; ``hint`` says what to do."""

    def __init__(self, rule: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.rule = rule
        self.message = message
        self.hint = hint


class Signature(NamedTuple):
    """The types that a region takes and gives."""

    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]


@dataclass(frozen=True)
class Call:
    """What a type rule sees: operand types, decoded attributes, and the declared result types.

    A rule takes from the declared types only what the operation leaves open (the dtype of ``convert``, the shape of
    ``reshape``); everything else it computes, and the checker compares. ``regions`` are the types of each region's
    inputs and outputs.
    """

    operands: tuple[TensorType, ...]
    attrs: Mapping[str, Any]
    declared: tuple[TensorType, ...]
    regions: tuple[Signature, ...] = ()

    @property
    def result(self) -> TensorType:
        return self.declared[0]


TypeRule = Callable[[Call], tuple[TensorType, ...]]


@dataclass(frozen=True)
class Attribute:
    """An attribute: its kind, whether it must be given, its default otherwise, and one sentence."""

    kind: AttributeKind
    doc: str
    required: bool = True
    default: Any = None


@dataclass(frozen=True)
class Operation:
    """An operation's declaration.

    ``operands`` are names; the last one may end in ``...`` and then stands for any number from ``minimum``.
    ``meaning`` states the result for every input. ``dtypes`` says in words which element types it takes. ``results``
    and ``regions`` are None where their number depends on the node.
    """

    name: str
    family: str
    operands: tuple[str, ...]
    meaning: str
    dtypes: str
    rule: TypeRule
    constraints: Mapping[str, str]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    minimum: int = 0
    results: int | None = 1
    regions: int | None = 0

    @property
    def variadic(self) -> bool:
        return bool(self.operands) and self.operands[-1].endswith("...")

    def arity(self, count: int) -> bool:
        """Whether ``count`` operands are right."""
        return count >= self.minimum if self.variadic else count == len(self.operands)

    def attr(self, attrs: Mapping[str, Any], name: str) -> Any:
        """The attribute's value, or its default where the node does not give it."""
        return attrs.get(name, self.attributes[name].default)


# ---- parts that many rules share ------------------------------------------------------------------------------------


def same_shapes(rule: str, call: Call) -> tuple[int, ...]:
    """The common shape of all operands."""
    shape = call.operands[0].shape
    for k, operand in enumerate(call.operands[1:], 1):
        if operand.shape != shape:
            raise Violation(
                rule,
                f"operand {k} has shape {list(operand.shape)}, operand 0 has {list(shape)}",
                "insert broadcast_in_dim: broadcasting is always explicit",
            )
    return shape


def same_dtypes(rule: str, operands: Sequence[TensorType], first: int = 0) -> DType:
    """The common dtype of ``operands``; ``first`` is the position of the first of them in the node."""
    dtype = operands[0].dtype
    for k, operand in enumerate(operands[1:], 1):
        if operand.dtype != dtype:
            raise Violation(
                rule,
                f"operand {first + k} is {operand.dtype.name}, operand {first} is {dtype.name}",
                f"insert convert to {dtype.name} on operand {first + k}, or to {operand.dtype.name} on operand {first}",
            )
    return dtype


def require_kind(rule: str, dtype: DType, kinds: Sequence[str], what: str = "the operand") -> None:
    """``dtype`` must be of one of the kinds."""
    if dtype.kind not in kinds:
        raise Violation(rule, f"{what} is {dtype.name}, not {' or '.join(_KIND_WORDS[kind] for kind in kinds)}")


_KIND_WORDS = {
    "bool": "bool",
    "int": "a signed integer",
    "uint": "an unsigned integer",
    "float": "a floating-point type",
    "complex": "a complex type",
}


def elementwise(*kinds: str, result: Callable[[DType], DType] | None = None) -> TypeRule:
    """The rule of an elementwise operation: C1 equal shapes, C2 equal dtypes, C3 of one of the kinds."""

    def rule(call: Call) -> tuple[TensorType, ...]:
        shape = same_shapes("C1", call)
        dtype = same_dtypes("C2", call.operands)
        require_kind("C3", dtype, kinds)
        return (TensorType(shape, result(dtype) if result else dtype),)

    return rule


def elementwise_constraints(operands: int, dtypes: str) -> dict[str, str]:
    """The texts of C1, C2 and C3 of ``elementwise``; C1 and C2 only where there is more than one operand."""
    shared = {"C1": "All operands have the same shape.", "C2": "All operands have the same dtype."}
    return (shared if operands > 1 else {}) | {"C3": f"The operands' dtype is {dtypes}."}


def require_axes(rule: str, axes: Sequence[int], rank: int, what: str) -> None:
    """Every axis lies in a tensor of rank ``rank``."""
    for axis in axes:
        if not 0 <= axis < rank:
            raise Violation(rule, f"{what} {axis} is not an axis of a tensor of rank {rank}")
