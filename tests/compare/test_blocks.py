"""Enclosures of large tensors, made block by block: the same as those made whole, and what is not needed not stored."""

from __future__ import annotations

import numpy as np
import pytest
from bounds_graphs import random_graph

from tlir.compare.bounds import POLICIES, Enclosure, blocks, enclose, resolve
from tlir.compare.bounds.enclosure import Certain, Packed
from tlir.compare.executions import execute
from tlir.ir.graph import Body, Node, Ref
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, TensorType

FLOAT32 = NAMED["float32"]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK", 3)
    monkeypatch.setattr(blocks, "LEAST", 2)


@pytest.mark.parametrize("shape", [(7,), (2, 5), (3, 1, 4), (1, 9), (4, 2, 3), (2, 0, 3)])
def test_blocks_cover_every_element_once(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    for block in (1, 3, 8, 100):
        monkeypatch.setattr(blocks, "BLOCK", block)
        count = np.zeros(shape, int)
        for index, cut in blocks.blocks(shape):
            assert count[index].shape == cut
            assert count[index].size <= max(block, 1)
            count[index] += 1
        assert (count == 1).all()


@pytest.mark.parametrize("seed", range(60))
def test_blocks_enclose_what_the_whole_does(seed: int, small_blocks: None) -> None:
    rng = np.random.default_rng(seed)
    graph, inputs = random_graph(rng, int(rng.integers(2, 12)))
    freedoms = resolve(str(rng.choice(sorted(POLICIES))), graph.producer)
    kept: dict[int, tuple[Enclosure, ...]] = {}
    outputs, _ = enclose(graph.body, inputs, freedoms)
    enclose(graph.body, inputs, freedoms, lambda node, made: kept.__setitem__(node.id, made))

    def check(node: Node, tensors: tuple[Tensor, ...]) -> None:
        for tensor, enclosure in zip(tensors, kept[node.id], strict=True):
            assert enclosure.contains(tensor).all(), str(node)

    for number in range(2):
        found = execute(graph.body, inputs, freedoms, np.random.default_rng((seed, number)), check)
        for tensor, enclosure in zip(found, outputs, strict=True):
            assert enclosure.contains(tensor).all()


def program() -> Body:
    """The softmax of rows."""
    whole, rows = TensorType((40, 50), FLOAT32), TensorType((40,), FLOAT32)
    nodes = (
        Node(0, "input", (), {}, (whole,)),
        Node(1, "reduce", (Ref(0),), {"dimensions": (1,), "reducer": "maximum"}, (rows,)),
        Node(2, "broadcast_in_dim", (Ref(1),), {"broadcast_dimensions": (0,)}, (whole,)),
        Node(3, "subtract", (Ref(0), Ref(2)), {}, (whole,)),
        Node(4, "exponential", (Ref(3),), {}, (whole,)),
        Node(5, "reduce", (Ref(4),), {"dimensions": (1,), "reducer": "add", "accumulate": None}, (rows,)),
        Node(6, "broadcast_in_dim", (Ref(5),), {"broadcast_dimensions": (0,)}, (whole,)),
        Node(7, "divide", (Ref(4), Ref(6)), {}, (whole,)),
    )
    return Body(nodes, (0,), (Ref(7),))


def test_runs_join_what_is_element_by_element_and_the_sums_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK", 200)
    monkeypatch.setattr(blocks, "LEAST", 1000)
    body = program()
    tasks = [item.task for item in blocks.schedule(body)]
    runs = [[node.id for node in task.nodes] for task in tasks if isinstance(task, blocks.Run)]
    assert runs == [[1], [2, 3, 4, 5], [6, 7]]
    needed = [sorted(task.needed) for task in tasks if isinstance(task, blocks.Run)]
    assert needed == [[1], [4, 5], [7]]


def test_ends_of_float32_values_are_held_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).standard_normal((40, 50)).astype(np.float32)
    freedoms = resolve("frontend", None)
    (whole,), _ = enclose(program(), [Tensor.from_numpy(x)], freedoms)
    monkeypatch.setattr(blocks, "BLOCK", 200)
    monkeypatch.setattr(blocks, "LEAST", 1000)
    (made,), _ = enclose(program(), [Tensor.from_numpy(x)], freedoms)
    assert isinstance(made, Packed)
    assert not isinstance(whole, Packed)
    assert np.array_equal(made.tensor.words, whole.tensor.words)
    # a block may take another, not quite as quick way: a unit or so of float32
    step = np.spacing(np.abs(whole.hi).astype(np.float32))
    assert (np.abs(made.lo - whole.lo) <= 2 * step).all()
    assert (np.abs(made.hi - whole.hi) <= 2 * step).all()


def test_what_is_sure_takes_no_memory_until_it_is_asked_for() -> None:
    x = np.array([1.0, np.nan, -0.0], np.float32)
    made = Certain(Tensor.from_numpy(x))
    assert "lo" not in made.__dict__
    assert made.all_sure
    assert np.array_equal(made.lo, x.astype(np.float64), equal_nan=True)
    assert made.nan.tolist() == [False, True, False]
