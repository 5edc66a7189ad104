"""Complex numbers in kernels: pairs of real ones, with the products and sums that the operations name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lower_graphs import Builder, random_tensor

from tlir.backends import run
from tlir.backends.interpreter import run_program
from tlir.ir.graph import Body, Graph, Node, Ref
from tlir.ir.ops import OPERATIONS, Accumulate
from tlir.ir.ops import complex_numbers as declared
from tlir.ir.types import BOOL, NAMED, TensorType, complex_of
from tlir.kernel.ir import Apply, Fallback, Kernel, Launch, Loop, results_of
from tlir.kernel.verify import verify_program
from tlir.passes.check.lowering import check_lowering
from tlir.passes.lower import lower
from tlir.passes.lower.functions import has_kernel

C64, F32 = NAMED["complex64"], NAMED["float32"]
DTYPES = ["complex64", "complex128", "complex<bfloat16>", "complex<float8_e4m3fn>", "complex<float128>"]


def dtype_of(name: str) -> Any:
    return NAMED[name] if name in NAMED else complex_of(NAMED[name.removeprefix("complex<").removesuffix(">")])


def kernels(body: Body) -> list[Kernel]:
    return [step.kernel for step in lower(body).steps if isinstance(step, Launch)]


def checked(body: Body, seed: int = 0) -> None:
    """The reference's words, nothing left to it, no complex number in a kernel, and every rule and expression."""
    random = np.random.default_rng(seed)
    inputs = [random_tensor(random, type) for type in body.input_types]
    program = lower(body)
    with np.errstate(all="ignore"):
        expected, results = run(Graph(body), inputs), run_program(program, body, inputs)
    assert all(a.same_words(b) for a, b in zip(expected, results, strict=True))
    assert not any(isinstance(step, Fallback) for step in program.steps)
    for kernel in kernels(body):
        values = [value for statement in kernel.body.walk() for value in results_of(statement)]
        assert not any(item.dtype.is_complex for item in (*kernel.buffers, *values))
    found = verify_program(program, body)
    assert not found.faults
    assert not found.undecided
    assert check_lowering(Graph(body)).status == "passed"


def elementwise(dtype: Any) -> Body:
    """Every operation that has parts, once."""
    type = TensorType((3, 4), dtype)
    part, truth = TensorType(type.shape, dtype.component), TensorType(type.shape, BOOL)
    builder = Builder(np.random.default_rng(0))
    x, y, flag = builder.input(type), builder.input(type), builder.input(truth)
    values = [builder.add(op, (x, y), type) for op in ("add", "subtract", "multiply")]
    values += [builder.add(op, (x,), type) for op in ("negate", "conjugate")]
    values += [builder.add(op, (y,), part) for op in ("real", "imag")]
    # the absolute value is the function hypot, which has no kernel in the widest formats
    values += [builder.add("abs", (y,), part)] if has_kernel("hypot", dtype.component) else []
    values.append(builder.add("complex", (values[-1], values[-2]), type))
    values.append(builder.add("select", (flag, x, values[2]), type))
    values += [builder.add("compare", (x, y), truth, comparison_direction=how) for how in ("EQ", "NE")]
    values += [builder.add("integer_pow", (x,), type, exponent=exponent) for exponent in (0, 1, 2, 7)]
    values += [
        builder.add("convert", (x,), TensorType(type.shape, NAMED[name]))
        for name in ("bool", "float32", "complex128", "complex64", "int32")
    ]
    values.append(builder.add("convert", (values[5],), type))
    return builder.body(values)


@pytest.mark.parametrize("name", DTYPES)
def test_elementwise_operations(name: str) -> None:
    checked(elementwise(dtype_of(name)))


def test_every_operation_of_complex_numbers_is_among_them() -> None:
    used = {node.op for node in elementwise(C64).nodes}
    assert {operation.name for operation in declared.OPERATIONS} <= used


