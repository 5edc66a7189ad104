"""Every operation has a bound or a reason, and no permitted execution of a random graph leaves its enclosure."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from bounds_graphs import Builder, numpy_type, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st

from tlir.backends import run
from tlir.compare.auto import compare_auto
from tlir.compare.bounds import POLICIES, RULES, SEVERAL_RULES, UNBOUNDED, Enclosure, enclose, resolve
from tlir.compare.bounds import intervals as iv
from tlir.compare.executions import execute
from tlir.errors import ArtifactError, UsageError
from tlir.floatlib.format import FORMATS
from tlir.ir.graph import Graph, Node, Producer, Sample
from tlir.ir.ops import OPERATIONS, Accumulate
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, TensorType
from tlir.schema import read

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = sorted((ROOT / "tests" / "golden").glob("*/*.json"))
JAX, TORCH = Producer("jax", "0.10.2"), Producer("torch", "2.13.0")
REORDER = resolve("reorder")


def test_every_operation_has_a_rule_or_a_stated_reason() -> None:
    assert set(RULES) | set(SEVERAL_RULES) | {"input"} == set(OPERATIONS)
    assert set(UNBOUNDED) <= set(OPERATIONS)
    assert all(len(reason) > 20 for reason in UNBOUNDED.values())
    assert not set(RULES) & set(SEVERAL_RULES)


# ---- soundness ------------------------------------------------------------------------------------------------------


def violations(graph: Graph, inputs: list[Tensor], policy: str, seeds: range) -> list[str]:
    """Every value of the reference and of random executions that lies outside of its node's enclosure."""
    freedoms = resolve(policy, graph.producer)
    kept: dict[int, tuple[Enclosure, ...]] = {}
    found: list[str] = []

    def check(node: Node, tensors: tuple[Tensor, ...]) -> None:
        for tensor, enclosure in zip(tensors, kept[node.id], strict=True):
            if not enclosure.contains(tensor).all():
                found.append(f"{policy}: {node}")

    enclose(graph.body, inputs, freedoms, lambda node, enclosures: kept.__setitem__(node.id, enclosures))
    for node in graph.nodes:
        check(node, tuple(enclosure.tensor for enclosure in kept[node.id]))
    for seed in seeds:
        execute(graph.body, inputs, freedoms, seed, check)
    return found


