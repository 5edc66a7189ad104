"""JAX's own database of primitives: every case captured, checked, evaluated by the reference, and compared with JAX.

    python bench/jax_ops.py [--primitive NAME]... [--sample N] [--max-seconds S] [--shard K/N] [--output FILE] [--list]

The database is the one that JAX tests its exporters with (``jax._src.internal_test_util.test_harnesses``; it imports
absl-py). A case *matches* when every output has the words that JAX returned, or, for the primitives of ``ACCURACY``,
lies within the few units in the last place (or of rounding errors of the largest element, where terms are summed) that
are written there. It *differs* when it does not, is *refused* when the capture says by name what it cannot express, and
is *not comparable* when JAX itself raises, or when there is no element to compare. What two right answers may have in
different form (the signs of eigenvectors) is compared as ``tlir compare`` does.

Every case is also tried with planted errors: its outputs moved by one place along each axis, with two halves exchanged,
and with the largest element off by 1/16 (1/4 in formats of 16 bits). A case that passes with any of these counts as
*blind*. ``PLANTED`` holds pairs of programs that differ in one axis, sign, term or mode, of which the wrong one may not
pass as the right.

Exit status 1 if a case differs, crashes or is blind, or if a planted error passes.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import importlib.util
import re
import signal
import sys
import time
import types
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tlir.backends.reference import evaluate
from tlir.compare import aligned_results
from tlir.errors import TlirError
from tlir.ir.graph import Graph
from tlir.ir.tensor import Tensor
from tlir.ir.verify import type_errors
from tlir.schema import from_json

ROOT = Path(__file__).resolve().parents[1]

MATCHED, DIFFERS, REFUSED, NOT_COMPARABLE, CRASHED = "matched", "differs", "refused", "not comparable", "crashed"


@dataclasses.dataclass(frozen=True)
class Accuracy:
    """What passes besides equal words: so many ``ulps``, or an absolute difference of ``errors`` times the dtype's
    epsilon times the largest magnitude of the output (at least ``floor``)."""

    ulps: int = 0
    errors: float = 0
    floor: float = 0
    conditioned: bool = False
    """Whether the function may magnify rounding errors without bound, so that a result also passes whose largest error,
    against the same program in binary64, is at most ``MAGNIFIED`` times JAX's own."""


MAGNIFIED = 4


def _accuracies() -> dict[str, Accuracy]:
    """The accuracy of XLA's CPU code, by the group of the database; groups that are not here have equal words."""
    ulps = {
        1: "exp rsqrt pow sqrt sin cos abs",
        2: "log cbrt logistic atan2 div rem",
        4: "tanh log1p erf integer_pow asin",
    }
    ulps |= {8: "expm1 acosh atan sinh cosh acos tan", 12: "asinh atanh bessel_i0e bessel_i1e erfc", 64: "erf_inv"}
    ulps |= {16: "cumlogsumexp random_gamma random_categorical random_uniform"}
    table = {name: Accuracy(count) for count, names in ulps.items() for name in names.split()}
    of_sums = "dot_general conv_general_dilated reduce_sum reduce_prod cumsum cumprod reduce_window_add"
    of_sums += " reduce_window_mul select_and_scatter_add reduce scatter_add scatter_mul"
    table |= dict.fromkeys(of_sums.split(), Accuracy(0, 8))
    table |= dict.fromkeys(("fft", "qr", "eigh", "svd"), Accuracy(0, 64))
    solvers = "cholesky triangular_solve lu tridiagonal_solve custom_linear_solve"
    table |= dict.fromkeys(solvers.split(), Accuracy(0, 64, conditioned=True))
    table |= dict.fromkeys(("igamma", "igammac"), Accuracy(64, 32, 1))
    special = "lgamma digamma regularized_incomplete_beta"
    table |= dict.fromkeys(special.split(), Accuracy(64, 16, 1))
    return table


ACCURACY = _accuracies()

COMPLEX = {"mul": Accuracy(2), "abs": Accuracy(2), "pow": Accuracy(64), "integer_pow": Accuracy(16)}
COMPLEX |= {"logistic": Accuracy(8), "div": Accuracy(4)}
"""The same for complex numbers, by modulus, where it is another: XLA contracts their products, and its modulus and
powers round several times."""


def accuracy_of(group: str, dtype: Any) -> Accuracy:
    """What passes for a case of the database whose operands have this dtype."""
    stated = ACCURACY.get(group, Accuracy())
    return COMPLEX.get(group, stated) if np.dtype(dtype).kind == "c" else stated


