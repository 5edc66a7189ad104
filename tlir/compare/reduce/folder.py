"""The folder that a reduction is written to: an artifact, its arrays, a program of the frontend alone, and a text."""

from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.compare.bounds import enclose
from tlir.compare.reduce.expressions import FRONTENDS
from tlir.compare.reduce.program import arrays, available, nodes_without_expression, script, stored
from tlir.compare.reduce.search import Reduction, Rules, verdict_of
from tlir.compare.reduce.text import readme
from tlir.errors import UnsupportedError, UsageError
from tlir.ir.graph import Graph, Producer
from tlir.ir.tensor import Tensor

FILES = ("reduced.json", "inputs.npz", "expected.npz", "reproduce.py", "README.md")
"""What a folder holds; ``reproduce.py`` and the arrays only where the graph is a program of its frontend."""

_SECONDS = 300


@dataclass(frozen=True)
class Written:
    """What was written and what came of running it.

    ``verdict`` is that of the comparison of the written artifact; ``still_fails`` says that it is the one that was
    looked for. ``script`` is "fails" or "passes" where ``reproduce.py`` was run, else the reason why it was not run or
    not written.
    """

    folder: Path
    files: tuple[str, ...]
    verdict: str
    still_fails: bool
    script: str


def check_folder(folder: Path, force: bool) -> None:
    """UsageError TL0902 where the folder's place is taken: by a file, or by a folder with something in it unless
    ``force`` is given; then only the files that are written are replaced."""
    if folder.exists() and not folder.is_dir():
        raise UsageError("TL0902", "this is a file, not a folder", file=str(folder))
    if not force and folder.is_dir() and any(folder.iterdir()):
        raise UsageError("TL0902", "the folder is not empty", file=str(folder), hint="give --force to write into it")


def write_folder(reduction: Reduction, graph: Graph, folder: Path, rules: Rules, force: bool = False) -> Written:
    """Write a reduction of ``graph`` and run what was written. UsageError TL0109 where the folder cannot be written,
    and what ``check_folder`` raises."""
    from tlir.schema import read, write

    check_folder(folder, force)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError("TL0109", f"the folder cannot be made: {error.strerror}", file=str(folder)) from None
    piece, producer = reduction.piece, graph.producer
    small = reduction.graph
    write(small, folder / "reduced.json")
    text, reason = _script(reduction, producer)
    files = ["reduced.json"]
    if text is not None:
        _write(folder / "inputs.npz", _npz(arrays(piece)))
        _write(folder / "expected.npz", _npz(_expected(reduction, small, rules)))
        _write(folder / "reproduce.py", text.encode())
        files += ["inputs.npz", "expected.npz", "reproduce.py"]
    elif force:
        for name in ("inputs.npz", "expected.npz", "reproduce.py"):
            (folder / name).unlink(missing_ok=True)
    report = rules.judge(read(folder / "reduced.json"))
    verdict = verdict_of(report.outputs[0])
    still = not report.ok and verdict == reduction.verdict
    if text is not None:
        reason = _run(folder, producer.frontend if producer else "")
    written = Written(folder, (*files, "README.md"), verdict, still, reason)
    _write(folder / "README.md", readme(reduction, graph, small, written, rules).encode())
    return written


def _script(reduction: Reduction, producer: Producer | None) -> tuple[str | None, str]:
    """The program, or None and the reason why there is none."""
    if producer is None or producer.frontend not in FRONTENDS:
        return None, "not written: the artifact does not say that a frontend of which expressions are known made it"
    summary = f"What {reduction.suspect.op} gives in {producer.frontend}, beside what it should give."
    try:
        return script(reduction.piece, producer.frontend, producer.outputs == "compiled", summary), ""
    except UnsupportedError as error:
        without = nodes_without_expression(reduction.piece, producer.frontend)
        names = ", ".join(sorted({node.op for node in without}))
        if names:
            return None, f"not written: no expression of {producer.frontend} is known for {names}"
        return None, f"not written: {error.message}"


def _run(folder: Path, frontend: str) -> str:
    """What comes of running the program here."""
    if not available(frontend):
        return f"not run: {frontend} is not installed here"
    try:
        done = subprocess.run(
            [sys.executable, "reproduce.py"], cwd=folder, capture_output=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"not finished within {_SECONDS} seconds"
    outcome = done.stdout.decode(errors="replace").splitlines()[-1:]
    if done.returncode == 1 and outcome == ["the fault is there"]:
        return "fails"
    if done.returncode == 0:
        return "passes"
    last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
    return f"ended with an error: {last[0]}"


def _npz(named: dict[str, NDArray[Any]]) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **named)  # type: ignore[arg-type]
    return stream.getvalue()


def _write(path: Path, content: bytes) -> None:
    from tlir.schema.files import replacing

    with replacing(path) as file:
        file.write(content)


def readable(tensor: Tensor) -> NDArray[Any]:
    """A tensor as an array that NumPy has: small formats as float64, which holds all of their values."""
    if tensor.dtype.is_float and tensor.dtype.bits <= 16:
        return tensor.to_numpy().astype(np.float64)
    return stored(tensor)


def _expected(reduction: Reduction, small: Graph, rules: Rules) -> dict[str, NDArray[Any]]:
    """What the program compares with: recorded and reference values and the permitted interval, in float64."""
    from tlir.backends import run

    inputs, recorded = reduction.piece.inputs, reduction.piece.expected
    (reference,) = run(small, inputs)
    found = {"recorded": readable(recorded), "reference": readable(reference)}
    if reference.dtype.format is None:
        return found
    if reduction.freedoms is not None:
        (enclosure,), _ = enclose(small.body, inputs, reduction.freedoms)
        kept = enclosure.stored()
        # where it is sure the ends are the reference's own value
        return found | {"low": kept.lo, "high": kept.hi, "nan": kept.nan}
    with np.errstate(all="ignore"):
        value, size = (_parts(tensor).astype(np.float64) for tensor in (reference, recorded))
        reach = _reach(reduction, value, np.abs(size))
        low, high = value - reach, value + reach
    low, high = (np.where(np.isinf(value), value, end) for end in (low, high))
    return found | {"low": low, "high": high, "nan": np.isnan(value)}


def _parts(tensor: Tensor) -> NDArray[Any]:
    array = readable(tensor)
    return np.stack([array.real, array.imag], -1) if tensor.dtype.is_complex else array


def _reach(reduction: Reduction, value: NDArray[Any], recorded: NDArray[Any]) -> NDArray[Any]:
    """How far a rule lets an element be from the reference's value."""
    rule = reduction.report.rule
    reach = np.zeros_like(value)
    if rule.tolerance is not None:
        reach = float(rule.tolerance) + float(rule.rtol) * recorded
    if rule.ulps is not None:
        fmt = reduction.piece.expected.dtype.float_format
        exponent = np.maximum(np.frexp(value)[1] - 1, fmt.emin)
        reach = np.maximum(reach, np.ldexp(float(rule.ulps), exponent - fmt.fraction_bits))
    return np.asarray(reach)
