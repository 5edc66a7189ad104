"""Kernels interpreted on words: the meaning of the kernel IR, with the reference's evaluators as its operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tlir.backends.reference import EVALUATORS, evaluate, integers
from tlir.backends.reference.indexing import index_values
from tlir.backends.reference.invocation import Invocation
from tlir.backends.reference.layout import tail
from tlir.ir.graph import Body, Node, Ref
from tlir.ir.tensor import Tensor, words_shape
from tlir.ir.types import DType, TensorType
from tlir.kernel.interpret import Elements, Integers, run_kernel
from tlir.kernel.ir import Alias, Fallback, Launch, Program


class WordDomain:
    """Elements are words (see ``tlir.ir.tensor``)."""

    def tail(self, dtype: DType) -> tuple[int, ...]:
        return tail(dtype)

    def blank(self, dtype: DType, size: int) -> Elements:
        return np.zeros((size, *tail(dtype)), dtype.word_dtype)

    def literal(self, dtype: DType, word: int | tuple[int, int]) -> Elements:
        parts = word if isinstance(word, tuple) else (word,)
        mask = (1 << 64) - 1
        limbs = [[part >> (64 * k) & mask for k in range(dtype.limbs)] for part in parts]
        return np.array(limbs, np.uint64).astype(dtype.word_dtype).reshape(tail(dtype))

    def position(self, dtype: DType, integers_: Integers) -> Elements:
        return integers.to_words(dtype, integers_)

    def integers(self, dtype: DType, elements: Elements) -> Integers:
        return index_values(Tensor(TensorType(elements.shape, dtype), elements))

    def apply(
        self, op: str, attrs: Mapping[str, Any], result: DType, dtypes: Sequence[DType], operands: Sequence[Elements]
    ) -> Elements:
        lanes = operands[0].shape[: operands[0].ndim - len(tail(dtypes[0]))]
        refs = tuple(Ref(k) for k in range(len(operands)))
        node = Node(len(operands), op, refs, attrs, (TensorType(lanes, result),))
        tensors = [
            Tensor(TensorType(lanes, dtype), np.asarray(words, order="C"))
            for dtype, words in zip(dtypes, operands, strict=True)
        ]
        with np.errstate(all="ignore"):
            return np.asarray(EVALUATORS[op](Invocation(node, tuple(tensors))), order="C")


def evaluate_alone(node: Node, operands: Sequence[Tensor]) -> list[Tensor]:
    """The results of one node of a graph, by the reference."""
    count = len(operands)
    nodes = [Node(k, "input", (), {}, (operand.type,)) for k, operand in enumerate(operands)]
    own = replace(node, id=count, inputs=tuple(Ref(k) for k in range(count)))
    outputs = tuple(Ref(count, k) for k in range(len(node.types)))
    return evaluate(Body((*nodes, own), tuple(range(count)), outputs), operands)


def run_launch(launch: Launch, types: Mapping[Ref, TensorType], values: Mapping[Ref, Tensor]) -> dict[Ref, Tensor]:
    """The values that one launch computes from those that it reads."""
    domain = WordDomain()
    pairs = list(zip(launch.kernel.buffers, launch.arguments, strict=False))
    memory = {
        buffer: domain.blank(buffer.dtype, buffer.size)
        if buffer.role == "output"
        else np.asarray(values[ref].words).reshape((buffer.size, *tail(buffer.dtype)))
        for buffer, ref in pairs
    }
    run_kernel(launch.kernel, memory, domain)
    outputs = [(memory[buffer], ref) for buffer, ref in pairs if buffer.role == "output"]
    return {ref: Tensor(types[ref], words.reshape(words_shape(types[ref]))) for words, ref in outputs}


def run_program(program: Program, body: Body, inputs: Sequence[Tensor]) -> list[Tensor]:
    """The outputs of a program for a body's inputs: kernels interpreted, fallbacks evaluated by the reference."""
    values: dict[Ref, Tensor] = dict(program.constants) | dict(zip(program.inputs, inputs, strict=True))
    for step in program.steps:
        if isinstance(step, Fallback):
            node = body.nodes[step.node]
            results = evaluate_alone(node, [values[ref] for ref in node.inputs])
            values |= {Ref(node.id, k): result for k, result in enumerate(results)}
        elif isinstance(step, Alias):
            type = program.types[step.value]
            values[step.value] = Tensor(type, values[step.of].words.reshape(words_shape(type)))
        else:
            values |= run_launch(step, program.types, values)
    return [values[ref] for ref in program.outputs]