@pytest.mark.parametrize("seed", range(60))
def test_no_execution_of_a_random_graph_leaves_its_enclosures(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph, inputs = random_graph(rng, int(rng.integers(2, 12)))
    for policy in POLICIES:
        assert violations(graph, inputs, policy, range(3)) == []


@settings(max_examples=40, deadline=None)
@given(st.integers(1000, 10**9), st.sampled_from(sorted(POLICIES)))
def test_no_execution_of_a_drawn_graph_leaves_its_enclosures(seed: int, policy: str) -> None:
    rng = np.random.default_rng(seed)
    graph, inputs = random_graph(rng, int(rng.integers(2, 10)))
    assert violations(graph, inputs, policy, range(4)) == []


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_golden_artifacts_hold_no_bug_and_their_executions_stay_inside(path: Path) -> None:
    graph = read(path)
    report = compare_auto(graph)
    assert report.verdict in ("identical", "rounding", "reordering")
    assert report.ok
    assert violations(graph, list(graph.samples[0].inputs), "frontend", range(4)) == []


# ---- sums, against exact arithmetic ---------------------------------------------------------------------------------


def sums_in_every_order(values: list[float], dtype: str) -> set[float]:
    """Every value that the sum of a few numbers can have, over all orders and groupings."""
    kind = numpy_type(dtype)
    known: dict[tuple[int, ...], set[float]] = {(k,): {float(kind.type(v))} for k, v in enumerate(values)}

    def of(chosen: tuple[int, ...]) -> set[float]:
        if chosen not in known:
            results: set[float] = set()
            for mask in range(1, 1 << (len(chosen) - 1)):
                left = tuple(k for place, k in enumerate(chosen) if place == 0 or not mask >> (place - 1) & 1)
                right = tuple(k for k in chosen if k not in left)
                results |= {float(kind.type(a) + kind.type(b)) for a in of(left) for b in of(right)}
            known[chosen] = results
        return known[chosen]

    return of(tuple(range(len(values))))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("seed", range(12))
def test_every_order_of_a_sum_is_enclosed(dtype: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = (rng.normal(size=6) * 10.0 ** rng.integers(-3, 4, size=6)).astype(numpy_type(dtype))
    build = Builder()
    total = build.reduce(build.input(TensorType((6,), NAMED[dtype])), "add", 0)
    graph = build.graph(total)
    (enclosure,), _ = enclose(graph.body, [Tensor.from_numpy(values)], REORDER)
    everything = sums_in_every_order(values.tolist(), dtype)
    assert len(everything) > 1 or dtype == "float16"
    assert all(enclosure.lo <= value <= enclosure.hi for value in everything)
    exact = sum(map(Fraction, values.tolist()))
    size = sum(abs(Fraction(value)) for value in values.tolist())
    unit = Fraction(1, 1 << NAMED[dtype].float_format.precision)
    # no wider than twice the bound of Jeannerod and Rump, and float64's own error
    allowed = 2 * 5 * unit * size + 20 * Fraction(1, 1 << 53) * size
    assert exact - Fraction(float(enclosure.lo)) <= allowed
    assert Fraction(float(enclosure.hi)) - exact <= allowed


def test_partial_sums_that_overflow_make_any_result_possible() -> None:
    build = Builder()
    graph = build.graph(build.reduce(build.input(TensorType((4,), NAMED["float16"])), "add", 0))
    values = np.array([60000.0, -60000.0, 60000.0, -60000.0], np.float16)
    (enclosure,), _ = enclose(graph.body, [Tensor.from_numpy(values)], REORDER)
    for special in (np.inf, -np.inf, np.nan, 0.0):
        assert enclosure.contains(Tensor.from_numpy(np.array(special, np.float16))).all()
    one_sided = np.array([60000.0, -10000.0, 50000.0, -50000.0], np.float16)
    (enclosure,), _ = enclose(graph.body, [Tensor.from_numpy(one_sided)], REORDER)
    assert enclosure.contains(Tensor.from_numpy(np.array(np.inf, np.float16))).all()
    assert not enclosure.contains(Tensor.from_numpy(np.array(np.nan, np.float16))).all()


def test_infinite_and_nan_terms_are_the_same_in_every_order() -> None:
    build = Builder()
    a = build.input(TensorType((3, 3), NAMED["float32"]))
    graph = build.graph(build.dot(a, a), build.reduce(a, "add", 1), producer=TORCH)
    array = np.array([[np.inf, 1, 2], [1, 2, 3], [4, np.nan, 5]], np.float32)
    inputs = [Tensor.from_numpy(array)]
    own = run(graph, inputs)
    enclosures, _ = enclose(graph.body, inputs, resolve("frontend", TORCH))
    for tensor, enclosure in zip(own, enclosures, strict=True):
        assert enclosure.contains(tensor).all()
        special = ~np.isfinite(tensor.to_numpy())
        wrong = np.where(special, np.float32(1.0), tensor.to_numpy())
        assert not enclosure.contains(Tensor.from_numpy(wrong))[special].any()


# ---- functions, roundings and branches ------------------------------------------------------------------------------


def elements(graph: Graph, array: np.ndarray, policy: str = "strict", producer: Producer | None = None) -> Enclosure:
    (enclosure,), _ = enclose(graph.body, [Tensor.from_numpy(array)], resolve(policy, producer))
    return enclosure


def test_correctly_rounded_operations_of_sure_operands_are_sure() -> None:
    build = Builder()
    x = build.input(TensorType((50,), NAMED["float32"]))
    graph = build.graph(build.like("exponential", build.like("divide", build.like("sqrt", x), build.like("add", x, x))))
    array = np.random.default_rng(0).uniform(0.1, 9, 50).astype(np.float32)
    assert elements(graph, array).all_sure
    assert not elements(graph, array, "frontend", JAX).all_sure


def test_a_product_that_may_be_fused_is_not_rounded_and_one_that_may_not_is() -> None:
    build = Builder()
    x = build.input(TensorType((20,), NAMED["float32"]))
    square = build.like("multiply", x, x)
    plain = build.graph(square)
    fused = build.graph(build.like("add", square, x))
    array = np.random.default_rng(0).normal(size=20).astype(np.float32)
    assert elements(plain, array, "reorder").all_sure
    assert not elements(fused, array, "reorder").all_sure
    assert elements(fused, array, "strict").all_sure
    exact = np.array([float(Fraction(float(v)) ** 2 + Fraction(float(v))) for v in array]).astype(np.float32)
    assert elements(fused, array, "reorder").contains(Tensor.from_numpy(exact)).all()


def test_subnormals_are_flushed_where_the_frontend_does_so() -> None:
    build = Builder()
    x = build.input(TensorType((1,), NAMED["float32"]))
    graph = build.graph(build.like("add", x, x))
    array, zero = np.array([1e-40], np.float32), Tensor.from_numpy(np.zeros(1, np.float32))
    assert elements(graph, array, "frontend", JAX).contains(zero).all()
    assert not elements(graph, array, "frontend", TORCH).contains(zero).all()


def test_float16_subnormals_are_normal_numbers_where_they_are_computed() -> None:
    build = Builder()
    x = build.input(TensorType((1,), NAMED["float16"]))
    graph = build.graph(build.like("add", x, x))
    array, zero = np.array([2.0**-20], np.float16), Tensor.from_numpy(np.zeros(1, np.float16))
    assert not elements(graph, array, "frontend", JAX).contains(zero).all()
    assert elements(graph, array, "loose", JAX).contains(zero).all()


def test_a_comparison_that_may_go_either_way_gives_a_reason() -> None:
    build = Builder()
    x = build.input(TensorType((3,), NAMED["float32"]))
    total = build.spread(build.reduce(x, "add", 0), (3,), 0)
    above = build.compare(total, build.filled(x, 0.6), "GT")
    graph = build.graph(build.node("select", (above, x, build.like("negate", x)), build.type(x)), producer=TORCH)
    array = np.array([0.1, 0.2, 0.3], np.float32)
    (enclosure,), reasons = enclose(graph.body, [Tensor.from_numpy(array)], REORDER)
    assert enclosure.contains(Tensor.from_numpy(array)).all()
    assert enclosure.contains(Tensor.from_numpy(-array)).all()
    assert {reasons[int(number)].kind for number in enclosure.reasons} == {"branch"}
    # the recorded side is explained by another order, but it cannot be told whether it is
    for recorded in (array, -array):
        given = replace(graph, samples=(Sample((Tensor.from_numpy(array),), (Tensor.from_numpy(recorded),)),))
        report = compare_auto(given)
        same = np.array_equal(report.outputs[0].to_json()["verdicts"].get("identical"), 3)
        assert report.verdict == ("identical" if same else "undecided")
        assert report.ok == same
        assert compare_auto(given, rtol=3).ok


def test_a_selection_between_branches_that_meet_is_no_open_branch() -> None:
    build = Builder()
    x = build.input(TensorType((3,), NAMED["float32"]))
    total = build.spread(build.reduce(x, "add", 0), (3,), 0)
    rest = build.like("subtract", total, build.filled(x, 0.6))
    positive = build.compare(rest, build.filled(x, 0.0), "GT")
    relu = build.node("select", (positive, rest, build.filled(x, 0.0)), build.type(x))
    (enclosure,), _ = enclose(
        build.graph(relu).body, [Tensor.from_numpy(np.array([0.1, 0.2, 0.3], np.float32))], REORDER
    )
    assert not enclosure.reasons.any()
    assert (np.maximum(np.abs(enclosure.lo), enclosure.hi) < 1e-7).all()


def test_the_greatest_of_close_elements_is_undecided_and_of_others_sure() -> None:
    build = Builder()
    x = build.input(TensorType((2, 3), NAMED["float32"]))
    sums = build.reduce(x, "add", 1)
    index = build.node("argmax", (sums,), TensorType((), NAMED["int32"]), dimension=0)
    graph = build.graph(index)
    close = np.array([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]], np.float32)
    enclosure = elements(graph, close, "reorder")
    assert (float(enclosure.lo), float(enclosure.hi)) == (0.0, 1.0)
    assert elements(graph, close * np.float32([[1], [2]]), "reorder").all_sure


def test_sorted_values_are_enclosed_by_sorted_ends() -> None:
    build = Builder()
    x = build.input(TensorType((3, 4), NAMED["float32"]))
    graph = build.graph(build.like("sort", build.reduce(x, "add", 1), dimension=0))
    array = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)
    enclosure = elements(graph, array, "reorder")
    for seed in range(20):
        (tensor,) = execute(graph.body, [Tensor.from_numpy(array)], REORDER, seed)
        assert enclosure.contains(tensor).all()
    assert (np.diff(enclosure.lo) >= 0).all()


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float64"])
@given(st.floats(allow_nan=False))
def test_roundings_to_a_format(name: str, value: float) -> None:
    """Against rounding of floatlib; above and below are the numbers next to the value."""
    from tlir.floatlib.arrays import convert

    fmt = FORMATS[name]
    x = np.array([value])
    with np.errstate(all="ignore"):
        own = float(iv.nearest(fmt, x)[0])
        words = convert(FORMATS["float64"], fmt, x.view(np.uint64))
        theirs = float(np.asarray(convert(fmt, FORMATS["float64"], words)).view(np.float64)[0])
        low, high = float(iv.below(fmt, x)[0]), float(iv.above(fmt, x)[0])
    if np.isnan(theirs):
        assert np.isinf(own)  # an overflow of a format without infinities
    else:
        assert own == theirs
    assert low <= value <= high
    if abs(value) <= iv.limits(fmt).top:
        assert own in (low, high)


