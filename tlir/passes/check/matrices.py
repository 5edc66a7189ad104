"""Factorizations and solvers of batches of matrices on expressions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tlir.ir.types import DType
from tlir.passes.check import factorizations, jacobi
from tlir.passes.check.expressions import Expressions, Ids
from tlir.passes.check.scalars import Attr, Meaning, Scalars

MEANINGS: dict[str, Meaning] = {**factorizations.MEANINGS, **jacobi.MEANINGS}

CHANGES = {"eigh": 8 * jacobi.SWEEPS_OF_EIGH, "svd": 8 * jacobi.SWEEPS_OF_SVD}
"""About how many operations an element is changed by for every row or column, at most; one for all others."""


def evaluated(
    table: Expressions, op: str, attr: Attr, dtype: DType, operands: Sequence[Ids], shapes: Sequence[Sequence[int]]
) -> list[Ids]:
    """The results of an operation of the family for all matrices of a batch."""
    scalars = Scalars(table, dtype, operands[0].shape[-2:])
    axes = [1 if op == "tridiagonal_solve" or (op == "householder_product" and k) else 2 for k in range(len(operands))]
    axes[-1] = 1 if op == "householder_product" else 2
    batch = operands[-1].shape[: operands[-1].ndim - axes[-1]]
    results = [np.empty(tuple(shape), np.int64) for shape in shapes]
    for index in np.ndindex(*batch):
        found = MEANINGS[op](scalars, attr, [operand[index].tolist() for operand in operands])
        for result, values in zip(results, found, strict=True):
            result[index] = np.array(values, np.int64).reshape(result.shape[len(batch) :])
    return results
