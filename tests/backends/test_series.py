"""Sorting, selection and Fourier transforms at sizes at which devices choose other forms: many parts, several threads,
few long rows and many short ones."""

from __future__ import annotations

import numpy as np
import pytest
from cuda_forms import contracts_nothing
from lower_graphs import Builder

from tlir.backends.cpu import device
from tlir.backends.cuda import nvrtc
from tlir.backends.cuda.host import HostExecutable
from tlir.backends.reference import evaluate
from tlir.ir.graph import Body, Node, Ref
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, TensorType

pytest.importorskip("llvmlite")

F32, I32, C64 = NAMED["float32"], NAMED["int32"], NAMED["complex64"]


def operation(op: str, operands: list[TensorType], results: list[TensorType], **attrs: object) -> Body:
    b = Builder(np.random.default_rng(0))
    b.nodes.append(Node(len(operands), op, tuple(map(b.input, operands)), attrs, tuple(results)))
    return b.body([Ref(len(operands), k) for k in range(len(results))])


def sorting(shape: tuple[int, ...], axis: int) -> Body:
    types = [TensorType(shape, F32), TensorType(shape, I32)]
    return operation("sort", types, types, dimension=axis)


def greatest(shape: tuple[int, ...], count: int) -> Body:
    results = [TensorType((*shape[:-1], count), dtype) for dtype in (F32, I32)]
    return operation("top_k", [TensorType(shape, F32)], results, dimension=len(shape) - 1, k=count)


def transform(kind: str, *shape: int) -> Body:
    half = (*shape[:-1], shape[-1] // 2 + 1)
    given = TensorType(half if kind == "IRFFT" else shape, F32 if kind == "RFFT" else C64)
    result = TensorType(half if kind == "RFFT" else shape, F32 if kind == "IRFFT" else C64)
    return operation("fft", [given], [result], fft_type=kind, fft_length=shape[-1:])


BODIES = {
    "a long row": sorting((100_003,), 0),
    "rows": sorting((300, 500), 1),
    "columns": sorting((70, 300), 0),
    "the greatest of a long row": greatest((200_001,), 8),
    "the greatest of rows": greatest((3000, 40), 3),
    "many of the greatest": greatest((50, 100), 70),
    "a long transform": transform("FFT", 1 << 16),
    "transforms": transform("IFFT", 128, 1000),
    "real transforms": transform("RFFT", 300, 256),
    "transforms to real numbers": transform("IRFFT", 300, 144),
    "a prime length": transform("FFT", 60, 1009),
    "a long prime length": transform("RFFT", 1999),
}


def given(body: Body) -> list[Tensor]:
    """Numbers, many of which are equal."""
    random = np.random.default_rng(1)
    arrays = []
    for type in body.input_types:
        values = random.standard_normal((*type.shape, 2)).astype(np.float32).round(2)
        whole = values.view(np.complex64)[..., 0]
        arrays.append(whole if type.dtype.is_complex else whole.real.astype(np.int32 if type.dtype == I32 else "f4"))
    return [Tensor.from_numpy(np.ascontiguousarray(array)) for array in arrays]


@pytest.mark.parametrize("name", BODIES)
def test_the_words_of_the_reference(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    body, inputs = BODIES[name], given(BODIES[name])
    expected = evaluate(body, inputs)
    executable = device.Executable(body)
    for count in ("1", "2"):
        monkeypatch.setenv("TLIR_THREADS", count)
        results = executable.run(inputs)
        assert all(a.same_words(b) for a, b in zip(expected, results, strict=True))
    assert executable.statistics.reference == []
    host = HostExecutable(body)
    assert all(a.same_words(b) for a, b in zip(expected, host.run(inputs), strict=True))
    assert host.statistics.reference == []


@pytest.mark.skipif(nvrtc.library() is None, reason="NVRTC is not installed")
def test_nvrtc_compiles_them_and_contracts_nothing() -> None:
    contracts_nothing(list(BODIES.values()), "sm_90")
