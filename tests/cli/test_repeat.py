"""``tlir run --repeat`` and ``graph.iterate``: recurrences against exact arithmetic and against NumPy's own loops."""

from __future__ import annotations

import json
import re
import tracemalloc
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from cli_artifacts import identity, tensor

import tlir as library
from tlir.api import load
from tlir.backends.iterate import iterate
from tlir.errors import TlirError, UnsupportedError, UsageError
from tlir.ir.tensor import Tensor


def graph(
    inputs: list[tuple[str, Any]],
    nodes: list[tuple[str, list[int], dict[str, Any]]],
    outputs: list[int],
    tree: Any = None,
    output_tree: Any = None,
) -> dict[str, Any]:
    """An artifact of scalar or array operations: inputs by name and sample, nodes of the first input's type."""
    arrays = [np.asarray(value) for _, value in inputs]
    declared = [
        {"op": "input", "inputs": [], "name": name, "shape": list(array.shape), "dtype": array.dtype.name}
        for (name, _), array in zip(inputs, arrays, strict=True)
    ]
    like = {"shape": list(arrays[0].shape), "dtype": arrays[0].dtype.name}
    declared += [{"op": op, "inputs": operands, **like, **rest} for op, operands, rest in nodes]
    document: dict[str, Any] = {
        "format": "tlir",
        "version": 3,
        "name": "step",
        "input_ids": list(range(len(inputs))),
        "output_ids": outputs,
        "nodes": [{"id": k, **node} for k, node in enumerate(declared)],
    }
    document |= {"input_tree": tree} if tree else {}
    return document | ({"output_tree": output_tree} if output_tree else {})


def constant(value: Any) -> tuple[str, list[int], dict[str, Any]]:
    array = np.asarray(value)
    parts = {"shape": list(array.shape), "dtype": array.dtype.name}
    return "constant", [], {**parts, "attrs": {"value": tensor(array)}}


FIBONACCI = graph([("a", np.int64(0)), ("b", np.int64(1))], [("add", [0, 1], {})], [1, 2])
FIRST = ("--input", "a=0", "--input", "b=1")
LOGISTIC = graph(
    [("x", np.float32(0.3))],
    [
        constant(np.float32(1)),
        constant(np.float32(3.75)),
        ("subtract", [1, 0], {}),
        ("multiply", [2, 0], {}),
        ("multiply", [4, 3], {}),
    ],
    [5],
)
# velocity = 7/8 velocity + gradient; position = position - velocity, whose numbers binary64 holds exactly
MOMENTUM = graph(
    [("state['p']", np.float64(0)), ("state['v']", np.float64(0)), ("g", np.float64(0))],
    [
        constant(np.float64(0.875)),
        ("multiply", [1, 3], {}),
        ("add", [4, 2], {}),
        ("subtract", [0, 5], {}),
    ],
    [6, 5],
    {"args": [{"dict": [["p", 0], ["v", 1]]}, 2], "kwargs": []},
    {"dict": [["state", {"dict": [["p", 0], ["v", 1]]}]]},
)


def fibonacci(count: int) -> list[int]:
    numbers = [0, 1]
    while len(numbers) < count + 2:
        numbers.append(numbers[-1] + numbers[-2])
    return numbers


def test_fibonacci(tlir, write) -> None:
    path = write("fibonacci.json", FIBONACCI)
    carried = ("--carry", "output[0]=a", "--carry", "1=b", "--record", "0")
    result = tlir("run", path, *FIRST, "--repeat", "90", *carried)
    assert result.exit_code == 0, result.stderr
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[0] == ["step", "output[0]"]
    assert lines[1:-1] == [[str(step), str(fibonacci(90)[step])] for step in range(1, 91)]
    assert " ".join(lines[-1]) == "1 other output of the last step not shown; --output writes everything"
    last = tlir("run", path, *FIRST, "--repeat", "90", *carried[:-2])
    assert last.stdout.split()[-3:] == ["output[1]", "int64[]", str(fibonacci(90)[91])]
    document = json.loads(tlir("run", path, *FIRST, "--repeat", "90", *carried, "--json").stdout)
    assert document["outputs"][0]["values"] == fibonacci(90)[1:91]
    assert document["outputs"][0]["shape"] == [90]
    assert document["repeat"] == {
        "steps": 90,
        "carried": [["output[0]", "a"], ["output[1]", "b"]],
        "recorded": ["output[0]"],
    }


def test_integers_wrap_as_the_operation_says() -> None:
    outputs = load(FIBONACCI).iterate(200, {"0": "a", "1": "b"}, [np.int64(0), np.int64(1)])
    expected = [number & (2**64 - 1) for number in fibonacci(200)[200:202]]
    assert [int(value) & (2**64 - 1) for value in outputs] == expected


