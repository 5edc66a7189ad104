"""The generated CUDA without a GPU: a host build of the very same source gives the reference's words, NVRTC compiles it
for real architectures, and nothing is contracted."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from cuda_forms import contracts_nothing, product, reduction, softmax, sources
from hypothesis import given, settings
from hypothesis import strategies as st
from lower_graphs import Builder, random_graph, random_tensor

from tlir.backends.cuda import nvrtc
from tlir.backends.cuda.host import HostExecutable, HostKernel, build
from tlir.backends.reference import evaluate
from tlir.ir.graph import Body, Graph
from tlir.ir.ops import Accumulate
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, TensorType
from tlir.schema import read

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
ARTIFACTS = sorted(GOLDEN.glob("*/*.json"))

needs_nvrtc = pytest.mark.skipif(nvrtc.library() is None, reason="NVRTC is not installed")


def same(body: Body, inputs: list[Tensor], built: dict[str, HostKernel] | None = None) -> HostExecutable:
    executable = HostExecutable(body, built=built)
    for expected, result in zip(evaluate(body, inputs), executable.run(inputs), strict=True):
        assert expected.same_words(result)
    return executable


@settings(max_examples=2, deadline=None)
@given(st.lists(st.integers(0, 2**32 - 1), min_size=8, max_size=8, unique=True))
def test_random_graphs_on_a_host_build(seeds: list[int]) -> None:
    graphs = [random_graph(seed, 1 + seed % 12) for seed in seeds]
    built = build(sources([body for body, _ in graphs]))
    for body, inputs in graphs:
        same(body, inputs, built)


@cache
def golden() -> tuple[dict[Path, Graph], dict[str, HostKernel]]:
    """The golden artifacts, and the functions of all their kernels."""
    graphs = {path: read(path) for path in ARTIFACTS}
    return graphs, build(sources([graph.body for graph in graphs.values()]))


@pytest.mark.parametrize("path", ARTIFACTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_golden_artifacts_on_a_host_build(path: Path) -> None:
    graphs, built = golden()
    for sample in graphs[path].samples:
        same(graphs[path].body, list(sample.inputs), built)


@pytest.mark.parametrize("dtype", ["float16", "float128"])
def test_software_numbers_on_a_host_build(dtype: str) -> None:
    type = TensorType((40,), NAMED[dtype])
    builder = Builder(np.random.default_rng(1))
    x, y = builder.input(type), builder.input(type)
    values = [builder.add(op, (x, y), type) for op in ("add", "subtract", "multiply", "divide", "maximum", "minimum")]
    values += [builder.add("sqrt", (x,), type), builder.add("fma", (x, y, x), type)]
    body = builder.body([*values, builder.add("convert", (values[2],), TensorType((40,), NAMED["float32"]))])
    random = np.random.default_rng(2)
    executable = same(body, [random_tensor(random, type) for _ in range(2)])
    assert executable.statistics.reference == []


@needs_nvrtc
@pytest.mark.parametrize("architecture", nvrtc.ARCHITECTURES)
@pytest.mark.parametrize("part", range(3))
def test_nvrtc_compiles_every_golden_artifact_and_contracts_nothing(architecture: str, part: int) -> None:
    contracts_nothing([read(path).body for path in ARTIFACTS[part::3]], architecture)


@needs_nvrtc
def test_nvrtc_compiles_every_form_and_contracts_nothing() -> None:
    bodies = [product(((m, 512), (512, m)), dtype) for m in (64, 2048) for dtype in ("float32", "float64", "float16")]
    bodies += [product(((256, 100), (100, 256)), accumulate=Accumulate(order="blocked", block=16, fma=True))]
    bodies += [reduction("float32", shape, (1,)) for shape in ((100, 5000), (2000, 500), (40000, 100))]
    bodies += [reduction("float32", (10**7,), (0,), "add", Accumulate(order="blocked", block=64))]
    bodies += [reduction(dtype, (2000, 500), (1,), "maximum") for dtype in ("float64", "int8", "uint64", "bfloat16")]
    bodies += [
        reduction("float32", (200, 3000), (1,), "add", Accumulate(order="pairwise")),
        softmax("float32", 2000, 999),
    ]
    texts = [kernel.text for kernel in sources(bodies)]
    for sign in ("xs[k]", "tl_exchange", "first_row", "__syncwarp", "__syncthreads"):
        assert any(sign in text for text in texts), sign
    contracts_nothing(bodies, "sm_90")


@needs_nvrtc
def test_a_contracted_product_would_be_seen() -> None:
    text = 'extern "C" __global__ void f(float* x) { *x = x[1] * x[2] + x[3]; }'
    assert "fma.rn.f32" not in nvrtc.to_ptx(text, "sm_90")
    with pytest.raises(nvrtc.CompileError, match="undefined"):
        nvrtc.to_ptx('extern "C" __global__ void f(float* x) { *x = absent; }', "sm_90")