ORDERS = [
    Accumulate(),
    Accumulate(NAMED["complex128"]),
    Accumulate(order="pairwise"),
    Accumulate(order="blocked", block=3),
]


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_sums_and_products(order: Accumulate) -> None:
    builder = Builder(np.random.default_rng(0))
    x, y = builder.input(TensorType((3, 7), C64)), builder.input(TensorType((7, 2), C64))
    total = builder.add("reduce", (x,), TensorType((3,), C64), reducer="add", dimensions=(1,), accumulate=order)
    product = builder.add("reduce", (x,), TensorType((7,), C64), reducer="multiply", dimensions=(0,), accumulate=order)
    attrs: dict[str, Any] = dict.fromkeys(("lhs_batching_dimensions", "rhs_batching_dimensions"), ())
    attrs |= {"lhs_contracting_dimensions": (1,), "rhs_contracting_dimensions": (0,), "accumulate": order}
    dot = builder.add(
        "dot_general", (x, builder.add("conjugate", (y,), builder.type(y))), TensorType((3, 2), C64), **attrs
    )
    checked(builder.body([total, product, dot]))


def test_running_totals_padding_and_computed_places() -> None:
    builder = Builder(np.random.default_rng(0))
    type = TensorType((5,), C64)
    x, start = builder.input(type), builder.input(TensorType((), NAMED["int32"]))
    totals = builder.add("cumulative", (x,), type, reducer="add", dimension=0, reverse=True)
    zero = builder.input(TensorType((), C64))
    edges = {"edge_padding_low": (2,), "edge_padding_high": (1,), "interior_padding": (1,)}
    wide = builder.add("pad", (totals, zero), TensorType((12,), C64), **edges)
    part = builder.add("dynamic_slice", (wide, start), TensorType((4,), C64), slice_sizes=(4,))
    checked(builder.body([totals, wide, part]))


def test_a_loop_carries_both_parts() -> None:
    """z := z * z + c, as a scan of four steps."""
    type = TensorType((6,), C64)
    step = Builder(np.random.default_rng(0))
    c, z = step.input(type), step.input(type)
    region = step.body([step.add("add", (step.add("multiply", (z, z), type), c), type)])
    builder = Builder(np.random.default_rng(0))
    start, shift = builder.input(type), builder.input(type)
    attrs = {"length": 4, "num_consts": 1, "num_carry": 1}
    builder.nodes.append(Node(2, "scan", (shift, start), attrs, (type,), regions=(region,)))
    body = builder.body([Ref(2)])
    checked(body)
    (kernel,) = kernels(body)
    (loop,) = (s for s in kernel.body.walk() if isinstance(s, Loop))
    assert [value.dtype for value in loop.parameters] == [F32, F32]


def test_a_product_is_four_products_a_difference_and_a_sum() -> None:
    builder = Builder(np.random.default_rng(0))
    type = TensorType((4,), C64)
    x, y = builder.input(type), builder.input(type)
    (kernel,) = kernels(builder.body([builder.add("multiply", (x, y), type)]))
    ops = [s.op for s in kernel.body.walk() if isinstance(s, Apply)]
    assert sorted(ops) == ["add", "multiply", "multiply", "multiply", "multiply", "subtract"]


@pytest.mark.parametrize("name", DTYPES[:-1])
@pytest.mark.parametrize("op", ["sqrt", "exponential", "sign", "log", "atanh", "power"])
def test_a_function_of_complex_numbers_is_one_operation_on_them(op: str, name: str) -> None:
    builder = Builder(np.random.default_rng(0))
    type = TensorType((4, 3), dtype_of(name))
    operands = [builder.input(type) for _ in OPERATIONS[op].operands]
    body = builder.body([builder.add(op, tuple(operands), type)])
    program = lower(body)
    (step,) = program.steps
    assert isinstance(step, Launch)
    applied = [s.op for s in step.kernel.body.walk() if isinstance(s, Apply)]
    assert applied == ["complex"] * len(operands) + [op, "real", "imag"]
    inputs = [random_tensor(np.random.default_rng(1), type) for type in body.input_types]
    with np.errstate(all="ignore"):
        (expected,), (result,) = run(Graph(body), inputs), run_program(program, body, inputs)
    assert expected.same_words(result)
    assert not verify_program(program, body).faults
    assert check_lowering(Graph(body)).status == "passed"


@pytest.mark.parametrize("op", ["sqrt", "exponential", "sign", "log"])
def test_what_rounds_an_exact_complex_result_is_left_to_the_reference_where_no_code_is(op: str) -> None:
    builder = Builder(np.random.default_rng(0))
    type = TensorType((4,), dtype_of("complex<float128>"))
    body = builder.body([builder.add(op, (builder.input(type),), type)])
    (step,) = lower(body).steps
    assert isinstance(step, Fallback)
    assert step.reason == "each part of its exact complex result is rounded once"
    assert check_lowering(Graph(body)).status == "passed"