def test_the_logistic_map_is_numpys_word_for_word(tlir, write, tmp_path) -> None:
    x, rate, expected = np.float32(0.3), np.float32(3.75), []
    for _ in range(300):
        x = rate * x * (np.float32(1) - x)
        expected.append(x)
    (curve,) = load(LOGISTIC).iterate(300, [("output", "x")], [np.float32(0.3)], record=["output"])
    assert curve.dtype == np.float32
    assert curve.tobytes() == np.array(expected, np.float32).tobytes()
    path, target = write("logistic.json", LOGISTIC), tmp_path / "curve.npz"
    options = ("--repeat", "300", "--carry", "output=x", "--input", "x=0.3", "--record", "output")
    result = tlir("run", path, *options, "--output", str(target))
    assert np.load(target)["output"].tobytes() == curve.tobytes()
    rows = [line.split() for line in result.stdout.splitlines()[1:]]
    assert [row[0] for row in rows] == [*map(str, range(1, 101)), "…", *map(str, range(201, 301))]
    assert [np.float32(row[1]) for row in rows[101:]] == expected[200:]
    last = tlir("run", path, *options[:-2])
    assert last.stdout.split() == ["output", "float32[]", rows[-1][1]]


def momentum(gradients: list[float]) -> list[tuple[Fraction, Fraction]]:
    p, v, states = Fraction(0), Fraction(0), []
    for gradient in gradients:
        v = Fraction(7, 8) * v + Fraction(gradient)
        p -= v
        states.append((p, v))
    return states


def test_momentum_with_a_gradient_for_each_step(tlir, write, tmp_path) -> None:
    gradients = [1.0, -0.5, 2.0, 0.25, 0.0, -3.0, 1.5]
    states = momentum(gradients)
    start = {"state": {"p": np.float64(0), "v": np.float64(0)}}
    result = load(MOMENTUM).iterate(7, {"state": "state"}, start, each={"g": np.array(gradients)}, record="state")
    assert [Fraction(float(p)) for p in result["state"]["p"]] == [p for p, _ in states]
    assert [Fraction(float(v)) for v in result["state"]["v"]] == [v for _, v in states]
    np.save(tmp_path / "g.npy", np.array(gradients))
    path = write("momentum.json", MOMENTUM)
    zeros = ("--input", "state['p']=0", "--input", "state['v']=0")
    for given in (f"g={tmp_path / 'g.npy'}", f"g={json.dumps(gradients)}"):
        steps = ("--repeat", "7", "--carry", "state=state", "--each", given)
        document = json.loads(tlir("run", path, *zeros, *steps, "--print", "rational", "--json").stdout)
        assert [Fraction(output["values"]) for output in document["outputs"]] == list(states[-1])


def test_one_output_may_feed_several_inputs() -> None:
    doubling = graph([("a", np.int32(1)), ("b", np.int32(1))], [("add", [0, 1], {})], [2])
    outputs = load(doubling).iterate(10, {"output": ["a", "b"]}, [np.int32(1), np.int32(1)])
    assert [int(value) for value in outputs] == [1024]


def test_names_with_an_equals_sign(tlir, write) -> None:
    document = graph([("x['a=b']", np.int32(1))], [("add", [0, 0], {})], [1], None, {"dict": [["c=d", 0]]})
    path = write("equals.json", document)
    for carry in ("c=d=x['a=b']", "output['c=d']=x['a=b']"):
        result = tlir("run", path, "--input", "x['a=b']=3", "--repeat", "4", "--carry", carry)
        assert result.stdout == "output['c=d']  int32[]  48\n", result.stderr
    tree = tlir("run", path, "--input", "x['a=b']=3", "--repeat", "4", "--carry", "c=d=x")
    assert "no output below c=d for x['a=b']" in tree.stderr


def test_flags_are_those_of_all_steps(tlir, write) -> None:
    """x := x / 2 from 1 in float32 is exact 149 times, and 0 with a flag at the 150th."""
    halving = graph([("x", np.float32(1))], [constant(np.float32(0.5)), ("multiply", [0, 1], {})], [2])
    path = write("halving.json", halving)
    for steps, inexact in ((149, 0), (152, 1)):
        options = ("--input", "x=1", "--repeat", str(steps), "--carry", "output=x", "--flags", "--json")
        (counts,) = json.loads(tlir("run", path, *options).stdout)["flags"]
        assert (counts["elements"], counts["inexact"], counts["underflow"]) == (steps, inexact, inexact)


MATRIX = identity(np.zeros((2, 3), np.float32), np.zeros(3, np.int32))
STATE = graph(
    [("s['a']", np.float32(0)), ("s['b']", np.float32(0))],
    [("negate", [0], {})],
    [2],
    None,
    {"dict": [["s", {"dict": [["a", 0]]}]]},
)


