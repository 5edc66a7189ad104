"""PyTorch's operator database through the capture and the reference.

    python bench/torch_ops.py [--op PATTERN] [--dtype float32] [--sample 3] [--max-seconds 600] [--record FILE]

Each operator of ``torch.testing._internal.common_methods_invocations.op_db`` is called on its first sample inputs, in
each dtype that it takes; the call is captured with ``capture/torch_capture.py``, checked, evaluated by the reference,
and compared with what the operator itself returned. Cases that ``torch.export`` refuses are not counted.

What matching means, by the class of the operator (``limits``):

* integers and Booleans: every word is equal;
* data movement and operations that round once (``EXACT``): every word is equal, NaN matching NaN;
* everything else: ``|mine - theirs| <= k * eps * (|theirs| + m)`` with the dtype's eps and m the largest finite size
  in the result (of the operands where the result is a sum that cancels), k = 4 in float16 and bfloat16, 32 in
  float32 and 64 in float64 (whose sums are as long, and whose special functions torch computes less carefully).

``--planted`` swaps the result for a wrong one (an axis reversed, a term left out, every value moved by 2^-5, 2^-2
in the 16-bit formats) and must find a difference in each case where that changes anything.

Results with several right answers (``FREE``), random numbers and unset memory (``RANDOM``) are left out and listed.
A record keeps the outcome of every case by its name, so that a run can be continued and repeated in part.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import fnmatch
import importlib.util
import itertools
import json
import math
import random
import re
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

from tlir.backends.reference import evaluate
from tlir.ir.tensor import Tensor
from tlir.ir.verify import type_errors
from tlir.schema import from_json

ROOT = Path(__file__).parents[1]
DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "bool", "complex64")

RANDOM = {
    *("bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "normal", "uniform"),
    *("rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "svd_lowrank", "pca_lowrank"),
    *("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"),
    *("nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d", "nn.functional.alpha_dropout"),
    *("nn.functional.feature_alpha_dropout", "nn.functional.fractional_max_pool2d", "nn.functional.rrelu"),
    *("nn.functional.fractional_max_pool3d", "nn.functional.gumbel_softmax", "bernoulli_", "resize_", "resize_as_"),
    *("nn.functional.scaled_dot_product_attention.dropout", "torch.ops.aten._efficient_attention_forward"),
    *("torch.ops.aten._flash_attention_forward", "normal.number_mean"),
}
"""Operators that draw random numbers or return memory as it was."""

FREE = {
    *("eig", "linalg.eig", "linalg.eigh", "linalg.svd", "svd", "linalg.qr", "qr", "geqrf", "symeig", "ormqr"),
    *("linalg.lobpcg", "lobpcg", "linalg.ldl_factor", "linalg.ldl_factor_ex"),
}
"""Factorisations whose results are unique up to signs, phases or order only; tests compare them by reconstruction."""

EXACT = {
    *("abs", "add", "sub", "mul", "div", "true_divide", "neg", "reciprocal", "floor", "ceil", "round", "trunc"),
    *("clamp", "clamp_min", "clamp_max", "maximum", "minimum", "fmax", "fmin", "max", "min", "amax", "amin", "sign"),
    *("sort", "topk", "kthvalue", "median", "nanmedian", "mode", "msort", "cummax", "cummin", "aminmax", "where"),
    *("nextafter", "copysign", "frexp", "ldexp", "fmod", "positive", "nn.functional.relu", "nn.functional.threshold"),
    *("gather", "take", "take_along_dim", "index_select", "masked_fill", "scatter", "index_copy", "index_fill"),
    *("nn.functional.embedding", "nn.functional.max_pool1d", "nn.functional.max_pool2d", "nn.functional.max_pool3d"),
    *("cat", "stack", "roll", "flip", "rot90", "tril", "triu", "diag", "diagonal", "as_strided", "unfold", "repeat"),
    *("view", "reshape", "permute", "transpose", "expand", "squeeze", "unsqueeze", "split", "chunk", "tile", "clone"),
}
"""Operators whose every element is a word of the operands or an exact value rounded once; complex results, whose
products round several times, are compared as the others are."""

TIES = {"sort", "argsort", "topk", "kthvalue", "median", "nanmedian", "max", "min"}
"""Operators that choose among equal elements as they please: those at the places they give are compared instead."""

FACTORS = {"float16": 4.0, "bfloat16": 4.0, "float32": 32.0, "float64": 64.0}


class _Late(Exception):
    """A case took longer than it may."""


@contextlib.contextmanager
def _alarm(seconds: int) -> Iterator[None]:
    def late(signum: int, frame: Any) -> None:
        raise _Late

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _load_capture() -> Any:
    spec = importlib.util.spec_from_file_location("torch_capture", ROOT / "capture" / "torch_capture.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["torch_capture"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


capture = _load_capture()

# ---- comparing ------------------------------------------------------------------------------------------------------


def _numbers(tensor: Tensor) -> np.ndarray:
    """The elements in float64 or complex128, or the words where they are not floating-point."""
    plain = torch.frombuffer(bytearray(np.ascontiguousarray(tensor.words).tobytes() or b"\0"), dtype=torch.uint8)
    dtype = getattr(torch, str(tensor.dtype), None)
    if tensor.dtype.name == "complex<float16>":
        dtype = torch.complex32
    assert isinstance(dtype, torch.dtype), tensor.dtype
    count = math.prod(tensor.shape)
    if not count:
        return np.zeros(tensor.shape)
    value = plain[: count * dtype.itemsize].view(dtype).reshape(tensor.shape)
    wide = torch.complex128 if dtype.is_complex else torch.float64 if dtype.is_floating_point else dtype
    return np.asarray(value.to(wide).numpy())


def _gap(mine: np.ndarray, theirs: np.ndarray, factor: float, eps: float) -> bool:
    """Whether two arrays of real numbers are further apart than ``factor`` allows; 0 asks for equal numbers."""
    nans = np.isnan(mine), np.isnan(theirs)
    if (nans[0] != nans[1]).any():
        return True
    infinite = np.isinf(mine) | np.isinf(theirs)
    usual = ~(nans[0] | infinite)
    if (mine[infinite] != theirs[infinite]).any():
        return True
    a, b = mine[usual], theirs[usual]
    if not a.size:
        return False
    scale = np.abs(b) + np.abs(b).max()
    return bool((np.abs(a - b) > factor * eps * scale).any())


def differs(mine: Tensor, theirs: torch.Tensor, exact: bool) -> str:
    """Why a result does not match, or nothing."""
    theirs = theirs.detach().resolve_conj().resolve_neg().contiguous()
    dtype = capture.DTYPES.get(theirs.dtype)
    if (str(mine.dtype), tuple(mine.shape)) != (dtype, tuple(theirs.shape)):
        return f"{mine.dtype}{list(mine.shape)} for {dtype}{list(theirs.shape)}"
    if not theirs.numel():
        return ""
    wide = theirs.dtype
    if theirs.dtype.is_complex:
        wide = torch.complex128
    elif theirs.dtype.is_floating_point:
        wide = torch.float64
    found, wanted = _numbers(mine), theirs.to(wide).numpy()
    if not (theirs.dtype.is_floating_point or theirs.dtype.is_complex):
        wrong = int((found != wanted).sum())
        return f"{wrong} of {found.size} integers" if wrong else ""
    eps = torch.finfo(theirs.dtype).eps
    part = dtype if dtype in FACTORS else capture._PARTS.get(dtype, "float32")
    factor = 0.0 if exact and not theirs.dtype.is_complex else FACTORS.get(part, 4.0)
    pairs = [(found, wanted)]
    if theirs.dtype.is_complex:
        # A component may be far below the error of the other; both are held against the size of the number.
        both = np.isfinite(found) & np.isfinite(wanted)
        if (np.isfinite(found) != np.isfinite(wanted)).any():
            return "finite against not"
        a, b = found[both], wanted[both]
        far = a.size and (np.abs(a - b) > factor * eps * (np.abs(b) + np.abs(b).max())).any()
        return f"largest difference {np.abs(a - b).max():.3g} at {np.abs(b).max():.3g}" if far else ""
    for a, b in pairs:
        if _gap(a, b, factor, eps):
            with np.errstate(all="ignore"):
                worst = np.nanmax(np.where(np.isfinite(a - b), np.abs(a - b), 0))
            return f"largest difference {worst:.3g} at {np.nanmax(np.where(np.isfinite(b), np.abs(b), 0)):.3g}"
    return ""


def _planted(tensor: torch.Tensor) -> list[torch.Tensor]:
    """Wrong results that must not match: each that differs from the right one at all."""
    if not tensor.numel() or tensor.dtype not in capture.DTYPES or tensor.dtype == torch.complex32:
        return []
    value = tensor.detach().resolve_conj().resolve_neg()
    turned = value.flip(0) if value.dim() else value
    wrong = [turned, value.transpose(0, -1) if value.dim() > 1 else value]
    if value.dtype.is_floating_point or value.dtype.is_complex:
        part = 2.0 ** (-2 if torch.finfo(value.dtype).eps > 1e-4 else -5)
        wrong += [value * (1 + part), value + part * turned]
    else:
        wrong.append(value ^ 1 if value.dtype != torch.bool else ~value)
    result = []
    for candidate in wrong:
        a, b = (x.to(torch.complex128) for x in (candidate, value))
        if a.shape != b.shape or candidate.dtype != value.dtype:
            continue
        usual = torch.isfinite(a) & torch.isfinite(b)
        if usual.any():
            far = (a - b)[usual].abs().max() > (0.05 if value.element_size() < 4 else 1e-3) * b[usual].abs().max()
            result += [candidate] if far else []
    return result


# ---- one case -------------------------------------------------------------------------------------------------------


def _leaves(result: Any) -> list[torch.Tensor]:
    found, _ = torch.utils._pytree.tree_flatten(result)
    return [capture._number(x) if isinstance(x, (bool, int, float, complex)) else x for x in found if x is not None]


def _same_elements(name: str, sample: Any, mine: Tensor, theirs: torch.Tensor) -> bool:
    """Whether the operand has the same elements at the places that two unstable sorts give."""
    given = [x for x in sample.args if isinstance(x, int) and not isinstance(x, bool)][name in ("topk", "kthvalue") :]
    dim = sample.kwargs.get("dim", given[0] if given else -1)
    values = sample.input if sample.input.dim() else sample.input.reshape(1)
    places = [torch.from_numpy(_numbers(mine)), theirs]
    places = [x if x.dim() == values.dim() else x.unsqueeze(dim) for x in places]
    found = [torch.gather(values, dim, x) for x in places]
    return bool(capture._words(found[0]) == capture._words(found[1]))


def _accepted(op: Any, sample: Any) -> bool:
    """Whether torch.export itself takes this call."""
    flat = capture._Flat(op.op, (sample.input, *sample.args), sample.kwargs)
    tensors = tuple(leaf.detach() for leaf in flat.leaves if isinstance(leaf, torch.Tensor))
    try:
        with capture._quiet(), torch.no_grad(), contextlib.redirect_stderr(None):
            torch.export.export(flat, tensors, strict=False)
    except _Late:
        raise
    except Exception:
        return False
    return True


def _detached(sample: Any) -> Any:
    return sample.transform(lambda x: x.detach() if isinstance(x, torch.Tensor) else x)


def outcome(op: Any, sample: Any, exact: bool, planted: bool) -> tuple[str, str]:
    """What became of one case, and why."""
    arguments = (sample.input, *sample.args)
    try:
        artifact = capture.export(op.op, *arguments, **sample.kwargs)
    except capture.UnsupportedError as error:
        if not _accepted(op, sample):
            return "not exported", ""
        if any("random numbers" in problem.reason for problem in error.problems):
            return "not exported", "random"
        return "refused", "; ".join(str(problem) for problem in error.problems[:3])
    except capture.CaptureError as error:
        if not _accepted(op, sample):
            return "not exported", str(error)
        return "refused", str(error)
    except _Late:
        raise
    except Exception as error:
        return "crashed", f"capture: {type(error).__name__}: {error}"
    try:
        graph = from_json(artifact)
        errors = type_errors(graph)
        if errors:
            return "crashed", f"check: {errors[0]}"
        results = evaluate(graph.body, graph.samples[0].inputs)
    except _Late:
        raise
    except Exception as error:
        return "crashed", f"{type(error).__name__}: {error}"
    fresh = copied(sample)
    torch.manual_seed(1)
    expected = _leaves(op.op(fresh.input, *fresh.args, **fresh.kwargs))
    again = copied(sample)
    torch.manual_seed(2)
    others = _leaves(op.op(again.input, *again.args, **again.kwargs))
    if any(x.shape != y.shape or capture._words(x) != capture._words(y) for x, y in zip(expected, others, strict=True)):
        return "not exported", "random"
    if len(results) < len(expected):
        return "differs", f"{len(results)} results for {len(expected)}"
    if not expected:
        return "not exported", "no tensor is returned"
    reasons = [differs(mine, theirs, exact) for mine, theirs in zip(results, expected, strict=False)]
    chooses = op.name in TIES and expected[-1].dtype == torch.int64 and (len(expected) == 2 or op.name == "argsort")
    if chooses and reasons[-1] and _same_elements(op.name, sample, results[len(expected) - 1], expected[-1]):
        reasons[-1] = ""
    if any(reasons):
        return "differs", "; ".join(f"result {k}: {r}" for k, r in enumerate(reasons) if r)
    if planted:
        for mine, theirs in zip(results, expected, strict=False):
            if any(not differs(mine, wrong, exact) for wrong in _planted(theirs)):
                return "planted", "a planted error was not found"
    if artifact["producer"]["flags"]["traced_by"] != "torch.export" and not _accepted(op, sample):
        return "not exported", "captured all the same, by make_fx"
    return "matched", ""


def copied(sample: Any) -> Any:
    """A sample whose tensors may be changed in place, of the same strides and conjugation."""
    return sample.transform(lambda x: x.detach().clone() if isinstance(x, torch.Tensor) else x)


def _seed() -> None:
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)


# ---- the record and its table ---------------------------------------------------------------------------------------

ORDER = ("matched", "differs", "refused", "crashed", "timeout", "planted", "not exported")


def _table(record: dict[str, list[str]]) -> str:
    by_dtype: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for key, (label, _) in record.items():
        by_dtype[key.split(" ")[1]][label] += 1
    lines = ["| dtype | cases | " + " | ".join(ORDER) + " | share matched |", "|---|---|" + "---|" * (len(ORDER) + 1)]
    total: collections.Counter[str] = collections.Counter()
    for dtype in [*(d for d in DTYPES if d in by_dtype), "all"]:
        counts = total if dtype == "all" else by_dtype[dtype]
        if dtype != "all":
            total += counts
        cases = sum(counts.values()) - counts["not exported"]
        share = f"{100 * counts['matched'] / cases:.1f} %" if cases else ""
        lines.append(f"| {dtype} | {cases} | " + " | ".join(str(counts[x]) for x in ORDER) + f" | {share} |")
    return "\n".join(lines)


def _without_arguments(reason: str) -> str:
    """The first operator of a refusal and why, without its arguments and dtypes, so that dtypes share a line."""
    first = re.sub(r"\(.*\)", "", re.sub(r"  at [^:]*:\d+ in [^:;]*", "", reason.split("; ")[0]))
    return re.sub(r"torch\.(b?float\d+|complex\d+)", "a dtype", first)[:160]


def _report(record: dict[str, list[str]], left_out: set[str]) -> str:
    groups: dict[tuple[str, str, str], list[str]] = collections.defaultdict(list)
    for key, (label, reason) in sorted(record.items()):
        if label not in ("matched", "not exported"):
            name, dtype, sample = key.split(" ")
            groups[name, label, _without_arguments(reason)].append(f"{dtype}#{sample}")
    lines = [
        "# PyTorch's operator database, measured",
        "",
        f"torch {torch.__version__}, CPU; `python bench/torch_ops.py`: what matching means is said there. A case is",
        "one sample input of one operator in one dtype; those that `torch.export` refuses are not counted.",
        "",
        _table(record),
        "",
        "## What did not match",
        "",
        "| operator | outcome | cases | reason |",
        "|---|---|---|---|",
    ]
    for (name, label, reason), cases in groups.items():
        shown = ", ".join(cases[:4]) + (f" and {len(cases) - 4} more" if len(cases) > 4 else "")
        lines.append(f"| {name} | {label} | {shown} | {reason.replace('|', '/').replace(chr(10), ' ')} |")
    lines += [
        "",
        "## Left out",
        "",
        "Random numbers, unset memory, or several right answers: " + ", ".join(sorted(left_out)) + ".",
    ]
    return "\n".join(lines) + "\n"


def _cases(options: argparse.Namespace) -> Iterator[tuple[str, Any, str, int, Any]]:
    for dtype in options.dtype:
        for op in sorted(op_db, key=lambda op: (op.name, op.variant_test_name)):
            name = f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name
            if op.name in RANDOM or op.name in FREE or not any(fnmatch.fnmatch(name, p) for p in options.op):
                continue
            if getattr(torch, dtype) not in op.dtypes:
                continue
            _seed()
            count = options.sample if dtype == "float32" else max(1, options.sample // 3)
            try:
                supply = iter(op.sample_inputs("cpu", getattr(torch, dtype)))
                samples = list(itertools.islice(supply, count))
                if hasattr(supply, "close"):  # a generator left open would be finished inside some later trace
                    supply.close()
            except Exception as error:  # the database's own generators fail for some dtypes
                print(f"{name} {dtype}: no samples: {type(error).__name__}", flush=True)
                continue
            for k, sample in enumerate(samples):
                yield name, op, dtype, k, _detached(sample)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--op", action="append", help="operators whose name matches this pattern (repeatable)")
    parser.add_argument("--dtype", action="append", choices=DTYPES, help="dtypes (repeatable; all by default)")
    parser.add_argument("--sample", type=int, default=3, help="float32 cases per operator; a third of it in the others")
    parser.add_argument("--max-seconds", type=float, default=3600, help="stop after this time")
    parser.add_argument("--case-seconds", type=int, default=60, help="time of one case")
    parser.add_argument("--record", help="a JSON file of outcomes, continued where it exists")
    parser.add_argument("--again", action="store_true", help="repeat the recorded cases that did not match")
    parser.add_argument("--all", action="store_true", help="repeat every recorded case")
    parser.add_argument("--planted", action="store_true", help="check that planted errors are found")
    parser.add_argument("--report", help="write the table to this file")
    options = parser.parse_args()
    options.op, options.dtype = options.op or ["*"], options.dtype or list(DTYPES)
    path = Path(options.record) if options.record else None
    record: dict[str, list[str]] = json.loads(path.read_text()) if path and path.exists() else {}
    warnings.simplefilter("ignore")
    began, ran = time.monotonic(), 0
    for name, op, dtype, k, sample in _cases(options):
        key = f"{name} {dtype} {k}"
        settled = key in record and (not options.again or record[key][0] in ("matched", "not exported"))
        if (settled or (options.again and key not in record)) and not options.all:
            continue
        if time.monotonic() - began > options.max_seconds:
            print(f"stopped before {key}")
            break
        exact = op.name in EXACT
        try:
            with _alarm(options.case_seconds):
                label, reason = outcome(op, sample, exact, options.planted)
        except _Late:
            label, reason = "timeout", f"more than {options.case_seconds} s"
        record[key] = [label, reason]
        ran += 1
        if label not in ("matched", "not exported"):
            print(f"{key}: {label}: {reason}"[:320].replace("\n", " "), flush=True)
        if path and ran % 25 == 0:
            path.write_text(json.dumps(record, indent=0))
    if path:
        path.write_text(json.dumps(record, indent=0))
    print(f"{ran} cases in {time.monotonic() - began:.0f} s")
    print(_table(record))
    if options.report:
        left_out = {op.name for op in op_db if op.name in RANDOM or op.name in FREE}
        Path(options.report).write_text(_report(record, left_out))


if __name__ == "__main__":
    main()
