"""A graph run again and again, results of one step becoming inputs of the next."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from tlir.backends import CollectFlags, Observe, evaluator, prepare
from tlir.errors import UsageError
from tlir.ir.graph import Graph
from tlir.ir.tensor import Tensor, words_shape
from tlir.ir.types import TensorType

Carry = tuple[int, int]
"""The position of an output and that of the input which it becomes in the next step."""


def iterate(
    graph: Graph,
    steps: int,
    inputs: Sequence[Tensor],
    carry: Sequence[Carry] = (),
    *,
    each: Mapping[int, Tensor] | None = None,
    record: Collection[int] = (),
    device: str = "reference",
    observe: Observe | None = None,
    flags: CollectFlags | None = None,
    stepped: Callable[[int], None] | None = None,
    memory_limit: int | None = None,
) -> list[Tensor]:
    """The graph's outputs after ``steps`` steps, the first on ``inputs``.

    After every step each output of ``carry`` becomes the input that it is paired with. ``each`` maps positions of
    inputs to tensors with a leading axis of ``steps``, one slice per step. An output whose position is in ``record``
    is kept of every step: what is returned for it has a leading axis of ``steps``. Nothing else grows with ``steps``.

    ``observe`` and ``flags`` are called in every step as ``tlir.backends.run`` says, ``stepped`` with the number of
    steps that are done after each.

    Raises, before the first step, UsageError TL0901 for fewer than one step, for several steps of which each would be
    the same, and for an input that is carried twice or also in ``each``; TL0601 for types that do not match; and what
    ``tlir.backends.run`` raises.
    """
    if steps < 1:
        raise UsageError("TL0901", f"a graph is run at least once, not {steps} times")
    each = each or {}
    if steps > 1 and not carry and not each:
        raise UsageError(
            "TL0901",
            f"nothing changes from step to step, so {steps} steps would all be the same",
            hint="say which output becomes which input of the next step, or which inputs have a value for each step",
        )
    _require_matching(graph, steps, carry, each)
    output_types = graph.body.output_types
    stacked = {k: TensorType((steps, *output_types[k].shape), output_types[k].dtype) for k in record}
    values = list(inputs)
    for position, tensor in each.items():
        values[position] = tensor.row(0)
    prepare(graph, values, device, memory_limit, kept=stacked.values())
    evaluate = evaluator(device)
    kept = {k: np.empty(words_shape(type), type.dtype.word_dtype) for k, type in stacked.items()}
    outputs: list[Tensor] = []
    for step in range(steps):
        for position, tensor in each.items():
            values[position] = tensor.row(step)
        outputs = evaluate(graph.body, values, observe=observe, flags=flags)
        for k, words in kept.items():
            words[step] = outputs[k].words
        for output, into in carry:
            values[into] = outputs[output]
        if stepped is not None:
            stepped(step + 1)
    return [Tensor(stacked[k], kept[k]) if k in kept else tensor for k, tensor in enumerate(outputs)]


def _require_matching(graph: Graph, steps: int, carry: Sequence[Carry], each: Mapping[int, Tensor]) -> None:
    body, paths = graph.body, graph.output_names()
    names, types = body.input_names(), body.input_types
    for position, tensor in each.items():
        expected = TensorType((steps, *types[position].shape), types[position].dtype)
        if tensor.type != expected:
            raise UsageError(
                "TL0601",
                f"the input {names[position]} is for {steps} steps {expected}, and {tensor.type} was given",
            )
    fed: dict[int, int] = {}
    for output, into in carry:
        if into in each:
            raise UsageError("TL0901", f"the input {names[into]} has a value for each step and cannot be carried too")
        if fed.setdefault(into, output) != output:
            raise UsageError(
                "TL0901", f"the input {names[into]} is carried from {paths[fed[into]]} and {paths[output]}"
            )
        given, wanted = body.output_types[output], types[into]
        if given != wanted:
            raise UsageError(
                "TL0601",
                f"{paths[output]} is {given} and cannot become the input {names[into]}, which is {wanted}",
                hint="a step must return what it takes, in the same shape and dtype",
            )