@pytest.mark.parametrize(
    ("document", "options", "message"),
    [
        (MATRIX, ("--carry", "0=b"), "output[0] is float32[2,3] and cannot become the input b, which is int32[3]"),
        (MATRIX, ("--carry", "0=a", "--carry", "2=b"), "there is no output '2'"),
        (MATRIX, ("--carry", "0=c"), "there is no input 'c'"),
        (MATRIX, ("--carry", "a"), "expected OUT=IN"),
        (MATRIX, (), "3 steps would all be the same"),
        (MATRIX, ("--each", "a=[1, 2]"), "expected a list of 3, found a list of 2"),
        (MATRIX, ("--each", "b=[[1,2,3],[4,5,6],[7,8,9]]", "--input", "b=[1,2,3]"), "by --input and for each step"),
        (MATRIX, ("--each", "b=[[1,2,3],[4,5,6],[7,8,9]]", "--carry", "1=b"), "cannot be carried too"),
        (MATRIX, ("--carry", "0=a", "--record", "loss"), "there is no output 'loss'"),
        (FIBONACCI, (*FIRST, "--carry", "0=a", "--carry", "1=a"), "is carried from output[0] and output[1]"),
        (STATE, ("--carry", "s=s"), "no output below s for s['b']"),
        (STATE, ("--carry", "s['a']=s"), "not trees of the same structure"),
    ],
)
def test_what_cannot_be_carried_is_refused_before_the_first_step(
    tlir, write, monkeypatch: pytest.MonkeyPatch, document: Any, options: tuple[str, ...], message: str
) -> None:
    def never(*arguments: Any, **options: Any) -> None:
        raise AssertionError("a step was run")

    monkeypatch.setattr("tlir.backends.reference.evaluate", never)
    result = tlir("run", write("step.json", document), "--repeat", "3", *options)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_options_without_repeat_are_refused(tlir, write) -> None:
    path = write("matrix.json", MATRIX)
    for option in (("--carry", "0=a"), ("--each", "a=0"), ("--record", "0")):
        result = tlir("run", path, *option)
        assert (result.exit_code, f"{option[0]} needs --repeat" in result.stderr) == (2, True)
    assert tlir("run", path, "--repeat", "0", "--carry", "0=a").exit_code == 2


@pytest.mark.parametrize(
    ("steps", "carry", "rest", "code"),
    [
        (0, {"0": "a"}, {}, "TL0901"),
        ("3", {"0": "a"}, {}, "TL0901"),
        (2, {"0": "b"}, {}, "TL0601"),
        (2, ["0"], {}, "TL0901"),
        (2, {}, {"each": {"b": np.zeros((3, 3), np.int32)}}, "TL0601"),
        (2, {}, {"each": {"q": np.zeros((2, 3), np.int32)}}, "TL0601"),
        (2, {"0": "a"}, {"record": ["2"]}, "TL0901"),
        (10**15, {"0": "a"}, {"record": ["0"]}, "TL0603"),
    ],
)
def test_python_refuses_the_same(steps: Any, carry: Any, rest: Any, code: str) -> None:
    with pytest.raises(TlirError, match=code):
        load(MATRIX).iterate(steps, carry, **rest)


def test_memory_does_not_grow_with_the_steps_but_for_the_record() -> None:
    """An array of 2 MB carried 60 times; its sum recorded."""
    like = {"shape": [1 << 18], "dtype": "float64"}
    reduce = ("reduce", [1], {"attrs": {"dimensions": [0], "reducer": "maximum"}, "shape": [], "dtype": "float64"})
    document = graph([("x", np.zeros(1 << 18))], [("negate", [0], like), reduce], [1, 2])
    step, start = load(document), [Tensor.from_numpy(np.ones(1 << 18))]
    peaks = []
    for steps in (3, 60):
        tracemalloc.start()
        iterate(step.ir, steps, start, [(0, 0)], record=[1])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + (1 << 20)
    with pytest.raises(UnsupportedError, match="TL0603"):
        iterate(step.ir, 60, start, [(0, 0)], record=[0], memory_limit=60 << 20)


def test_an_interruption_says_where_and_writes_nothing(tlir, write, tmp_path, monkeypatch) -> None:
    from tlir.backends import reference

    evaluate, calls = reference.evaluate, []

    def interrupted(*arguments: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return evaluate(*arguments, **options)

    monkeypatch.setattr(reference, "evaluate", interrupted)
    target = tmp_path / "out.json"
    target.write_text("before")
    options = ("--repeat", "9", "--carry", "output=x", "--input", "x=0.5", "--output", str(target))
    result = tlir("run", write("logistic.json", LOGISTIC), *options)
    assert result.exit_code == 130
    assert "after 3 of 9 steps" in result.stderr
    assert target.read_text() == "before"


def test_the_help_names_the_rule(tlir) -> None:
    text = re.sub(r"\s+", " ", tlir("run", "--help").stdout)
    assert "--carry OUT=IN" in text
    assert library.Graph.iterate.__doc__


def test_steps_can_run_on_the_sample() -> None:
    document = identity(np.float32([1, 2]), np.float32([3, 4]))
    swapped = load(document).iterate(3, {"0": "b", "1": "a"})
    assert [list(map(float, array)) for array in swapped] == [[1, 2], [3, 4]]
    with pytest.raises(UsageError, match="TL0602"):
        load({**document, "samples": []}).iterate(3, {"0": "b"})


def test_the_compiled_device_gives_the_same_words_in_every_step() -> None:
    pytest.importorskip("llvmlite")
    start = np.float32(0.3)
    curves = [
        load(LOGISTIC).iterate(200, {"output": "x"}, [start], record="output", device=device)[0]
        for device in ("reference", "cpu")
    ]
    assert curves[0].tobytes() == curves[1].tobytes()
    assert len(np.unique(curves[0])) > 100
