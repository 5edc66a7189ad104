"""The definition: every operation evaluated with NumPy on words and by ``tlir.floatlib``, one node after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tlir.backends.liveness import last_uses
from tlir.backends.reference import (
    arithmetic,
    complex_numbers,
    contraction,
    data,
    elementary,
    indexing,
    linalg,
    logic,
    reduction,
    shape,
    sorting,
    special,
    transforms,
    windows,
)
from tlir.backends.reference.control import REGION_EVALUATORS
from tlir.backends.reference.invocation import Evaluator, FlagArray, FlagRecord, Invocation, SeveralEvaluator
from tlir.errors import UnsupportedError
from tlir.floatlib.arrays import FloatEnvironmentError, ensure_float_environment
from tlir.ir.graph import Body, Node, Ref
from tlir.ir.tensor import Tensor

FAMILIES = (
    data,
    arithmetic,
    elementary,
    special,
    logic,
    complex_numbers,
    shape,
    reduction,
    contraction,
    indexing,
    windows,
    transforms,
    linalg,
)

EVALUATORS: dict[str, Evaluator] = {
    name: function for family in FAMILIES for name, function in family.EVALUATORS.items()
}
"""The evaluator of every operation with one result but ``input``, whose value is given."""

SEVERAL: dict[str, SeveralEvaluator] = sorting.EVALUATORS | linalg.SEVERAL
"""The evaluators of operations with several results; those with regions are in ``control.REGION_EVALUATORS``."""

Observe = Callable[[Node, tuple[Tensor, ...]], None]
CollectFlags = Callable[[Node, FlagArray], None]


def evaluate(
    body: Body, inputs: Sequence[Tensor], *, observe: Observe | None = None, flags: CollectFlags | None = None
) -> list[Tensor]:
    """The outputs of a well-typed body for inputs in the order of ``input_ids``.

    ``observe`` is called after each node with its results; ``flags`` after each node that computes or converts floats,
    with the exceptions raised at each element of the result: the bits of ``tlir.floatlib.rounding.Flags`` in a uint8
    array. Values are dropped after their last use. UnsupportedError TL0604 where the thread flushes subnormal
    numbers or does not round to nearest.
    """
    try:
        ensure_float_environment()
    except FloatEnvironmentError as error:
        raise _refused(error) from error
    given = dict(zip(body.input_ids, inputs, strict=True))
    values: dict[Ref, Tensor] = {}
    dropped = last_uses(body)
    for node in body.nodes:
        if node.op == "input":
            results: tuple[Tensor, ...] = (given[node.id],)
        else:
            results = evaluate_node(node, tuple(values[ref] for ref in node.inputs), flags)
        for k, tensor in enumerate(results):
            values[Ref(node.id, k)] = tensor
        if observe is not None:
            observe(node, results)
        for ref in dropped[node.id]:
            del values[ref]
    return [values[ref] for ref in body.outputs]


def _refused(error: FloatEnvironmentError) -> UnsupportedError:
    hint = "run tlir in a process of its own, or load that library without fast-math"
    return UnsupportedError("TL0604", str(error), hint=hint)


def evaluate_node(node: Node, operands: tuple[Tensor, ...], collect: CollectFlags | None = None) -> tuple[Tensor, ...]:
    """The results of one node that is not an input. UnsupportedError TL0604 as of ``evaluate``, where it matters."""
    if node.op in REGION_EVALUATORS:
        return tuple(REGION_EVALUATORS[node.op](node, operands, evaluate))
    record = FlagRecord(node.type.shape) if collect is not None else None
    call = Invocation(node, operands, record)
    # overflow of integers, and IEEE exceptions of floats, are part of the meaning and not worth a warning
    try:
        with np.errstate(all="ignore"):
            words = SEVERAL[node.op](call) if node.op in SEVERAL else (EVALUATORS[node.op](call),)
    except FloatEnvironmentError as error:
        raise _refused(error) from error
    if collect is not None and record is not None and record.noted:
        collect(node, record.array)
    return tuple(Tensor(type, np.asarray(w, order="C")) for type, w in zip(node.types, words, strict=True))
