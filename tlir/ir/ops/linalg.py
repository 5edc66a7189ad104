"""Factorizations and solvers of matrices, each by an algorithm of scalar steps that the operation states.

Matrices are the last two axes; all axes before them are a batch. Every product, sum, quotient and root of a step rounds
by itself in the operand's format, as the operations of these names do (complex products as ``multiply``, complex
quotients, moduli and hypot with each part rounded once).
"""

from __future__ import annotations

from collections.abc import Sequence

from tlir.ir.ops.attributes import Boolean, Choice
from tlir.ir.ops.base import Attribute, Call, Operation, Violation, require_kind, same_dtypes
from tlir.ir.types import DType, TensorType

_FIELDS = ("float", "complex")
_STEPS = "Each product, difference, quotient and root rounds by itself in the operand's format. "
_INT32 = "int32"


def _matrix(rule: str, operand: TensorType, what: str = "the operand") -> tuple[tuple[int, ...], int, int]:
    """The batch, rows and columns."""
    if operand.rank < 2:
        raise Violation(rule, f"{what} has rank {operand.rank}, not 2 or more")
    return operand.shape[:-2], operand.shape[-2], operand.shape[-1]


def _square(rule: str, operand: TensorType, what: str = "the operand") -> tuple[tuple[int, ...], int]:
    batch, rows, columns = _matrix(rule, operand, what)
    if rows != columns:
        raise Violation(rule, f"{what} has matrices of {rows} by {columns}, not square ones")
    return batch, rows


def _int32(rule: str, call: Call, places: Sequence[int]) -> DType:
    for place in places:
        if call.declared[place].dtype.name != _INT32:
            raise Violation(rule, f"result {place} is {call.declared[place].dtype.name}, not {_INT32}")
    return call.declared[places[0]].dtype


def _real(dtype: DType) -> DType:
    return dtype.component if dtype.is_complex else dtype


def _cholesky(call: Call) -> tuple[TensorType, ...]:
    _square("C1", call.operands[0])
    require_kind("C2", call.operands[0].dtype, _FIELDS)
    return call.operands


def _triangular_solve(call: Call) -> tuple[TensorType, ...]:
    a, b = call.operands
    batch, order = _square("C1", a, "a")
    other, rows, columns = _matrix("C2", b, "b")
    if batch != other or order != (rows if call.attrs["left_side"] else columns):
        raise Violation("C2", f"a is {list(a.shape)} and b is {list(b.shape)}")
    require_kind("C3", same_dtypes("C3", call.operands), _FIELDS)
    return (b,)


def _lu(call: Call) -> tuple[TensorType, ...]:
    operand = call.operands[0]
    batch, rows, columns = _matrix("C1", operand)
    require_kind("C2", operand.dtype, _FIELDS)
    integer = _int32("C3", call, (1, 2))
    return (operand, TensorType((*batch, min(rows, columns)), integer), TensorType((*batch, rows), integer))


def _geqrf(call: Call) -> tuple[TensorType, ...]:
    operand = call.operands[0]
    batch, rows, columns = _matrix("C1", operand)
    require_kind("C2", operand.dtype, _FIELDS)
    return (operand, TensorType((*batch, min(rows, columns)), operand.dtype))


def _householder_product(call: Call) -> tuple[TensorType, ...]:
    a, taus = call.operands
    batch, rows, columns = _matrix("C1", a, "a")
    if columns > rows:
        raise Violation("C1", f"a has {columns} columns and {rows} rows")
    if taus.rank < 1 or taus.shape[:-1] != batch or taus.shape[-1] > columns:
        raise Violation("C2", f"taus are {list(taus.shape)} for reflectors of {list(a.shape)}")
    require_kind("C3", same_dtypes("C3", call.operands), _FIELDS)
    return (a,)


def _tridiagonal_solve(call: Call) -> tuple[TensorType, ...]:
    *bands, b = call.operands
    batch, rows, _ = _matrix("C1", b, "b")
    for name, band in zip(("dl", "d", "du"), bands, strict=True):
        if band.shape != (*batch, rows):
            raise Violation("C1", f"{name} is {list(band.shape)} and b is {list(b.shape)}")
    require_kind("C2", same_dtypes("C2", call.operands), _FIELDS)
    return (b,)


def _eigh(call: Call) -> tuple[TensorType, ...]:
    operand = call.operands[0]
    batch, order = _square("C1", operand)
    require_kind("C2", operand.dtype, _FIELDS)
    return (TensorType((*batch, order), _real(operand.dtype)), operand)


def _svd(call: Call) -> tuple[TensorType, ...]:
    operand = call.operands[0]
    batch, rows, columns = _matrix("C1", operand)
    require_kind("C2", operand.dtype, _FIELDS)
    least = min(rows, columns)
    left, right = (rows, columns) if call.attrs.get("full_matrices", False) else (least, least)
    return (
        TensorType((*batch, rows, left), operand.dtype),
        TensorType((*batch, least), _real(operand.dtype)),
        TensorType((*batch, right, columns), operand.dtype),
    )


