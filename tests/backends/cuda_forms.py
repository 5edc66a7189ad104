"""Graphs of one sum each, and the host build of chosen forms of their kernels."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from lower_graphs import Builder, random_tensor

from tlir.backends.cuda import groups, nvrtc, tiles, turned, wide
from tlir.backends.cuda.function import Source
from tlir.backends.cuda.host import HostExecutable, build
from tlir.backends.cuda.source import Code, code, module, plain, refusal, source
from tlir.backends.reference import evaluate
from tlir.floatlib.array_conversions import convert
from tlir.floatlib.format import FORMATS
from tlir.ir.graph import Body, Ref
from tlir.ir.ops import Accumulate
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, TensorType
from tlir.kernel.ir import Kernel, Launch
from tlir.kernel.joining import join_variables
from tlir.kernel.patterns import as_contraction
from tlir.passes.lower import lower

Make = Callable[[Kernel], Source | str]


def inputs_of(body: Body, seed: int = 0) -> list[Tensor]:
    """Integers of any words; floating-point numbers of which all but three are ordinary, so that few sums are NaN and
    an order or an element that is wrong shows."""
    random = np.random.default_rng(seed)
    return [_numbers(random, body.nodes[k].types[0]) for k in body.input_ids]


def _numbers(random: np.random.Generator, type: TensorType) -> Tensor:
    anything = random_tensor(random, type)
    dtype = type.dtype.component if type.dtype.is_complex else type.dtype
    if not dtype.is_float or not type.size:
        return anything
    shape = (*type.shape, 2) if type.dtype.is_complex else type.shape
    numbers = random.standard_normal(shape) * 2.0 ** random.integers(-3, 4, shape)
    words = np.array(convert(FORMATS["float64"], dtype.float_format, np.atleast_1d(numbers).view(np.uint64)))
    words = words.astype(type.dtype.word_dtype).reshape(type.size, -1)
    kept = random.integers(0, type.size, 3 if type.size > 100 else 0)
    words[kept] = anything.words.reshape(type.size, -1)[kept]
    return Tensor(type, np.array(words.reshape(anything.words.shape), order="C"))


def same(body: Body, make: Make = source, inputs: Sequence[Tensor] | None = None) -> list[Source]:
    """Compares the host build with the reference, with the threads of a block in both orders; the kernels' sources."""
    (made,) = same_all([body], make, None if inputs is None else [inputs])
    return made


def same_all(
    bodies: Sequence[Body],
    make: Make = source,
    inputs: Sequence[Sequence[Tensor]] | None = None,
    settles: bool = False,
) -> list[list[Source]]:
    """``same`` for several bodies, which are built together. No rounding may be left open but with ``settles``."""
    made: list[list[Source]] = []
    for body in bodies:
        codes = [code(step.kernel, make) for step in lower(body).steps if isinstance(step, Launch)]
        made.append([one for found in codes if isinstance(found, Code) for one, _ in found.sources])
        assert all(isinstance(found, Code) for found in codes), codes
    built = build([one for sources in made for one in sources])
    for number, body in enumerate(bodies):
        given = list(inputs_of(body) if inputs is None else inputs[number])
        expected = evaluate(body, given)
        for descending in (False, True):
            executable = HostExecutable(body, descending, make, built)
            results = executable.run(given)
            assert settles or not executable.settled, number
            assert [a.same_words(b) for a, b in zip(expected, results, strict=True)] == [True] * len(expected), number
    return made


def sources(bodies: Sequence[Body]) -> list[Source]:
    codes = [code(step.kernel) for body in bodies for step in lower(body).steps if isinstance(step, Launch)]
    return [one for found in codes if isinstance(found, Code) for one, _ in found.sources]