# ---- policies and tables --------------------------------------------------------------------------------------------


def test_policies_are_nested() -> None:
    graph = read(ROOT / "tests" / "golden" / "jax" / "attention.json")
    widths = []
    for policy in ("strict", "reorder", "frontend", "loose"):
        (enclosure,), _ = enclose(graph.body, graph.samples[0].inputs, resolve(policy, graph.producer))
        widths.append(enclosure)
    for inner, outer in pairwise(widths):
        assert (outer.lo <= inner.lo).all()
        assert (outer.hi >= inner.hi).all()
    assert widths[0].all_sure


def test_reciprocals_are_for_compiled_outputs() -> None:
    assert resolve("frontend", JAX).reciprocal == "never"
    assert resolve("frontend", replace(JAX, outputs="compiled")).reciprocal == "constant"
    assert resolve("loose", JAX).reciprocal == "always"
    build = Builder()
    x = build.input(TensorType((100,), NAMED["float32"]))
    array = np.random.default_rng(3).normal(size=100).astype(np.float32)
    through = array * (np.float32(1) / np.float32(3))
    assert (through != array / np.float32(3)).any()
    graph = build.graph(build.like("divide", x, build.filled(x, 3.0)))
    for producer, verdict in ((JAX, "bug"), (replace(JAX, outputs="compiled"), "reordering")):
        sample = Sample((Tensor.from_numpy(array),), (Tensor.from_numpy(through),))
        given = replace(graph, producer=producer, samples=(sample,))
        assert compare_auto(given).verdict == verdict


