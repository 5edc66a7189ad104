"""Graphs of factorizations and solvers: batches of small matrices, single larger ones, and such without elements."""

from __future__ import annotations

from typing import Any

import numpy as np
from lower_graphs import Builder, random_tensor
from numpy.typing import NDArray

from tlir.backends.reference import evaluate
from tlir.ir.graph import Body, Node, Ref
from tlir.ir.ops import OPERATIONS
from tlir.ir.ops.base import Call
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, DType, TensorType

BATCH = 18
"""More than a block of lanes has, and no multiple."""

Item = tuple[str, list[tuple[int, ...]], dict[str, Any]]

SMALL: list[Item] = [
    ("cholesky", [(BATCH, 3, 3)], {"lower": True}),
    ("cholesky", [(2, 2, 4, 4)], {"lower": False}),
    ("cholesky", [(1, 1)], {}),
    (
        "triangular_solve",
        [(BATCH, 3, 3), (BATCH, 3, 2)],
        {"left_side": True, "lower": True, "unit_diagonal": False, "transpose_a": "NO_TRANSPOSE"},
    ),
    (
        "triangular_solve",
        [(BATCH, 3, 3), (BATCH, 3, 2)],
        {"left_side": True, "lower": False, "unit_diagonal": True, "transpose_a": "ADJOINT"},
    ),
    (
        "triangular_solve",
        [(BATCH, 3, 3), (BATCH, 2, 3)],
        {"left_side": False, "lower": True, "unit_diagonal": False, "transpose_a": "TRANSPOSE"},
    ),
    (
        "triangular_solve",
        [(BATCH, 3, 3), (BATCH, 2, 3)],
        {"left_side": False, "lower": False, "unit_diagonal": False, "transpose_a": "NO_TRANSPOSE"},
    ),
    ("lu", [(BATCH, 3, 3)], {}),
    ("lu", [(2, 2, 4)], {}),
    ("lu", [(5, 3)], {}),
    ("geqrf", [(BATCH, 3, 3)], {}),
    ("geqrf", [(2, 2, 4)], {}),
    ("geqrf", [(5, 3)], {}),
    ("householder_product", [(BATCH, 3, 3), (BATCH, 2)], {}),
    ("householder_product", [(5, 3), (3,)], {}),
    ("tridiagonal_solve", [*[(BATCH, 4)] * 3, (BATCH, 4, 2)], {}),
    ("tridiagonal_solve", [*[(1,)] * 3, (1, 3)], {}),
    ("eigh", [(BATCH, 3, 3)], {"lower": True}),
    ("eigh", [(2, 4, 4)], {"lower": False}),
    ("eigh", [(1, 1)], {}),
    ("svd", [(BATCH, 3, 2)], {"full_matrices": False}),
    ("svd", [(2, 2, 4)], {"full_matrices": True}),
    ("svd", [(1, 1)], {}),
]
ONE_OF_EACH: list[Item] = list({item[0]: item for item in reversed(SMALL)}.values())
SOLVERS: list[Item] = [item for item in ONE_OF_EACH if item[0] in ("triangular_solve", "lu", "tridiagonal_solve")]
LARGER: list[Item] = [
    ("cholesky", [(37, 37)], {"lower": True}),
    ("triangular_solve", [(37, 37), (37, 20)], {"left_side": True, "lower": False}),
    ("triangular_solve", [(37, 37), (1, 37)], {"left_side": False, "lower": True}),
    ("lu", [(37, 35)], {}),
    ("lu", [(2, 20, 33)], {}),
    ("geqrf", [(33, 35)], {}),
    ("householder_product", [(35, 33), (33,)], {}),
    ("eigh", [(9, 9)], {"lower": True}),
    ("svd", [(12, 9)], {}),
]
EMPTY: list[Item] = [
    ("cholesky", [(2, 0, 0)], {}),
    ("triangular_solve", [(0, 2, 2), (0, 2, 1)], {"left_side": True, "lower": True}),
    ("triangular_solve", [(2, 2), (2, 0)], {"left_side": True, "lower": True}),
    ("lu", [(2, 3, 0)], {}),
    ("lu", [(0, 3)], {}),
    ("geqrf", [(3, 0)], {}),
    ("householder_product", [(3, 2), (0,)], {}),
    ("tridiagonal_solve", [*[(0,)] * 3, (0, 1)], {}),
    ("eigh", [(2, 0, 0)], {}),
    ("svd", [(3, 0)], {"full_matrices": True}),
    ("svd", [(2, 0, 3)], {"full_matrices": True}),
    ("svd", [(0, 2, 2)], {}),
]


def matrices(dtype: DType, items: list[Item], seed: int) -> tuple[Body, list[Tensor]]:
    """A node for each item, and inputs for them."""
    random = np.random.default_rng(seed)
    inputs = [_operand(random, TensorType(shape, dtype), op) for op, shapes, _ in items for shape in shapes]
    return body_of(dtype, items), inputs


def body_of(dtype: DType, items: list[Item]) -> Body:
    """A node for each item."""
    builder = Builder(np.random.default_rng(0))
    outputs: list[Ref] = []
    for op, shapes, attrs in items:
        types = [TensorType(shape, dtype) for shape in shapes]
        refs = tuple(builder.input(type) for type in types)
        operation = OPERATIONS[op]
        defaults = {name: item.default for name, item in operation.attributes.items() if not item.required}
        declared = tuple(TensorType((), NAMED["int32"] if op == "lu" else dtype) for _ in range(operation.results or 1))
        results = operation.rule(Call(tuple(types), defaults | attrs, declared))
        node = Node(len(builder.nodes), op, refs, attrs, results)
        builder.nodes.append(node)
        outputs += [Ref(node.id, k) for k in range(len(results))]
    return builder.body(outputs)


def _operand(random: np.random.Generator, type: TensorType, op: str) -> Tensor:
    """Matrices of ordinary numbers, mostly; some of small integers, which may be singular, of zeros, of any words."""
    shape = type.shape
    values = random.standard_normal(shape) + (1j * random.standard_normal(shape) if type.dtype.is_complex else 0)
    square = len(shape) > 1 and shape[-1] == shape[-2]
    if square and op in ("cholesky", "eigh"):
        values = values @ np.conj(np.swapaxes(values, -1, -2)) + np.eye(shape[-1])
    words, wild = _rounded(values, type.dtype).words.copy(), random_tensor(random, type).words
    if len(shape) > 2 and shape[0] > 4:
        words[1] = _rounded(np.round(values), type.dtype).words[1]
        words[2] = 0
        words[3] = wild[3]
    elif random.random() < 0.2:
        words = wild
    return Tensor(type, words)


def _rounded(values: NDArray[Any], dtype: DType) -> Tensor:
    """The numbers in a dtype."""
    given = Tensor.from_numpy(np.asarray(values, np.complex128 if dtype.is_complex else np.float64))
    if given.dtype == dtype:
        return given
    convert = Node(1, "convert", (Ref(0),), {}, (TensorType(given.shape, dtype),))
    with np.errstate(all="ignore"):
        (result,) = evaluate(Body((Node(0, "input", (), {}, (given.type,)), convert), (0,), (Ref(1),)), [given])
    return result