def contracts_nothing(bodies: Sequence[Body], architecture: str) -> None:
    """The only fused operations are those that the source asks for by name."""
    kernels = sources(bodies)
    ptx = nvrtc.to_ptx(module(kernels), architecture)
    found = dict(re.findall(r"\.entry (\w+)\((.*?)^}", ptx, re.DOTALL | re.MULTILINE))
    assert found.keys() == {kernel.name for kernel in kernels}
    for kernel in kernels:
        for kind, name in (("f64", "__fma_rn"), ("f32", "__fmaf_rn")):
            fused = re.search(rf"\b(fma|mad)\.(rn\.)?(ftz\.)?{kind}\b", found[kernel.name])
            assert fused is None or f"{name}(" in kernel.text
    assert ".ftz" not in ptx


def grouped(size: int) -> Make:
    """Kernels in groups of so many threads, whatever their shapes."""

    def make(kernel: Kernel) -> Source | str:
        total = prod(v.extent for v in kernel.space)
        kernel = join_variables(kernel)
        made = groups.grouped(kernel, total, size) if total and refusal(kernel) is None else None
        return made or refusal(kernel) or plain(kernel, total)

    return make


def by_rows(kernel: Kernel) -> Source | str:
    """Kernels of ordered sums along rows with turned squares, whatever their number of rows."""
    total = prod(v.extent for v in kernel.space)
    kernel = join_variables(kernel)
    return turned.turned(kernel, total) if turned.fits(kernel) else plain(kernel, total)


def tiled(shape: tiles.Shape) -> Make:
    """Sums of products in tiles of one shape, whatever their own."""

    def make(kernel: Kernel) -> Source | str:
        total = prod(v.extent for v in kernel.space)
        found = as_contraction(kernel) if total else None
        if found is not None and tiles.holds(found) and refusal(kernel) is None:
            return tiles.Tiles(found, shape).source()
        return refusal(kernel) or plain(join_variables(kernel), total)

    return make


def packed(kernel: Kernel) -> Source | str:
    """Kernels in packs wherever they can be, whatever their sizes."""
    total = prod(v.extent for v in kernel.space)
    kernel = join_variables(kernel)
    width = wide.width_of(kernel) if total else None
    return refusal(kernel) or (plain(kernel, total) if width is None else wide.wide(kernel, width))


def reduction(
    dtype: str,
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    reducer: str = "add",
    accumulate: Accumulate | None = None,
) -> Body:
    builder, of = Builder(np.random.default_rng(0)), NAMED[dtype]
    attrs: dict[str, Any] = {"reducer": reducer, "dimensions": axes}
    attrs |= {} if accumulate is None else {"accumulate": accumulate}
    kept = tuple(size for axis, size in enumerate(shape) if axis not in axes)
    x = builder.input(TensorType(shape, of))
    return builder.body([builder.add("reduce", (x,), TensorType(kept, of), **attrs)])


def softmax(dtype: str, rows: int, columns: int) -> Body:
    """With a division by the sum, whose order is declared."""
    builder, of = Builder(np.random.default_rng(0)), NAMED[dtype]
    type, of_rows = TensorType((rows, columns), of), TensorType((rows,), of)
    x = builder.input(type)

    def along(reducer: str, value: Ref) -> Ref:
        total = builder.add("reduce", (value,), of_rows, reducer=reducer, dimensions=(1,))
        return builder.add("broadcast_in_dim", (total,), type, broadcast_dimensions=(0,))

    lower = builder.add("subtract", (x, along("maximum", x)), type)
    power = builder.add("exponential", (lower,), type)
    return builder.body([builder.add("divide", (power, along("add", power)), type)])