def test_a_table_of_accuracies_replaces_the_own_one(tmp_path: Path) -> None:
    build = Builder()
    x = build.input(TensorType((200,), NAMED["float32"]))
    graph = build.graph(build.like("exponential", x), producer=TORCH)
    array = np.random.default_rng(0).normal(size=200).astype(np.float32)
    (right,) = run(graph, [Tensor.from_numpy(array)])
    off = np.nextafter(np.nextafter(right.to_numpy(), np.float32(np.inf)), np.float32(np.inf))
    given = replace(graph, samples=(Sample((Tensor.from_numpy(array),), (Tensor.from_numpy(off),)),))
    assert compare_auto(given).verdict == "bug"
    table = tmp_path / "table.toml"
    section = '[[table]]\nname = "mine"\nfrontend = ""\nversions = [""]\nflushes_subnormals = false\ndefault = 1.0\n'
    table.write_text(section + "[table.float32]\nexponential = 3.0\n[table.float64]\n", encoding="utf-8")
    report = compare_auto(given, table=table)
    assert report.verdict == "rounding"
    assert "mine" in str(report.freedoms)


@pytest.mark.parametrize("text", ["", "x = 1", "[[table]]\nname = 3", "not toml"])
def test_a_table_that_cannot_be_read(tmp_path: Path, text: str) -> None:
    table = tmp_path / "table.toml"
    table.write_text(text, encoding="utf-8")
    with pytest.raises(ArtifactError, match="cannot be read"):
        resolve("frontend", JAX, table)


