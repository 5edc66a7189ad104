"""What the JAX capture records of a whole function: inputs, trees, constants, names, sources, and refusals."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax
from jax_oracle import capture, checked, expect_words, ops, outputs

from tlir.ir.tree import build

X = np.array([1, 2, 3, 4], np.float32)
Pair = namedtuple("Pair", "left right")
WEIGHTS = jnp.arange(4.0) + 0.5
OFFSET = np.array([0.1, 0.2, 0.3, 0.4])


def square_sum(x: Any) -> Any:
    return jnp.sum(x * x)


def line_of(fn: Any, text: str) -> int:
    """The number of the line of ``fn`` that holds ``text``."""
    lines, first = inspect.getsourcelines(fn)
    return first + next(k for k, line in enumerate(lines) if text in line)


def test_the_sum_of_squares_has_three_nodes() -> None:
    artifact = capture.export(square_sum, X)
    assert [node["op"] for node in artifact["nodes"]] == ["input", "multiply", "reduce"]
    assert artifact["version"] == 1
    assert artifact["name"] == "square_sum"
    assert artifact["samples"][0]["outputs"] == [{"dtype": "float32", "shape": [], "words": "41f00000"}]
    expect_words(square_sum, X)


# ---- inputs, outputs and trees --------------------------------------------------------------------------------------


def test_arguments_are_named_by_their_paths() -> None:
    def f(params: Any, x: Any, *rest: Any, scale: Any, **more: Any) -> Any:
        return params["w"][0] + x + rest[0] + rest[1].left + scale + more["shift"]

    args = ({"w": [X, X], "a": None}, X, X, Pair(X, (X, None)))
    artifact = capture.export(f, *args, shift=X, scale=2.0)
    names = [node.get("name") for node in artifact["nodes"][: len(artifact["input_ids"])]]
    assert names == [
        "params['w'][0]",
        "params['w'][1]",
        "x",
        "rest[0]",
        "rest[1].left",
        "rest[1].right[0]",
        "scale",
        "shift",
    ]
    graph = checked(artifact)
    assert artifact["version"] == 3
    rebuilt = build(graph.input_tree, list(range(8)))
    assert rebuilt == (({"a": None, "w": [0, 1]}, 2, 3, (4, (5, None))), {"scale": 6, "shift": 7})
    expect_words(f, *args, shift=X, scale=2.0)


def test_results_are_trees() -> None:
    def f(x: Any) -> Any:
        return {"b": [x, x + 1], "a": Pair(x * 2, None)}

    graph = checked(capture.export(f, X))
    assert build(graph.output_tree, ["double", "same", "more"]) == {"a": ("double", None), "b": ["same", "more"]}


@pytest.mark.parametrize(
    ("result", "tree", "version"),
    [
        (lambda x: x, None, 1),
        (lambda x: (x,), None, 1),
        (lambda x: (x, x), None, 2),
        (lambda x: (), None, 2),
        (lambda x: [x], {"list": [0]}, 3),
        (lambda x: Pair(x, x), {"namedtuple": "Pair", "fields": [["left", 0], ["right", 1]]}, 3),
        (lambda x: (x, (x,)), {"tuple": [0, {"tuple": [1]}]}, 3),
        (lambda x: OrderedDict(z=x, a=x), {"dict": [["z", 0], ["a", 1]]}, 3),
        (lambda x: {2: x, 1: x}, {"dict": [[1, 0], [2, 1]]}, 3),
    ],
)
def test_versions_and_output_trees(result: Any, tree: Any, version: int) -> None:
    artifact = capture.export(result, X)
    assert artifact.get("output_tree") == tree
    assert artifact["version"] == version
    checked(artifact)


def test_a_result_of_none_is_a_null_tree() -> None:
    artifact = capture.export(lambda x: None, X)
    assert artifact["output_tree"] is None
    assert artifact["output_ids"] == []
    checked(artifact)


def test_registered_classes_are_trees_with_their_attribute_names() -> None:
    @functools.partial(jax.tree_util.register_dataclass, data_fields=["w", "b"], meta_fields=["rate"])
    @dataclass
    class Layer:
        w: Any
        b: Any
        rate: float

    artifact = capture.export(lambda layer: layer.w * layer.b * layer.rate, Layer(X, X, 0.5))
    assert [node["name"] for node in artifact["nodes"][:2]] == ["layer.w", "layer.b"]
    assert artifact["input_tree"]["args"] == [{"namedtuple": "Layer", "fields": [["w", 0], ["b", 1]]}]
    checked(artifact)


def test_programs_without_equations_inputs_or_outputs() -> None:
    unused = capture.export(lambda x, y: y, X, X)
    assert (unused["input_ids"], unused["output_ids"], len(unused["nodes"])) == ([0, 1], [1], 2)
    twice = capture.export(lambda x: (x, x + 1, x), X)
    assert twice["output_ids"] == [0, 3, 0]
    nothing_in = capture.export(lambda: jnp.arange(3))
    assert (nothing_in["input_ids"], nothing_in["version"]) == ([], 2)
    constant = capture.export(lambda x: (3.0, WEIGHTS), X)
    assert ops(constant) == []
    for artifact in (unused, twice, nothing_in, constant):
        checked(artifact)
    expect_words(lambda x: (x, x + 1, x, 3.0, jnp.arange(2)), X)


def test_python_numbers_and_64_bit_arrays_are_taken_as_jax_takes_them() -> None:
    artifact = capture.export(lambda a, b, c, d: a + b * c, True, 2, 0.1, 1j)
    kinds = [(tensor["dtype"], tensor["words"]) for tensor in artifact["samples"][0]["inputs"]]
    assert kinds[:3] == [("bool", "1"), ("int32", "00000002"), ("float32", "3dcccccd")]
    assert kinds[3][0] == "complex64"
    with pytest.warns(UserWarning, match="argument x is float64 and is rounded to float32"):
        capture.export(lambda x: x, np.array([0.1]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        capture.export(lambda x: x, np.array([0.5, np.nan]))
        with jax.enable_x64(True):
            wide = capture.export(lambda x: x * 2, np.array([0.1]))
    assert wide["producer"]["flags"] == {"x64": True}
    assert wide["samples"][0]["outputs"][0]["words"] == "3fc999999999999a"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("text",), r"argument x is a str, neither an array nor a number; .*functools.partial\(f, x=…\)"),
        (({1.5: X},), r"x has the key 1.5: keys must be strings or integers, or tuples of them"),
        (({(1, None): X},), r"x has the key None: keys must be strings or integers"),
        ((OrderedDict({("a", 2): X, "('a', 2)": X}),), r"x has a tuple and its text as keys"),
        ((np.array(["a"]),), "argument x"),
        ((2**80,), "argument x"),
    ],
)
def test_arguments_that_are_no_arrays_are_refused(args: Any, message: str) -> None:
    with pytest.raises(capture.CaptureError, match=message):
        capture.export(lambda x: x, *args)


def test_what_is_no_array_inside_an_argument_is_a_part_of_the_program() -> None:
    def layer(p: Any, scale: Any, *, options: Any) -> Any:
        assert options[1] == "plain"
        return {"y": p["act"](p["w"]) * scale, "act": p["act"], "kind": options[1], "n": options[0]}

    w = np.array([0.5, -2.0], np.float32)
    arguments = ({"w": w, "act": jnp.abs}, 3.0)
    structure = jax.tree_util.tree_structure([0])
    artifact = capture.export(layer, *arguments, options=(np.int32(7), "plain", structure))
    assert artifact["input_tree"] == {
        "args": [{"dict": [["act", None], ["w", 0]]}, 1],
        "kwargs": [["options", {"tuple": [2, None, None]}]],
    }
    assert artifact["output_tree"] == {"dict": [["act", None], ["kind", None], ["n", 0], ["y", 1]]}
    assert [len(artifact["samples"][0][what]) for what in ("inputs", "outputs")] == [3, 2]
    assert artifact["samples"][0]["outputs"][1]["words"] == "3fc00000 40c00000"
    compiled = capture.export(layer, *arguments, options=(np.int32(7), "plain", structure), compile=True)
    assert compiled["samples"] == artifact["samples"]
    (n,) = jax.export.symbolic_shape("n")
    described = {"w": jax.ShapeDtypeStruct((n,), np.float32), "act": jnp.abs}
    pinned = capture.export(layer, described, 3.0, options=(np.int32(7), "plain"), sizes={"n": 5})
    assert pinned["nodes"][0]["shape"] == [5]


def test_a_named_tuple_that_is_registered_has_the_children_that_it_says() -> None:
    packed = namedtuple("packed", "arrays structure")
    jax.tree_util.register_pytree_node(packed, lambda p: (p.arrays, p.structure), lambda s, c: packed(list(c), s))
    state = packed([X, X + 1], jax.tree_util.tree_structure([0, 0]))
    artifact = capture.export(lambda p: packed(p.arrays[::-1], p.structure), state)
    assert artifact["input_tree"]["args"] == [{"tuple": [0, 1]}]
    assert [node["name"] for node in artifact["nodes"]] == ["p[0]", "p[1]"]
    assert artifact["output_ids"] == [1, 0]


def test_keys_that_are_tuples_stand_by_their_text() -> None:
    artifact = capture.export(lambda p: {(1, ("s", 2)): p["a", "b"]}, {("a", "b"): X})
    assert artifact["input_tree"]["args"] == [{"dict": [["('a', 'b')", 0]]}]
    assert artifact["output_tree"] == {"dict": [["(1, ('s', 2))", 0]]}


def test_what_is_no_array_in_the_result_is_refused_by_its_place() -> None:
    with pytest.raises(capture.CaptureError, match=r"the result\['b'\]\[1\] is a str, neither an array nor part of an"):
        capture.export(lambda p: {"a": p[0], "b": (p[0], "other")}, (X, "text"))
    with pytest.raises(capture.CaptureError, match=r"type <class 'str'> at output component \[1\]"):
        capture.export(lambda x: (x, "other"), X)


# ---- constants ------------------------------------------------------------------------------------------------------


def constants(artifact: dict[str, Any]) -> list[tuple[str | None, str]]:
    """Name and words of each constant."""
    return [(n.get("name"), n["attrs"]["value"]["words"]) for n in artifact["nodes"] if n["op"] == "constant"]


def test_literals_keep_their_words_and_equal_ones_are_one_node() -> None:
    artifact = capture.export(lambda x: (x + 0.1) * 0.1 - (-0.0) + jnp.float32(np.inf), X)
    assert [words for _, words in constants(artifact)] == ["3dcccccd", "80000000", "7f800000"]
    half = capture.export(lambda x: x * 0.1, X.astype(np.float16))
    assert constants(half) == [(None, "2e66")]


def test_arrays_keep_payloads_zeros_and_subnormals() -> None:
    table = np.array([0x7FC12345, 0xFF800001, 0x00000001, 0x80000000], np.uint32).view(np.float32)
    artifact = capture.export(lambda x: jnp.where(x > 2, x, table), X)
    assert ("table", "7fc12345 ff800001 00000001 80000000") in constants(artifact)
    ((got, want),) = outputs(lambda x: jnp.where(x > 9, x, table), X)
    np.testing.assert_array_equal(got.words, want.words)


@pytest.mark.parametrize("dtype", ["int4", "uint8", "float8_e5m2", "bfloat16", "float64", "complex64", "bool", "int64"])
def test_words_of_every_width(dtype: str) -> None:
    """The text of the words against the value's bytes."""
    with jax.enable_x64(True):
        kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
        x = np.array([0, 1, -1, 3], np.int64).astype(kind)
        words = capture.tensor(x)["words"].split()
        part = kind.itemsize // (2 if kind.kind == "c" else 1)
        bits = 4 if dtype == "int4" else 8 * part
        raw = x.tobytes()
        wanted = [int.from_bytes(raw[k : k + part], "little") % (1 << bits) for k in range(0, len(raw), part)]
        assert [int(word, 16) for word in words] == wanted
        assert {len(word) for word in words} == {1 if dtype in ("int4", "bool") else bits // 4}
        checked(capture.export(lambda y: (y, x), x))


def test_large_tensors_are_base64() -> None:
    x = np.arange(33, dtype=np.float32)
    artifact = capture.export(lambda x: x, x)
    assert "base64" in artifact["samples"][0]["inputs"][0]
    np.testing.assert_array_equal(checked(artifact).samples[0].inputs[0].to_numpy(), x)


class Model:
    def __init__(self) -> None:
        self.layers = [{"w": jnp.arange(3.0) + 10}, {"w": jnp.arange(3.0) + 20}]
        self.bias = np.array([7.0, 8.0, 9.0], np.float32)

    def __call__(self, x: Any) -> Any:
        return self.method(x)

    def method(self, x: Any) -> Any:
        return x * self.layers[0]["w"] + self.layers[1]["w"] - self.bias


def test_closed_over_arrays_are_named() -> None:
    params = {"w": jnp.arange(4.0) + 3, "inner": Pair(jnp.arange(4.0) * 7, None)}

    def f(x: Any) -> Any:
        return params["w"] * x + params["inner"].left + WEIGHTS + OFFSET

    for fn in (f, jax.jit(f), jax.checkpoint(f), lambda x: f(x)):
        names = [name for name, _ in constants(capture.export(fn, X))]
        assert names == ["params['w']", "params['inner'].left", "WEIGHTS", "OFFSET"]
    x = np.ones(3, np.float32)
    for model in (Model(), Model().method):
        assert [name for name, _ in constants(capture.export(model, x))] == ["layers[0]['w']", "layers[1]['w']", "bias"]
    bound = functools.partial(lambda scale, x, shift: scale * x + shift, WEIGHTS, shift=jnp.arange(4.0))
    artifact = capture.export(bound, X)
    assert [name for name, _ in constants(artifact)] == ["scale", "shift"]
    assert artifact["nodes"][0]["name"] == "x"


def test_two_names_for_the_same_words_leave_a_constant_without_a_wrong_name() -> None:
    first, second = np.array([1.5, 2.5], np.float32), np.array([1.5, 2.5], np.float32)
    artifact = capture.export(lambda x: x + first * second, X[:2])
    assert {name for name, _ in constants(artifact)} <= {None, "first", "second"}
    ((got, want),) = outputs(lambda x: x + first * second, X[:2])
    assert got.same_words(want)


# ---- sources --------------------------------------------------------------------------------------------------------


def sources(artifact: dict[str, Any]) -> list[tuple[str, int, str]]:
    found = [node["source"] for node in artifact["nodes"] if "source" in node]
    return [(source["file"], source["line"], source["function"]) for source in found]


def test_every_equation_has_its_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    def f(x: Any) -> Any:
        y = jnp.sin(x)  # first
        return jnp.clip(y, 0, 1)  # second

    monkeypatch.chdir(tmp_path)
    away = sources(capture.export(f, X))
    assert {file for file, _, _ in away} == {"test_jax_programs.py"}
    monkeypatch.chdir(inspect.getfile(f).rpartition("/tests/")[0])
    found = sources(capture.export(f, X))
    assert {file for file, _, _ in found} == {"tests/capture/test_jax_programs.py"}
    assert found[0][1] == line_of(f, "# first")
    assert {line for _, line, _ in found[1:]} == {line_of(f, "# second")}
    assert {function for _, _, function in found} == {"test_every_equation_has_its_line.<locals>.f"}


def test_jaxs_own_functions_take_the_line_of_the_call_at_hand() -> None:
    """JAX traces its jitted functions once, and their equations remember the first call, wherever it was."""

    def first(x: Any) -> Any:
        return jax.nn.relu(jnp.clip(x, 1, 2))

    def second(x: Any) -> Any:
        return jax.nn.relu(jnp.clip(x, 1, 2))

    capture.export(first, X)
    assert {line for _, line, _ in sources(capture.export(second, X))} == {line_of(second, "relu")}
    assert sources(capture.export(jnp.clip, X, 1.0, 2.0)) == []


def test_a_users_jitted_function_keeps_its_own_lines() -> None:
    @jax.jit
    def inner(x: Any) -> Any:
        return jnp.sin(x)  # inside

    capture.export(lambda x: inner(x) + 1, X)
    found = sources(capture.export(lambda x: inner(inner(x)), X))
    assert {line for _, line, _ in found} == {line_of(inner.__wrapped__, "# inside")}


# ---- wrappers -------------------------------------------------------------------------------------------------------


@jax.custom_jvp
def doubled(x: Any) -> Any:
    return x + x


doubled.defjvp(lambda primals, tangents: (doubled(*primals), 2 * tangents[0]))


@jax.custom_vjp
def tripled(x: Any) -> Any:
    return x * 3


tripled.defvjp(lambda x: (tripled(x), None), lambda _, g: (3 * g,))


def test_wrappers_are_inlined() -> None:
    def f(x: Any) -> Any:
        x = jax.jit(lambda x: (x, x))(x)[1]
        x = doubled(tripled(jax.checkpoint(jnp.negative)(x)))
        x = lax.stop_gradient(jax.device_put(jnp.copy(x)))
        x, y = lax.optimization_barrier((x, x))
        return jax.named_call(jnp.abs)(x) + y

    artifact = capture.export(f, X)
    assert ops(artifact) == ["negate", "broadcast_in_dim", "multiply", "add", "abs", "add"]
    expect_words(f, X)


def test_gradients() -> None:
    expect_words(jax.grad(square_sum), X)
    expect_words(jax.value_and_grad(lambda x: jnp.sum(tripled(doubled(x)) ** 3)), X)
    expect_words(jax.hessian(square_sum), X)
    artifact = capture.export(jax.grad(square_sum), X)
    assert artifact["nodes"][0]["name"] == "x"
    assert artifact["name"] == "square_sum"


def test_vectorized_functions() -> None:
    expect_words(jax.vmap(lambda x, w: x @ w, (0, None)), X.reshape(2, 2), X[:2])


# ---- refusals -------------------------------------------------------------------------------------------------------


def test_all_unsupported_primitives_are_listed_with_their_lines() -> None:
    def f(x: Any, key: Any) -> Any:
        y = jax.pure_callback(np.sort, jax.ShapeDtypeStruct(x.shape, x.dtype), x)  # callback
        bits = lax.rng_uniform(key[0], key[1], (3,))  # random
        again = jax.pure_callback(np.sort, jax.ShapeDtypeStruct(x.shape, x.dtype), y)  # again
        return jnp.sin(again), bits

    with pytest.raises(capture.UnsupportedError) as caught:
        capture.export(f, X, np.zeros(2, np.float32))
    problems = caught.value.problems
    named = [(problem.primitive, problem.source) for problem in problems]
    where = "tests/capture/test_jax_programs.py:{} in test_all_unsupported_primitives_are_listed_with_their_lines"
    for primitive, mark in (("pure_callback", "# callback"), ("rng_uniform", "# random"), ("pure_callback", "# again")):
        place = where.format(line_of(f, mark)).removeprefix("tests/capture/")
        assert any(name == primitive and place in source for name, source in named), (primitive, mark)
    message = str(caught.value)
    assert message.startswith(f"f cannot be captured because of {len(problems)} equations:")
    assert "rng_uniform(shape=(3,))" in message
    assert " at 0x" not in message


def test_primitives_inside_other_bodies_are_listed_too() -> None:
    def body(carry: Any, x: Any) -> Any:
        seen = jax.pure_callback(np.cos, jax.ShapeDtypeStruct((), jnp.float32), x)  # inside
        return carry + seen, lax.cond(x > 0, lambda x: jax.pure_callback(np.sin, x, x), lambda x: x, x)

    with pytest.raises(capture.UnsupportedError) as caught:
        capture.export(lambda x: lax.scan(body, jnp.float32(0), x), X)
    inside = {(problem.primitive, problem.within) for problem in caught.value.problems}
    assert ("pure_callback", ("scan",)) in inside
    assert ("pure_callback", ("scan", "cond")) in inside
    (first,) = (p for p in caught.value.problems if p.within == ("scan",) and p.primitive == "pure_callback")
    assert f":{line_of(body, '# inside')} " in first.source


def test_what_the_function_raises_is_passed_on() -> None:
    with pytest.raises(ZeroDivisionError):
        capture.export(lambda x: x / (1 // 0), X)
    with pytest.raises(jax.errors.TracerBoolConversionError):
        capture.export(lambda x: x if x[0] > 0 else -x, X)


# ---- recorded values ------------------------------------------------------------------------------------------------


def test_the_trace_holds_the_value_of_every_equation() -> None:
    def f(x: Any) -> Any:
        y = x * x
        return jnp.sum(y) + 1.0, jnp.split(y, 2)

    artifact = capture.export(f, X, trace=True)
    graph = checked(artifact)
    trace = {ref.node: value.to_numpy().tolist() for ref, value in graph.samples[0].trace.items()}
    by_op = {graph.nodes[k].op: value for k, value in trace.items()}
    assert by_op == {"multiply": [1, 4, 9, 16], "reduce": 30, "add": 31, "slice": [9, 16]}
    assert len(trace) == 5
    assert artifact["version"] == 3


def test_outputs_are_made_op_by_op_or_compiled() -> None:
    rng = np.random.default_rng(0)
    x, y, z = rng.standard_normal((3, 1000)).astype(np.float32)
    separate, fused = (capture.export(lambda x, y, z: x * y + z, x, y, z, compile=c) for c in (False, True))
    assert separate["producer"]["outputs"] == "op-by-op"
    assert fused["producer"]["outputs"] == "compiled"
    recorded = checked(separate).samples[0].outputs[0].to_numpy()
    np.testing.assert_array_equal(recorded, x * y + z)
    compiled = jax.jit(lambda x, y, z: x * y + z)(x, y, z)
    np.testing.assert_array_equal(checked(fused).samples[0].outputs[0].to_numpy(), compiled)
    assert fused["nodes"] == separate["nodes"]


def test_the_producer_says_who_and_how() -> None:
    producer = capture.export(square_sum, X)["producer"]
    assert producer["frontend"] == "jax"
    assert producer["frontend_version"] == jax.__version__
    assert producer["platform"] == jax.default_backend()
    assert producer["flags"] == {"x64": False}
    with jax.default_matmul_precision("highest"):
        flags = capture.export(square_sum, X)["producer"]["flags"]
    assert flags == {"x64": False, "default_matmul_precision": "highest"}


def test_two_captures_are_the_same_text() -> None:
    def f(params: Any, x: Any) -> Any:
        return jax.nn.softmax(jnp.tanh(x @ params["w"] + params["b"])), WEIGHTS

    args = {"w": np.ones((4, 3), np.float32), "b": np.zeros(3, np.float32)}, X
    first, second = (capture.dumps(capture.export(f, *args, trace=True)) for _ in range(2))
    assert first == second