def load_capture() -> types.ModuleType:
    """``capture/jax_capture.py``, as a user's copy of it would be loaded."""
    path = ROOT / "capture" / "jax_capture.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


capture = load_capture()


# ---- judging an output ----------------------------------------------------------------------------------------------


def _wide(array: np.ndarray) -> np.ndarray:
    """A float or complex array in binary64, which contains every format of the database."""
    return array.astype(np.complex128 if np.iscomplexobj(array) else np.float64)


def _parts(array: np.ndarray) -> np.ndarray:
    """Real and imaginary parts along a last axis."""
    return np.stack([array.real, array.imag], -1) if np.iscomplexobj(array) else array[..., np.newaxis]


def judge(got: np.ndarray, want: np.ndarray, accuracy: Accuracy) -> str | None:
    """None where ``got`` passes for ``want``, otherwise what is wrong with the worst element.

    A NaN passes for a NaN. Results below the least normal number pass for each other, because XLA flushes them to zero.
    """
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
    if want.dtype.kind in "biu" or want.dtype.name in ("int2", "int4", "uint2", "uint4"):
        wrong = np.argwhere(got != want)
        return _described(got, want, wrong[0], "") if len(wrong) else None
    info = jnp.finfo(want.dtype)
    a, b = _parts(_wide(got)), _parts(_wide(want))
    with np.errstate(all="ignore"):
        same = (a == b) & (np.signbit(a) == np.signbit(b)) | np.isnan(a) & np.isnan(b)
        same |= (np.abs(a) <= float(info.tiny)) & (np.abs(b) <= float(info.tiny)) & (a != b)
        finite = np.isfinite(a) & np.isfinite(b)
        distance = np.where(finite, np.abs(a - b), np.inf)
        scale = max(np.abs(b[np.isfinite(b)]).max(initial=0), accuracy.floor)
        # the distance of neighbours: that of the power of two at or below the expected number, or its modulus
        size = np.abs(b).max(-1, keepdims=True)
        exponent = np.floor(np.log2(np.maximum(size, float(info.tiny))))
        ulps = distance / np.exp2(exponent - info.nmant)
        few = info.bits <= 16  # computed in a wider format and rounded at the end
        allowed, errors = (min(number, 2 if few else number) for number in (accuracy.ulps, accuracy.errors))
        passed = same | finite & ((ulps <= allowed) & (allowed > 0))
        passed |= finite & (errors > 0) & (distance <= errors * float(info.eps) * scale)
        worst = np.where(passed, -1.0, np.where(finite, ulps, np.inf))
    if passed.all():
        return None
    place = np.unravel_index(int(worst.argmax()), worst.shape)
    off = f", {worst[place]:.3g} ulps or {distance[place] / scale / float(info.eps) if scale else 0:.3g} errors"
    return _described(got, want, place[:-1], f"{off}; {np.count_nonzero(~passed)} of {passed.size}")


def _described(got: np.ndarray, want: np.ndarray, place: Sequence[int], more: str) -> str:
    index = tuple(int(axis) for axis in place)
    return f"{got[index]} instead of {want[index]} at {list(index)}{more}"


