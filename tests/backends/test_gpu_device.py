"""What the device gpu does around its kernels, with a stand-in for CuPy that runs the host build of the source."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lower_graphs import Builder, random_graph, random_tensor

from tlir.backends import run
from tlir.backends.cuda import device, host
from tlir.backends.cuda.function import Source
from tlir.backends.reference import evaluate
from tlir.errors import UnsupportedError
from tlir.ir.graph import Graph
from tlir.ir.types import NAMED, TensorType


def test_without_a_gpu_there_is_one_sentence_and_no_fallback() -> None:
    try:
        device.cupy()
    except UnsupportedError:
        pass
    else:
        pytest.skip("there is a GPU")
    builder = Builder(np.random.default_rng(0))
    type = TensorType((2,), NAMED["float32"])
    body = builder.body([builder.add("negate", (builder.input(type),), type)])
    inputs = [random_tensor(np.random.default_rng(1), type)]
    with pytest.raises(UnsupportedError, match=r"GPU|CuPy") as caught:
        run(Graph(body), inputs, device="gpu")
    assert caught.value.code == "TL0802"


class Array(np.ndarray[Any, Any]):
    """An array that says where it is only by its type."""

    def get(self) -> Any:
        return np.array(self.view(np.ndarray))


def _array(words: Any) -> Array:
    return np.array(words).view(Array)


class Module:
    """Functions of the host build for the kernels of one module."""

    kernels: ClassVar[dict[str, Source]] = {}

    def __init__(self, code: str, options: tuple[str, ...]) -> None:
        assert "--fmad=false" in options
        self.built = host.build([kernel for kernel in self.kernels.values() if f"void {kernel.name}(" in code])

    def get_function(self, name: str) -> Any:
        function = self.built[name].function

        def launch(grid: tuple[int], block: tuple[int], arguments: tuple[Any, ...]) -> None:
            total, *arrays = arguments
            assert all(isinstance(array, Array) for array in arrays)
            assert function(min(grid[0], 2), block[0], False, int(total), *(array.ctypes.data for array in arrays))

        return launch


@pytest.fixture(scope="module")
def gpu() -> Iterator[None]:
    """A GPU of one processor, as far as the device can see."""
    standin = SimpleNamespace(
        asarray=_array,
        empty=lambda shape, dtype: np.full(shape, 1, dtype).view(Array),
        zeros=lambda shape, dtype: np.zeros(shape, dtype).view(Array),
        RawModule=Module,
        cuda=SimpleNamespace(Device=lambda: SimpleNamespace(attributes={"MultiProcessorCount": 1})),
    )
    real = device.source

    def noted(kernel: Any) -> Any:
        made = real(kernel)
        if isinstance(made, Source):
            Module.kernels[made.name] = made
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device, "cupy", lambda: standin)
        patch.setattr(device, "source", noted)
        yield


@pytest.mark.usefixtures("gpu")
@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_random_graphs(seed: int) -> None:
    body, inputs = random_graph(seed, 1 + seed % 10)
    for expected, result in zip(evaluate(body, inputs), device.evaluate(body, inputs), strict=True):
        assert expected.same_words(result)


@pytest.mark.usefixtures("gpu")
def test_a_launch_that_leaves_a_rounding_open_is_evaluated_by_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    type = TensorType((7,), NAMED["float32"])
    builder = Builder(np.random.default_rng(0))
    x = builder.input(type)
    body = builder.body([builder.add("exponential", (builder.add("negate", (x,), type),), type)])
    inputs = [random_tensor(np.random.default_rng(1), type)]
    executable = device.GpuExecutable(body)
    monkeypatch.setattr(device.GpuExecutable, "_launched", lambda *_: False)
    (result,) = executable.run(inputs)
    assert result.same_words(evaluate(body, inputs)[0])
    assert executable.statistics.kernels == 0
    assert {node for node, _ in executable.statistics.reference} == {1, 2}
