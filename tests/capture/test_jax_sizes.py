"""Sizes that are not fixed: symbolic dimensions are pinned by name, and shapes that depend on values are refused."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax_oracle import capture, expect_words, outputs


def described(text: str, dtype: Any = np.float32, **options: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(jax.export.symbolic_shape(text, **options), dtype)


def test_a_symbolic_dimension_is_pinned_by_name() -> None:
    x, y = described("batch, 3"), described("2*batch + 1, 3")
    artifact = capture.export(lambda x, y: (x @ y.T, x.sum(0)), x, y, sizes={"batch": 4})
    assert [artifact["nodes"][k]["shape"] for k in artifact["input_ids"]] == [[4, 3], [9, 3]]
    pairs = outputs(lambda x, y: (x @ y.T, x.sum(0)), x, y, sizes={"batch": 4})
    assert [got.shape for got, _ in pairs] == [(4, 9), (3,)]
    for got, want in pairs:
        assert np.abs(want.to_numpy()).max() > 0.1  # the example values are not all zero
        np.testing.assert_allclose(got.to_numpy(), want.to_numpy(), rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.int32, np.bool_, jnp.bfloat16, np.complex64])
def test_described_arguments_get_example_values(dtype: Any) -> None:
    x = jax.ShapeDtypeStruct((5, 7), dtype)
    expect_words(lambda x: (x.T, x[0]), x)
    (pair,) = outputs(lambda x: x.T, x)
    assert len(np.unique(pair[1].to_numpy().astype(np.complex64))) > 1


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({}, r"axis 1 of the argument table\['x'\] has the symbolic size 2\*n.*--size n=N.*sizes=\{'n': N\}"),
        ({"m": 2}, "axis 1 of the argument"),
        ({"n": 2, "m": 3}, "no symbolic dimension m to pin: those of the arguments are n"),
        ({"n": 3}, "do not satisfy"),
    ],
)
def test_a_dimension_without_a_size_is_named(sizes: dict[str, int], message: str) -> None:
    table = {"x": described("3, 2*n", constraints=["mod(n, 2) == 0"])}
    with pytest.raises(capture.CaptureError, match=message):
        capture.export(lambda table: table["x"] + 1, table, sizes=sizes)


def test_a_size_for_fixed_arguments_and_a_dimension_that_is_closed_over() -> None:
    with pytest.raises(capture.CaptureError, match="no symbolic dimension n to pin: the arguments have none"):
        capture.export(lambda x: x, np.ones(3), sizes={"n": 2})
    (n,) = jax.export.symbolic_shape("n")
    with pytest.raises(capture.UnsupportedError, match=r"test_jax_sizes.py:\d+.*symbolic dimension n"):
        capture.export(lambda x: jnp.zeros(n).sum() + x, np.float32(1))


REFUSED: dict[str, tuple[Callable[..., Any], str]] = {
    "mask": (lambda x, n: x[x > 0], "a mask"),
    "nonzero": (lambda x, n: jnp.nonzero(x), "jnp.nonzero"),
    "unique": (lambda x, n: jnp.unique(x), "jnp.unique"),
    "arange": (lambda x, n: jnp.arange(n), "jnp.arange"),
    "zeros": (lambda x, n: jnp.zeros(n), "a shape"),
    "repeat": (lambda x, n: jnp.repeat(x, n), "jnp.repeat"),
    "slice": (lambda x, n: x[:n], "a slice"),
    "inner": (lambda x, n: jax.jit(lambda x: x[x > 0])(x), "a mask"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_shape_that_depends_on_values_is_refused_with_its_line(name: str) -> None:
    fn, what = REFUSED[name]
    with pytest.raises(capture.UnsupportedError) as refused:
        capture.export(fn, np.ones(4, np.float32), 2)
    (problem,) = refused.value.problems
    assert what in problem.primitive
    assert "depends on values" in problem.reason
    assert problem.source is not None
    file, line = problem.source.split(" ")[0].rsplit(":", 1)
    assert file.endswith("test_jax_sizes.py")
    assert 65 <= int(line) <= 75


def test_a_check_of_values_is_refused_with_its_line() -> None:
    with pytest.raises(capture.UnsupportedError, match=r"jnp.choose at .*test_jax_sizes.py:\d+.*mode='clip'"):
        capture.export(lambda k, x: jnp.choose(k, (x, -x)), np.array([0, 1]), np.ones(2, np.float32))


def test_what_was_refused_works_with_a_fixed_size() -> None:
    x = np.array([1, 0, 2, 0], np.float32)
    expect_words(lambda x: (jnp.nonzero(x, size=3), jnp.unique(x, size=4), jnp.where(x > 0, x, -1)), x)
    expect_words(functools.partial(lambda n, x: x[:n], 2), x)


def test_the_command_takes_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sized.py").write_text(
        "import jax, jax.export, numpy as np\n"
        "def f(x):\n    return x * 2\n"
        "def args():\n    return (jax.ShapeDtypeStruct(jax.export.symbolic_shape('batch, 3'), np.float32),)\n"
    )
    call = [f"{tmp_path}/sized.py:f", "--args", f"{tmp_path}/sized.py:args", "-o", f"{tmp_path}/o.json"]
    assert capture.main([*call, "--size", "batch=5"]) == 0
    assert '"shape":[5,3]' in (tmp_path / "o.json").read_text()
    for options, code, text in (
        ([], 1, "--size batch=N"),
        (["--size", "batch"], 2, "write it as NAME=N"),
        (["--size", "batch=-1"], 2, "write it as NAME=N"),
        (["--size", "batch=2", "--size", "other=2"], 1, "no symbolic dimension other"),
    ):
        assert capture.main([*call, *options]) == code
        assert text in capsys.readouterr().err