def planted_outputs(want: np.ndarray) -> Iterator[np.ndarray]:
    """Wrong versions of an output, each different from it by more than any rounding: places moved, one element off."""
    for axis, size in enumerate(want.shape):
        if size > 1:
            yield np.roll(want, 1, axis)
            yield np.roll(want, size // 2, axis)
    if want.size and (want.dtype.kind in "fc" or want.dtype.name.startswith(("bfloat", "float"))):
        finite = np.where(np.isfinite(_wide(want)), _wide(want), 0)
        place = np.unravel_index(int(np.abs(finite).argmax()), want.shape) if want.shape else ()
        wrong = _wide(want)
        wrong[place] = wrong[place] * (0.75 if jnp.finfo(want.dtype).bits <= 16 else 1 - 1 / 16)
        yield wrong.astype(want.dtype)


def blind(want: np.ndarray, accuracy: Accuracy) -> bool:
    """Whether a planted error passes that changes an element by a part of the output's range."""
    for wrong in planted_outputs(want):
        if want.dtype.kind in "fc" or want.dtype.name.startswith(("bfloat", "float")):
            a, b = _wide(wrong), _wide(want)
            both = np.isfinite(a) & np.isfinite(b)
            spread = np.abs(b[both]).max(initial=0)
            least = spread / (8 if jnp.finfo(want.dtype).bits <= 16 else 32)
            if not spread or np.abs(a[both] - b[both]).max(initial=0) < max(least, 1e-30):
                continue
        elif np.array_equal(wrong, want):
            continue
        if judge(wrong, want, accuracy) is None:
            return True
    return False


# ---- one case -------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of a case; ``why`` is the reason, or the difference."""

    group: str
    name: str
    status: str
    why: str = ""
    seconds: float = 0.0
    blind: bool = False


class _TooSlow(BaseException):
    pass


def _alarm(signum: int, frame: Any) -> None:
    raise _TooSlow


def results(fn: Callable[..., Any], args: Sequence[Any]) -> tuple[Graph, list[Tensor]]:
    """The captured graph, checked, and what the reference returns for its sample."""
    graph = from_json(capture.export(fn, *args))
    errors = [str(error) for error in type_errors(graph)]
    if errors:
        raise AssertionError(f"the artifact's types do not hold: {errors[0]}")
    return graph, compared(graph)


def compared(graph: Graph) -> list[Tensor]:
    """What the reference returns, as it is compared with the sample."""
    sample = graph.samples[0]
    return aligned_results(graph, sample.outputs, lambda g, inputs: evaluate(g.body, inputs), sample.inputs)


def _refusal(error: Exception) -> str:
    problems = getattr(error, "problems", None)
    if not problems:
        return str(error)
    return f"{problems[0].primitive}: {problems[0].reason}"


def in_any_order(tensors: Sequence[Tensor], axis: int, keys: int) -> list[Tensor]:
    """Operands sorted together by an unstable sort: the keys as they are, and all with equal keys in one order."""
    arrays = [tensor.to_numpy() for tensor in tensors]
    rows = [np.moveaxis(array, axis, -1).reshape(-1, array.shape[axis]) for array in arrays]
    orders = [np.lexsort([row[k] for row in reversed(rows)]) for k in range(len(rows[0]))]
    made = [np.stack([line[order] for line, order in zip(row, orders, strict=True)]) for row in rows]
    return [*tensors[:keys], *(Tensor.from_numpy(np.ascontiguousarray(array)) for array in made)]


def by_elements(tensors: Sequence[Tensor], operand: Any) -> list[Tensor]:
    """The results of a search, the indices in the order of the elements that they name: of equal elements any is right.

    The last axis is searched. Indices that name another element than the value beside them are left as they are.
    """
    values, indices = (tensor.to_numpy() for tensor in tensors)
    found = np.take_along_axis(np.asarray(operand), indices, -1)
    distinct = all(len(set(row.tolist())) == len(row) for row in indices.reshape(-1, indices.shape[-1]))
    if distinct and np.array_equal(found, values):
        indices = np.zeros_like(indices)
    return [tensors[0], Tensor.from_numpy(np.ascontiguousarray(indices))]


def run_case(
    group: str,
    name: str,
    fn: Callable[..., Any],
    args: Sequence[Any],
    seconds: int,
    accuracy: Accuracy,
    order: Any = None,
) -> Outcome:
    """One case; ``order`` are the axis and the number of keys of an unstable sort."""
    start = time.perf_counter()

    def outcome(status: str, why: str = "", blind: bool = False) -> Outcome:
        return Outcome(group, name, status, why, time.perf_counter() - start, blind)

    signal.alarm(seconds)
    try:
        try:
            jax.block_until_ready(fn(*args))
        except Exception as error:
            return outcome(NOT_COMPARABLE, f"JAX raises {type(error).__name__}: {str(error).splitlines()[0]}")
        try:
            graph, got = results(fn, args)
        except capture.CaptureError as error:
            return outcome(REFUSED, _refusal(error))
        except TlirError as error:
            return outcome(REFUSED, str(error).splitlines()[0])
        recorded = graph.samples[0].outputs
        if order is not None:
            got, recorded = (in_any_order(tensors, *order) for tensors in (got, recorded))
        if group == "approx_top_k":
            got, recorded = (by_elements(tensors, args[0]) for tensors in (got, recorded))
        if not sum(tensor.type.size for tensor in recorded):
            return outcome(NOT_COMPARABLE, "no elements")
        for position, (mine, theirs) in enumerate(zip(got, recorded, strict=True)):
            wrong = judge(mine.to_numpy(), theirs.to_numpy(), accuracy)
            if wrong and accuracy.conditioned:
                exact = in_binary64(fn, args)[position]
                errors = [np.abs(_wide(x.to_numpy()) - exact).max() for x in (mine, theirs)]
                wrong = None if errors[0] <= MAGNIFIED * errors[1] else f"{wrong}; errors of {errors}"
            if wrong:
                return outcome(DIFFERS, f"output {position}: {wrong}")
        return outcome(MATCHED, blind=any(blind(theirs.to_numpy(), accuracy) for theirs in recorded))
    except _TooSlow:
        return outcome(CRASHED, f"more than {seconds} s")
    except Exception as error:
        return outcome(CRASHED, f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
    finally:
        signal.alarm(0)


def in_binary64(fn: Callable[..., Any], args: Sequence[Any]) -> list[np.ndarray]:
    """The outputs of the program for the same numbers in JAX's 64-bit mode."""
    jax.config.update("jax_enable_x64", True)
    try:
        wider = jax.tree.map(lambda x: _wide(x) if jnp.issubdtype(x.dtype, jnp.inexact) else x, list(args))
        return [_wide(np.asarray(x)) for x in jax.tree.leaves(fn(*wider))]
    finally:
        jax.config.update("jax_enable_x64", False)


# ---- planted errors -------------------------------------------------------------------------------------------------

_X = np.linspace(-1.5, 2.0, 36, dtype=np.float32).reshape(6, 6) ** 3 + np.eye(6, dtype=np.float32)
_S = _X @ _X.T + np.eye(6, dtype=np.float32)
_I = np.arange(36, dtype=np.int32).reshape(6, 6) * 7 % 11
_Q = np.array([0, 3, 3, 5], np.int32)
_IMAGE = np.sin(np.arange(2 * 3 * 8 * 8, dtype=np.float32)).reshape(2, 3, 8, 8)
_FILTER = np.cos(np.arange(4 * 3 * 3 * 3, dtype=np.float32)).reshape(4, 3, 3, 3)

PLANTED: list[tuple[str, Callable[..., Any], Callable[..., Any], tuple[Any, ...]]] = [
    ("reduce_sum", lambda x: x.sum(0), lambda x: x.sum(1), (_X,)),
    ("reduce_sum", lambda x: x.sum(0), lambda x: x[:-1].sum(0), (_X,)),
    ("cumsum", lambda x: lax.cumsum(x, 0), lambda x: lax.cumsum(x, 0, reverse=True), (_X,)),
    ("cumprod", lambda x: lax.cumprod(x, 0), lambda x: lax.cumprod(x, 1), (_X,)),
    ("dot_general", lambda x, y: x @ y, lambda x, y: x @ y.T, (_X, _X)),
    ("dot_general", lambda x, y: x @ y, lambda x, y: x[:, :-1] @ y[:-1], (_X, _X)),
    (
        "conv_general_dilated",
        lambda x, w: lax.conv(x, w, (1, 1), "SAME"),
        lambda x, w: lax.conv(x, w[:, :, ::-1], (1, 1), "SAME"),
        (_IMAGE, _FILTER),
    ),
    (
        "conv_general_dilated",
        lambda x, w: lax.conv(x, w, (1, 1), "SAME"),
        lambda x, w: lax.conv(x, w.at[0, 0, 0, 0].set(0), (1, 1), "SAME"),
        (_IMAGE, _FILTER),
    ),
    ("gather", lambda x, k: x[k], lambda x, k: x[:, k].T, (_X, _Q)),
    ("scatter_add", lambda x, k: x.at[k].add(1.0), lambda x, k: x.at[k].set(x[k] + 1.0), (_X, _Q)),
    ("sort", lambda x: lax.sort(x, dimension=0), lambda x: lax.sort(x, dimension=1), (_X,)),
    ("argmax", lambda x: lax.argmax(x, 0, np.int32), lambda x: lax.argmax(x, 1, np.int32), (_I,)),
    ("fft", lambda x: jnp.fft.fft(x, axis=0), lambda x: jnp.fft.fft(x, axis=1), (_X,)),
    ("fft", lambda x: jnp.fft.fft(x), lambda x: jnp.fft.ifft(x) * 6, (_X,)),
    ("cholesky", lambda a: jnp.linalg.cholesky(a), lambda a: jnp.linalg.cholesky(a).T, (_S,)),
    ("lu", lambda a: lax.linalg.lu(a), lambda a: lax.linalg.lu(a.T), (_X,)),
    ("qr", lambda a: jnp.linalg.qr(a), lambda a: tuple(-part for part in jnp.linalg.qr(a)), (_X,)),
    ("eigh", lambda a: jnp.linalg.eigh(a), lambda a: jnp.linalg.eigh(a.at[0, 0].add(0.25)), (_S,)),
    ("eigh", lambda a: jnp.linalg.eigh(a)[1], lambda a: jnp.linalg.eigh(a)[1].T, (_S,)),
    ("svd", lambda a: jnp.linalg.svd(a), lambda a: jnp.linalg.svd(a.T), (_X,)),
    (
        "triangular_solve",
        lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True),
        lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True, transpose_a=True),
        (_S, _X),
    ),
    (
        "tridiagonal_solve",
        lambda a: lax.linalg.tridiagonal_solve(a[0] * 0 + 1, a[1] + 9, a[2] * 0 + 1, a),
        lambda a: lax.linalg.tridiagonal_solve(a[0] * 0, a[1] + 9, a[2] * 0 + 1, a),
        (_S,),
    ),
    ("erf_inv", lambda x: lax.erf_inv(x / 9), lambda x: lax.erf(x / 9), (_X,)),
    ("lgamma", lambda x: lax.lgamma(x + 4), lambda x: lax.lgamma(x + 4.001), (_X,)),
    ("igamma", lambda x: lax.igamma(x * x + 1, x * x), lambda x: lax.igammac(x * x + 1, x * x), (_X,)),
    ("exp", lambda x: jnp.exp(x), lambda x: jnp.exp(x) * np.float32(1 + 2**-21), (_X,)),
    ("tanh", lambda x: jnp.tanh(x), lambda x: jnp.tanh(x) * np.float32(1 + 2**-20), (_X,)),
    ("reduce_window_max", lambda x: lax.cummax(x, 0), lambda x: lax.cummax(x, 0, reverse=True), (_X,)),
    ("select_n", lambda x: jnp.where(x > 0, x, 0), lambda x: jnp.where(x >= x.min(), x, 0), (_X,)),
]
"""The group whose accuracy counts, a program, the same with an error, and arguments."""


