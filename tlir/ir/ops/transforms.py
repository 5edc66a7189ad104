"""The discrete Fourier transform, by an algorithm that the shape alone defines."""

from __future__ import annotations

from tlir.ir.ops.attributes import Choice, Integers
from tlir.ir.ops.base import Attribute, Call, Operation, Violation, require_kind
from tlir.ir.types import TensorType, complex_of


def _fft(call: Call) -> tuple[TensorType, ...]:
    (operand,), kind, lengths = call.operands, call.attrs["fft_type"], call.attrs["fft_length"]
    if not 1 <= len(lengths) <= operand.rank:
        raise Violation("C1", f"{len(lengths)} transformed axes of an operand of rank {operand.rank}")
    require_kind("C2", operand.dtype, ("float",) if kind == "RFFT" else ("complex",))
    last = lengths[-1] // 2 + 1 if kind == "IRFFT" else lengths[-1]
    expected = (*lengths[:-1], last)
    given = operand.shape[operand.rank - len(lengths) :]
    if given != expected:
        raise Violation("C3", f"the last axes are {list(given)}, and {kind} of {list(lengths)} takes {list(expected)}")
    batch = operand.shape[: operand.rank - len(lengths)]
    if kind == "RFFT":
        shape = (*batch, *lengths[:-1], lengths[-1] // 2 + 1)
        return (TensorType(shape, complex_of(operand.dtype)),)
    if kind == "IRFFT":
        return (TensorType((*batch, *lengths), operand.dtype.component),)
    return (operand,)


OPERATIONS = (
    Operation(
        "fft",
        "transforms",
        ("operand",),
        "The discrete Fourier transform over the last axes, whose lengths fft_length are, one axis after the other. "
        "One axis of n elements x: for n = 1 the element. Otherwise p is the smallest prime factor of n, m = n / p, "
        "and Y_r the transform (by this rule) of the m elements x[r], x[r+p], x[r+2p], … for r = 0 … p-1; then X[k] = "
        "((Y_0[k mod m] + w[k] Y_1[k mod m]) + w[2k mod n] Y_2[k mod m]) + …, where w[j] is exp(-2 pi i j / n), of "
        "which each part is correctly rounded (zeros are +0). A product of complex numbers is (ac - bd) + (ad + bc)i, "
        "each product and each sum rounded in the component format. `FFT` takes the last axis first, then the one "
        "before it, and so on. `IFFT` is the same with exp(+2 pi i j / n), and at the end each part is divided by the "
        "product of the lengths, rounded to the component format. `RFFT` takes real numbers (imaginary parts +0) and "
        "keeps the first n/2 + 1 results of the last axis, rounded down, before the other axes. `IRFFT` does as `IFFT` "
        "over the other axes, and then over the last one, extended to its n elements by X[n-k] = conj(X[k]); there the "
        "imaginary parts of X[0] and, for even n, X[n/2] count as +0; the result are the real parts. Overflow, NaN and "
        "infinities follow from these steps.",
        "a complex type; for RFFT a floating-point type",
        _fft,
        {
            "C1": "fft_length names from one axis to all of the operand.",
            "C2": "The operand is complex, for RFFT floating-point.",
            "C3": "The last axes have the lengths fft_length; for IRFFT the last one n/2 + 1, rounded down.",
        },
        {
            "fft_type": Attribute(Choice(("FFT", "IFFT", "RFFT", "IRFFT")), "The kind of transform."),
            "fft_length": Attribute(Integers(1), "The lengths of the axes transformed, the last ones of the operand."),
        },
    ),
)