def product(
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
    dtype: str = "float32",
    *,
    batch: tuple[tuple[int, ...], tuple[int, ...]] = ((), ()),
    summed: tuple[tuple[int, ...], tuple[int, ...]] = ((1,), (0,)),
    accumulate: Accumulate | None = None,
    result: str | None = None,
    prepare: Callable[[Builder, Ref], Ref] | None = None,
    bias: bool = False,
) -> Body:
    """A ``dot_general`` of two inputs, which ``prepare`` may make a view of, with a bias and a maximum behind it."""
    builder = Builder(np.random.default_rng(0))
    factors = [builder.input(TensorType(shape, NAMED[dtype])) for shape in shapes]
    if prepare is not None:
        factors = [prepare(builder, factor) for factor in factors]
    types = [builder.type(factor) for factor in factors]
    free = [
        [type.shape[a] for a in range(type.rank) if a not in (*batch[k], *summed[k])] for k, type in enumerate(types)
    ]
    shape = (*(types[0].shape[a] for a in batch[0]), *free[0], *free[1])
    of = TensorType(shape, NAMED[result or dtype])
    attrs: dict[str, Any] = {
        "lhs_batching_dimensions": batch[0],
        "rhs_batching_dimensions": batch[1],
        "lhs_contracting_dimensions": summed[0],
        "rhs_contracting_dimensions": summed[1],
    }
    attrs |= {} if accumulate is None else {"accumulate": accumulate}
    value = builder.add("dot_general", factors, of, **attrs)
    if bias:
        vector = builder.input(TensorType(shape[-1:], of.dtype))
        wide = builder.add("broadcast_in_dim", (vector,), of, broadcast_dimensions=(len(shape) - 1,))
        value = builder.add("add", (value, wide), of)
        value = builder.add("maximum", (value, wide), of)
    return builder.body([value])


def random_contraction(seed: int) -> Body:
    """A product of two inputs with batches, rows, columns and terms along any of their axes, views before it and
    something behind it, in any order."""
    random = np.random.default_rng(seed)
    builder = Builder(random)
    dtype = NAMED[builder.pick(("float32", "float64", "float32", "float16", "bfloat16", "int32", "uint8"))]
    batch, terms, *free = (
        [int(n) for n in random.integers(1, 21, count)] for count in random.integers((0, 1, 1, 1), 3)
    )
    factors, places = [], []
    for own in free:
        logical = [*batch, *terms, *own]
        order = [int(axis) for axis in random.permutation(len(logical))]
        factors.append(_view(builder, TensorType(tuple(logical[axis] for axis in order), dtype)))
        places.append([order.index(axis) for axis in range(len(logical))])
    split = len(batch) + len(terms)
    kept = [sorted(place[split:]) for place in places]
    sizes = [[builder.type(x).shape[axis] for axis in axes] for x, axes in zip(factors, kept, strict=True)]
    attrs: dict[str, Any] = {"accumulate": builder.order(dtype, fma=True)} if random.random() < 0.7 else {}
    for side, place in zip(("lhs", "rhs"), places, strict=True):
        attrs[f"{side}_batching_dimensions"] = tuple(place[: len(batch)])
        attrs[f"{side}_contracting_dimensions"] = tuple(place[len(batch) : split])
    value = builder.add("dot_general", factors, TensorType((*batch, *sizes[0], *sizes[1]), dtype), **attrs)
    return builder.body([builder.binary(value) if random.random() < 0.5 else value])


def _view(builder: Builder, type: TensorType) -> Ref:
    """A value of this type that is a view of an input."""
    kind = builder.pick(("input", "reverse", "slice", "pad"))
    if kind == "reverse":
        axes = tuple(range(0, type.rank, 2))
        return builder.add("reverse", (builder.input(type),), type, dimensions=axes)
    if kind == "slice":
        limits = tuple(2 * size + 1 for size in type.shape)
        attrs = {"start_indices": (1,) * type.rank, "limit_indices": limits, "strides": (2,) * type.rank}
        return builder.add("slice", (builder.input(TensorType(limits, type.dtype)),), type, **attrs)
    if kind == "pad" and min(type.shape) > 1:
        inner, zeros = TensorType(tuple(size - 1 for size in type.shape), type.dtype), (0,) * type.rank
        operands = (builder.input(inner), builder.input(TensorType((), type.dtype)))
        attrs = {"edge_padding_low": (1,) * type.rank, "edge_padding_high": zeros, "interior_padding": zeros}
        return builder.add("pad", operands, type, **attrs)
    return builder.input(type)