_DTYPES = "a floating-point or complex type"
_KIND = "The operand is floating-point or complex."
_MATRICES = "The operand has rank 2 or more."
_SQUARE = "The operand has rank 2 or more and square matrices."
_LOWER = Attribute(Boolean(), "Whether the lower triangle is read, or the upper one.", False, True)
_ROUNDS = (
    "With n' = n rounded up to an even number, a sweep has n' - 1 rounds; round r has the pairs of n' - 1 with r and, "
    "for k = 1 … n'/2 - 1, of (r - k) mod (n' - 1) with (r + k) mod (n' - 1), p the lesser and q the greater index, "
    "without those that hold an index of n or more. "
)
_ROTATION = (
    "t = copysign(1, z) / (|z| + hypot(1, z)), c = 1 / hypot(1, t), s = t c, and columns p and q become c x_p - s y "
    "and s x_p + c y, y = x_q for real numbers and conj(w) x_q for complex ones"
)

OPERATIONS = (
    Operation(
        "cholesky",
        "linalg",
        ("operand",),
        "The lower triangular L with L L^H the operand, of which only the lower triangle is read (with `lower` false: "
        "L^H, from the conjugate transpose of the upper one). Column by column: for j = 0, 1, … the elements i >= j "
        "of column j become (a[i,j] - L[i,0] conj(L[j,0])) - L[i,1] conj(L[j,1]) - … up to column j - 1; the pivot d "
        "is the real part of element j; L[j,j] = sqrt(d), and each part of the elements below is divided by L[j,j]. "
        + _STEPS
        + "The other triangle is +0. A matrix with a pivot that is not greater than zero (or NaN) gives NaN "
        "everywhere.",
        _DTYPES,
        _cholesky,
        {"C1": _SQUARE, "C2": _KIND},
        {"lower": _LOWER},
    ),
    Operation(
        "triangular_solve",
        "linalg",
        ("a", "b"),
        "The X with op(a) X = b, with `left_side` false X op(a) = b, where op is a, its transpose or its adjoint and "
        "only the triangle named by `lower` is read (without the diagonal, which counts as 1, for `unit_diagonal`). "
        "Substitution, for a left side and a lower triangular op(a): X starts as b; for k = 0, 1, … row k is divided "
        "by op(a)[k,k], and then op(a)[i,k] X[k] is subtracted from every row i > k. For an upper triangular one k "
        "descends and i < k; a right side is solved as the left side of the transposes. " + _STEPS,
        _DTYPES,
        _triangular_solve,
        {
            "C1": "a has rank 2 or more and square matrices.",
            "C2": "b has the batch of a, and as many rows as a has (columns, with a right side).",
            "C3": "Both operands have the same floating-point or complex dtype.",
        },
        {
            "left_side": Attribute(Boolean(), "Whether a stands on the left of X."),
            "lower": Attribute(Boolean(), "Whether the lower triangle of a is read, or the upper one."),
            "unit_diagonal": Attribute(Boolean(), "Whether the diagonal counts as 1 and is not read.", False, False),
            "transpose_a": Attribute(
                Choice(("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")), "What is applied to a.", False, "NO_TRANSPOSE"
            ),
        },
    ),
    Operation(
        "lu",
        "linalg",
        ("operand",),
        "The factors L (unit lower triangular) and U of the operand with its rows permuted, packed into one matrix; "
        "the row exchanged with row k at step k; and the permutation of the rows that results. For k = 0, 1, …: the "
        "pivot is the first element of greatest magnitude (|re| + |im| rounded for complex numbers; NaN is greatest) "
        "in column k from row k on; the two rows are exchanged; the elements below the pivot are divided by it "
        "(unless it is zero, when they stay), and l[i] u[j] is subtracted from every element i > k, j > k. " + _STEPS,
        _DTYPES,
        _lu,
        {
            "C1": _MATRICES,
            "C2": _KIND,
            "C3": "The second and the third result are int32.",
        },
        results=3,
    ),
    Operation(
        "geqrf",
        "linalg",
        ("operand",),
        "The QR factorization by Householder reflectors H_k = I - tau_k v v^H, as LAPACK packs it: R on and above the "
        "diagonal, v (of which v[k] = 1) below, and the taus; Q = H_0 H_1 …. For k = 0, 1, …: norm is hypot over the "
        "parts (real, imaginary) of the elements below the diagonal, one after the other from 0; if it is zero and the "
        "imaginary part of the diagonal element alpha is, tau is 0 and nothing else happens. Otherwise beta = "
        "-copysign(hypot(|alpha|, norm), Re alpha), tau = (beta - alpha) / beta part by part, v = x / (alpha - beta), "
        "and for every column j > k: w = (a[k,j] + conj(v[k+1]) a[k+1,j]) + …, t = conj(tau) w, and t is subtracted "
        "from a[k,j], v[i] t from a[i,j]. Element k becomes beta. " + _STEPS,
        _DTYPES,
        _geqrf,
        {"C1": _MATRICES, "C2": _KIND},
        results=2,
    ),
    Operation(
        "householder_product",
        "linalg",
        ("a", "taus"),
        "The first columns of H_0 H_1 …, for the reflectors that geqrf packs below the diagonal of a, and taus. Q "
        "starts as the identity; for k from the last reflector down to 0, for every column j >= k: w = (Q[k,j] + "
        "conj(v[k+1]) Q[k+1,j]) + …, t = tau_k w, and t is subtracted from Q[k,j], v[i] t from Q[i,j]. " + _STEPS,
        _DTYPES,
        _householder_product,
        {
            "C1": "a has rank 2 or more, and no more columns than rows.",
            "C2": "taus have the batch of a, and no more elements than a has columns.",
            "C3": "Both operands have the same floating-point or complex dtype.",
        },
    ),
    Operation(
        "tridiagonal_solve",
        "linalg",
        ("dl", "d", "du", "b"),
        "The X with A X = b, A having d on the diagonal, dl below it (dl[0] is not read) and du above it (nor is the "
        "last du), by Thomas' algorithm, without pivoting: c[0] = du[0] / d[0], x[0] = b[0] / d[0]; for i = 1, 2, …: "
        "e = d[i] - dl[i] c[i-1], c[i] = du[i] / e, x[i] = (b[i] - dl[i] x[i-1]) / e; then downward x[i] = x[i] - c[i] "
        "x[i+1]. " + _STEPS,
        _DTYPES,
        _tridiagonal_solve,
        {
            "C1": "dl, d and du have the batch of b, and one element per row of b.",
            "C2": "All operands have the same floating-point or complex dtype.",
        },
    ),
    Operation(
        "eigh",
        "linalg",
        ("operand",),
        "The eigenvalues of a Hermitian matrix, ascending, and its eigenvectors as columns. Only the triangle named by "
        "`lower` is read, and imaginary parts on the diagonal count as zero. Jacobi's method. " + _ROUNDS + "A pair is "
        "rotated if |a[q,p]| is greater than the greatest magnitude of a part of the operand times 2^-precision: with "
        "r = a[q,p] for real numbers, r = |a[q,p]| and w = conj(a[q,p]) / r for complex ones, z = (a[q,q] - a[p,p]) / "
        "(r + r), " + _ROTATION + "; first all pairs of a round in the matrix and in the eigenvectors (from the "
        "identity), then the rows of the matrix likewise with conjugate factors, then a[p,q] and a[q,p] become 0, and "
        "a[p,p] and a[q,q] what they were before the round, less t r and plus t r. It ends after a sweep without a "
        "rotation, or 64 sweeps. Equal eigenvalues keep their order. "
        + _STEPS
        + "A matrix with an element that is not finite gives NaN everywhere.",
        _DTYPES,
        _eigh,
        {"C1": _SQUARE, "C2": _KIND},
        {"lower": _LOWER},
        results=2,
    ),
    Operation(
        "svd",
        "linalg",
        ("operand",),
        "The singular value decomposition U diag(s) Vh, s descending, by one-sided Jacobi rotations. A matrix with "
        "fewer rows than columns is decomposed as its conjugate transpose. X is the operand divided by the greatest "
        "power of two not above the greatest magnitude of a part (at least the least normal number; 1 for a zero "
        "matrix), V the identity of n columns. "
        + _ROUNDS
        + "With alpha and beta the sums of the squared parts of columns p and q, one after the other from 0, and g the "
        "sum of conj(x[i,p]) x[i,q], i ascending, a pair is rotated if |g| > (sqrt(alpha) sqrt(beta)) e, where e is "
        "(floor(sqrt(m)) + 1) 2^-precision for m rows, at most 1/4: r = g for real numbers, r = |g| and w = g / r for "
        "complex ones, z = (beta - alpha) / (r + r), "
        + _ROTATION
        + ", in X and in V. It ends after a sweep without a rotation, or 32 sweeps. A singular value is the root of "
        "the sum of squares of its column times the power of two; columns of U are those of X divided by the root, and "
        "where that is zero, and for the columns that `full_matrices` adds, those that geqrf and householder_product "
        "give for U so far. " + _STEPS + "A matrix with an element that is not finite gives NaN everywhere.",
        _DTYPES,
        _svd,
        {"C1": _MATRICES, "C2": _KIND},
        {
            "full_matrices": Attribute(
                Boolean(), "Whether U and Vh are square, or have as many columns and rows as s elements.", False, False
            )
        },
        results=3,
    ),
)