def test_a_policy_that_does_not_exist() -> None:
    with pytest.raises(UsageError, match="no policy 'lax'"):
        resolve("lax", JAX)


@pytest.mark.parametrize("name", sorted(set(SEVERAL_RULES) & set(UNBOUNDED)))
def test_operations_without_a_bound_are_undecided_with_the_reason(name: str) -> None:
    assert "condition" in UNBOUNDED[name]


def test_a_factorization_that_differs_is_undecided() -> None:
    build = Builder()
    a = build.input(TensorType((2, 2), NAMED["float32"]))
    graph = build.graph(build.node("cholesky", (a,), build.type(a)), producer=TORCH)
    array = np.array([[4.0, 1.0], [1.0, 3.0]], np.float32)
    (own,) = run(graph, [Tensor.from_numpy(array)])
    near = np.nextafter(own.to_numpy(), np.float32(9))
    given = replace(graph, samples=(Sample((Tensor.from_numpy(array),), (Tensor.from_numpy(near),)),))
    report = compare_auto(given)
    assert report.verdict == "undecided"
    assert not report.ok
    ((reason, count),) = report.outputs[0].reasons
    assert (reason.text, count) == (UNBOUNDED["cholesky"], 4)
    assert compare_auto(given, ulps=2).ok


def test_accumulation_in_a_wider_format_is_inside() -> None:
    build = Builder()
    x = build.input(TensorType((100,), NAMED["float16"]))
    narrow = build.graph(build.reduce(x, "add", 0))
    array = np.random.default_rng(0).normal(size=100).astype(np.float16)
    wide = Builder()
    y = wide.input(TensorType((100,), NAMED["float16"]))
    other = wide.graph(wide.reduce(y, "add", 0, accumulate=Accumulate(NAMED["float64"])))
    assert elements(narrow, array, "reorder").contains(run(other, [Tensor.from_numpy(array)])[0]).all()


@pytest.mark.parametrize("producer", [JAX, TORCH])
def test_compiled_code_may_leave_out_the_rounding_of_an_input(producer: Producer) -> None:
    """half + half * half of a float32 input, computed in float32 throughout; as written where nothing is compiled."""
    build = Builder()
    half = build.convert(build.input(TensorType((5,), NAMED["float32"])), "float16")
    graph = build.graph(build.like("add", half, build.like("multiply", half, half)), producer=producer)
    x = np.array([1.0, 1.001, -0.37, 3.14159, 77.7], np.float32)
    kept = (x + x * x).astype(np.float16)
    (written,) = run(graph, [Tensor.from_numpy(x)])
    assert (kept != written.to_numpy()).any()
    sample = Sample((Tensor.from_numpy(x),), (Tensor.from_numpy(kept),))
    for outputs, verdict in (("compiled", "reordering"), ("op-by-op", "bug")):
        given = replace(graph, producer=replace(producer, outputs=outputs), samples=(sample,))
        assert compare_auto(given).verdict == verdict
    # a conversion there and back rounds, compiled or not
    build = Builder()
    back = build.convert(build.convert(build.input(TensorType((5,), NAMED["float32"])), "float16"), "float32")
    graph = build.graph(back, producer=replace(producer, outputs="compiled"))
    sample = Sample((Tensor.from_numpy(x),), (Tensor.from_numpy(x),))
    assert compare_auto(replace(graph, samples=(sample,))).verdict == "bug"