def planted_errors() -> list[str]:
    """Where a planted error passes, and where its program without the error does not."""
    wrong = []
    for group, right, planted, args in PLANTED:
        accuracy = ACCURACY.get(group, Accuracy())
        graph, got = results(right, args)
        other = from_json(capture.export(planted, *args))
        # the graph with the error, and the outputs that JAX records for the one without
        other = dataclasses.replace(other, samples=graph.samples)
        mistaken = compared(other)
        wants = [tensor.to_numpy() for tensor in graph.samples[0].outputs]
        judged = [judge(tensor.to_numpy(), want, accuracy) for tensor, want in zip(got, wants, strict=True)]
        differences = [text for text in judged if text]
        if differences:
            wrong.append(f"{group}: the program without an error differs: {differences[0]}")
        if not any(judge(tensor.to_numpy(), want, accuracy) for tensor, want in zip(mistaken, wants, strict=True)):
            wrong.append(f"{group}: the planted error passes")
    return wrong


# ---- the database ---------------------------------------------------------------------------------------------------


def database() -> list[Any]:
    """The cases that JAX itself implements on a CPU."""
    arguments, sys.argv = sys.argv, sys.argv[:1]  # the database parses the flags of JAX's tests
    try:
        from jax._src.internal_test_util import test_harnesses
    except ImportError as missing:
        raise SystemExit(f"jax_ops: {missing}; the database needs absl-py: pip install absl-py") from None
    finally:
        sys.argv = arguments
    return [case for case in test_harnesses.all_harnesses if case.filter("cpu")]


def chosen(cases: list[Any], options: argparse.Namespace) -> list[Any]:
    if options.primitive:
        cases = [case for case in cases if case.group_name in options.primitive]
    if options.name:
        cases = [case for case in cases if re.search(options.name, case.fullname)]
    if options.sample:
        # every group in its share, but at least one case: the same ones each time
        step = max(1.0, len(cases) / options.sample)
        groups = collections.defaultdict(list)
        for case in cases:
            groups[case.group_name].append(case)
        cases = [
            group[int(k * len(group) / count)]
            for group in groups.values()
            for count in [max(1, round(len(group) / step))]
            for k in range(count)
        ]
    part, parts = (int(number) for number in options.shard.split("/"))
    return cases[part - 1 :: parts]


def table(outcomes: Sequence[Outcome], command: str) -> str:
    """Counts by primitive, and the reasons of what does not match, as Markdown; ``command`` is what was called."""
    columns = (MATCHED, DIFFERS, REFUSED, CRASHED, NOT_COMPARABLE)
    groups: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for outcome in outcomes:
        groups[outcome.group][outcome.status] += 1
    total = collections.Counter(outcome.status for outcome in outcomes)
    compared = len(outcomes) - total[NOT_COMPARABLE]
    share = 100 * total[MATCHED] / compared if compared else 0.0
    lines = [
        "# JAX's database of primitives",
        "",
        f"`{command}`, jax {jax.__version__}, CPU: of {len(outcomes)} cases {total[MATCHED]} match, "
        f"{total[DIFFERS]} differ, {total[REFUSED]} are refused by name, {total[CRASHED]} crash, and "
        f"{total[NOT_COMPARABLE]} cannot be compared: {share:.2f} % of the others match. "
        f"{sum(outcome.blind for outcome in outcomes)} would also pass with a planted error, and "
        f"{len(PLANTED)} planted programs do not.",
        "",
        "| primitive | " + " | ".join(columns) + " | accuracy |",
        "|---|" + "---|" * (len(columns) + 1),
    ]
    for group, counts in sorted(groups.items()):
        accuracy = ACCURACY.get(group)
        stated = "equal words"
        if accuracy:
            parts = [f"{accuracy.ulps} ulps"] if accuracy.ulps else []
            parts += [f"{accuracy.errors:g} eps of the largest" + (" or 1" if accuracy.floor else "")] * bool(
                accuracy.errors
            )
            stated = ", or ".join(parts)
        if group in COMPLEX:
            stated += f"; complex {COMPLEX[group].ulps} ulps"
        row = " | ".join(str(counts[column] or "") for column in columns)
        lines.append(f"| `{group}` | {row} | {stated} |")
    for status in (DIFFERS, REFUSED, CRASHED, NOT_COMPARABLE):
        reasons = collections.Counter((o.group, o.why) for o in outcomes if o.status == status)
        if reasons:
            lines += ["", f"## {status}", ""]
            lines += [f"* `{group}` ({count}): {why}" for (group, why), count in sorted(reasons.items())]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="Capture and compare JAX's own database of primitives.")
    parser.add_argument("--primitive", action="append", help="only this group of cases; may be repeated")
    parser.add_argument("--name", help="only cases whose full name this regular expression finds")
    parser.add_argument("--sample", type=int, help="so many cases, of every group in its share")
    parser.add_argument("--max-seconds", type=int, default=60, help="the most that one case may take (default 60)")
    parser.add_argument("--shard", default="1/1", help="K/N: the K-th of N parts")
    parser.add_argument("--output", type=Path, help="write the table to this file too")
    parser.add_argument("--verbose", action="store_true", help="print every case that does not match")
    parser.add_argument("--no-planted", action="store_true", help="leave the planted programs out")
    options = parser.parse_args()
    signal.signal(signal.SIGALRM, _alarm)
    warnings.simplefilter("ignore")
    outcomes = []
    for k, case in enumerate(chosen(database(), options)):
        # a generator per case, so that a case has the same arguments in every selection
        rng = np.random.RandomState(zlib.crc32(case.fullname.encode()))
        args = case.dyn_args_maker(rng)
        unstable = case.group_name == "sort" and not case.params["is_stable"] and case.params.get("num_arrays", 1) > 1
        order = (case.params["dimension"], int(re.findall(r"num_keys_(\d+)", case.name)[0])) if unstable else None
        accuracy = accuracy_of(case.group_name, case.dtype)
        outcome = run_case(case.group_name, case.fullname, case.dyn_fun, args, options.max_seconds, accuracy, order)
        outcomes.append(outcome)
        if options.verbose and (outcome.status != MATCHED or outcome.blind):
            mark = "blind" if outcome.blind else outcome.status
            print(f"{mark}: {outcome.name}: {outcome.why[:300]} ({outcome.seconds:.1f} s)", flush=True)
        if k % 500 == 499:
            jax.clear_caches()
    wrong = [] if options.no_planted else planted_errors()
    selecting = {"--primitive": options.primitive, "--name": options.name, "--sample": options.sample}
    chosen_by = "".join(f" {option} {value}" for option, value in selecting.items() if value)
    text = table(
        outcomes, f"python bench/jax_ops.py{chosen_by}" + f" --shard {options.shard}" * (options.shard != "1/1")
    )
    print(text)
    for line in wrong:
        print(line)
    if options.output:
        options.output.write_text(text)
    bad = sum(outcome.status in (DIFFERS, CRASHED) or outcome.blind for outcome in outcomes)
    return 1 if bad or wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
