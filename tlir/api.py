"""What ``import tlir`` offers: load, check, run and compare artifacts, and verify functions in one call."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tlir.errors import TlirError, UnsupportedError, UsageError

if TYPE_CHECKING:
    from tlir.compare import CompareReport
    from tlir.compare.rule import Number
    from tlir.floatlib.format import Format
    from tlir.ir.graph import Graph as IrGraph
    from tlir.ir.tensor import Tensor
    from tlir.iteration import Pairs
    from tlir.passes.check import Check, CheckReport

CHECKS = ("structure", "types", "broadcasts", "constants", "compare")
"""The checks that ``verify`` can make."""

FRONTENDS = ("jax", "torch")


@dataclass(frozen=True)
class Graph:
    """A loaded artifact. ``ir`` is the graph as plain records (``tlir.ir.graph.Graph``)."""

    ir: IrGraph
    path: str | None = None

    def __getstate__(self) -> dict[str, Any]:
        # what devices have prepared for this process is not for copies of the graph, nor for other processes
        return {"ir": self.ir, "path": self.path}

    @property
    def name(self) -> str:
        return self.ir.name

    @property
    def input_names(self) -> list[str]:
        """A name per input, in the order of ``input_ids``."""
        return self.ir.body.input_names()

    @property
    def output_names(self) -> list[str]:
        """A name per output: ``output``, ``output[1]``, or the path in the output tree."""
        return self.ir.output_names()

    def check(self, *, lowering: bool = False) -> CheckReport:
        """Structure, types, broadcasts and constants: a report with ``.ok`` and ``.checks``.

        With ``lowering`` also whether the kernels of the graph compute what it says, expression by expression."""
        from tlir.passes.check import check

        return check(self.ir, lowering)

    def run(self, arrays: Any = None, *, device: str = "auto", sample: int = 0) -> Any:
        """The outputs for the recorded sample, or for ``arrays``.

        ``arrays`` is a sequence of arrays in the order of ``input_ids``, a mapping from input names to arrays, or the
        arguments of the captured function in their own structure. Each must have exactly the dtype and shape of its
        input; for a scalar input a Python number is taken that the dtype holds exactly.

        Returns a list of NumPy arrays in the order of ``output_ids``, of ml_dtypes' types for the small formats, or the
        structure of the output tree where there is one. A format that NumPy does not have gives an object array of
        ``tlir.floatlib.value.Value``.

        ``device`` "auto" is the compiled device "cpu" where it is installed and the graph is work enough, otherwise the
        reference. All devices return the same words.

        Raises UsageError TL0601 for inputs that do not fit, TL0602 where there is no such sample, ArtifactError TL03xx
        where the declared types do not hold, UnsupportedError for a device that is not here or too little memory.
        """
        from tlir.backends import run

        device = self._chosen(device)
        if device == "cpu" and (results := self._run_directly(arrays)) is not None:
            return results
        if arrays is not None:
            from tlir.arguments import bind

            inputs: Sequence[Any] | None = bind(self.ir, arrays)
        else:
            inputs = self.sample_inputs(sample)
        return self._results(run(self.ir, inputs, device=device))

    def _chosen(self, device: str) -> str:
        """The device of one more run: a graph that ``auto`` once compiled stays compiled."""
        if device in ("cpu", "reference"):
            return device
        known: str | None = self.__dict__.get("_automatic")
        if device == "auto" and known is not None:
            return known
        from tlir.backends.automatic import chosen

        if device != "auto":
            return chosen(device, self.ir.body)
        runs = self.__dict__.get("_runs", 0) + 1
        object.__setattr__(self, "_runs", runs)
        found = chosen(device, self.ir.body, runs=runs)
        if found != "reference":
            object.__setattr__(self, "_automatic", found)
        return found

    def _run_directly(self, arrays: Any) -> Any:
        """What ``run`` returns, where the inputs are just the arrays that compiled kernels take; else None."""
        known = self.__dict__.get("_direct")
        if known is None:
            from tlir.backends import prepare_compiled

            known = prepare_compiled(self.ir)
            object.__setattr__(self, "_direct", known)
        if not known or arrays is None:
            return None
        results = known.run(arrays) if isinstance(arrays, list | tuple) else None
        if results is None:
            from tlir.arguments import in_order

            results = known.run(in_order(self.ir, arrays))
        return results if results is None else self._in_structure(results)

    def iterate(
        self,
        steps: int,
        carry: Pairs = (),
        arrays: Any = None,
        *,
        each: Mapping[str, Any] | None = None,
        record: str | Iterable[str] = (),
        device: str = "auto",
        sample: int = 0,
    ) -> Any:
        """The outputs after ``steps`` steps, outputs of each becoming inputs of the next as ``carry`` says.

        ``carry`` maps names of outputs to names of inputs (or to several), or is pairs of them. A name stands for one
        value or for all below it, so that ``{"params": "params"}`` carries every parameter that the graph takes as
        ``params[…]`` and returns as ``output['params'][…]``; of an output's name ``output`` may be left out. The first
        step runs on ``arrays`` or the recorded sample, as in ``run``.

        ``each`` maps names of inputs to arrays with a leading axis of ``steps``, one slice per step; where ``arrays``
        is a mapping it need not have these. Outputs named in ``record`` are kept of every step: they have a leading
        axis of ``steps``, all others the value of the last step.

        Returns what ``run`` returns. Raises, before the first step, UsageError TL0901 for names of outputs that are not
        there, an input that is carried twice or also in ``each``, and steps that would all be the same; TL0601 for
        inputs that are not there and types that do not match; and what ``run`` raises.
        """
        from tlir.backends.automatic import chosen
        from tlir.backends.iterate import iterate
        from tlir.iteration import carries, for_each, recorded

        if not isinstance(steps, int) or isinstance(steps, bool) or steps < 1:
            raise UsageError("TL0901", f"the number of steps is a positive integer, not {steps!r}")
        device = chosen(device, self.ir.body, runs=steps)
        pairs = carries(self.ir, carry)
        kept = recorded(self.ir, record)
        stacked = for_each(self.ir, each or {}, steps)
        names = self.input_names
        first = {names[k]: tensor.row(0) for k, tensor in stacked.items()}
        if arrays is not None:
            from tlir.arguments import bind

            inputs: Sequence[Any] = bind(self.ir, {**arrays, **first} if isinstance(arrays, Mapping) else arrays)
        elif first and all(name in first for name in names):
            inputs = [first[name] for name in names]
        else:
            recorded_inputs = self.sample_inputs(sample)
            if recorded_inputs is None:
                from tlir.backends import prepare

                recorded_inputs = prepare(self.ir)
            inputs = recorded_inputs
        return self._results(iterate(self.ir, steps, inputs, pairs, each=stacked, record=kept, device=device))

    def _results(self, tensors: Sequence[Tensor]) -> Any:
        """The outputs as NumPy arrays in their structure."""
        # copies: an output may be an input or a constant, which nobody should change through it
        return self._in_structure([tensor.to_numpy().copy() for tensor in tensors])

    def _in_structure(self, results: list[Any]) -> Any:
        if self.ir.output_tree is None:
            return results
        from tlir.ir.tree import build

        return build(self.ir.output_tree, results)

    def cast(
        self,
        to: str | Format,
        *,
        sources: Sequence[str] = (),
        nodes: Sequence[str] = (),
        keep_io: bool = False,
        keep_casts: bool = False,
    ) -> Graph:
        """The graph in another floating-point format, as ``tlir cast`` makes it; ``tlir.passes.cast.cast`` also gives
        the report. Raises UsageError for a format or node that is not there, ArtifactError TL03xx where the declared
        types do not hold, UnsupportedError TL1001 where an operation would mean something else."""
        from tlir.passes.cast import cast

        return Graph(cast(self.ir, to, sources=sources, nodes=nodes, keep_io=keep_io, keep_casts=keep_casts)[0])

    def reorder(
        self,
        order: str | None = None,
        *,
        fma: bool | None = None,
        dtype: str | None = None,
        nodes: Sequence[str] = (),
    ) -> Graph:
        """The graph with another order, format or fusion of its sums and products, as ``tlir reorder`` makes it;
        ``tlir.passes.reorder.reorder`` also gives the report. Raises UsageError for settings and nodes that are not
        there, and what the type rules forbid."""
        from tlir.passes.reorder import reorder

        return Graph(reorder(self.ir, order, fma, dtype, nodes)[0])

    def sample_inputs(self, sample: int = 0) -> Sequence[Any] | None:
        """The recorded input tensors of a sample; None for sample 0 of a graph that has none recorded."""
        recorded = self.ir.samples
        if not isinstance(sample, int) or isinstance(sample, bool):
            raise UsageError("TL0901", f"a sample is chosen by its number, not by {sample!r}")
        if not recorded and sample == 0:
            return None
        if not 0 <= sample < len(recorded):
            hint = f"the artifact has {counted(len(recorded), 'sample')}, counted from 0"
            raise UsageError("TL0602", f"there is no sample {sample}", file=self.path, hint=hint)
        return recorded[sample].inputs

    def compare(
        self,
        *,
        tolerance: Number | None = None,
        rtol: Number = 0,
        ulps: int | None = None,
        words: bool = False,
        nan_payload: bool = False,
        device: str = "reference",
        policy: str | None = None,
        accuracy: str | os.PathLike[str] | None = None,
    ) -> CompareReport:
        """Compare with the recorded outputs: see ``tlir.compare.compare`` for what passes. A report with ``.ok``.

        With ``tolerance="auto"`` rigorous bounds judge, under the ``policy`` "strict", "reorder", "frontend" (unless
        given) or "loose"; ``accuracy`` is the path of another table of the accuracy of elementary functions. The report
        then also has a ``.verdict``. Of an artifact with a trace, its ``.locations`` say where a difference starts.
        """
        from tlir.compare import compare

        return compare(
            self.ir,
            tolerance=tolerance,
            rtol=rtol,
            ulps=ulps,
            words=words,
            nan_payload=nan_payload,
            device=device,
            policy=policy,
            table=None if accuracy is None else Path(accuracy),
        )

    def compare_against(
        self,
        other: Graph | str | os.PathLike[str],
        *,
        policy: str | None = None,
        accuracy: str | os.PathLike[str] | None = None,
    ) -> CompareReport:
        """Compare what this artifact recorded with what ``other``, of the same graph, did: compiled and not, in float32
        and in bfloat16, by two versions of a frontend. Bounds judge: see ``tlir.compare.against.compare_against``.

        Raises UsageError TL0901 where the graphs or the inputs are not the same.
        """
        from tlir.compare.against import compare_against

        second = other if isinstance(other, Graph) else load(other)
        names = (self.path or "the first", second.path or "the second")
        return compare_against(
            self.ir,
            second.ir,
            policy=policy or "frontend",
            table=None if accuracy is None else Path(accuracy),
            names=names,
        )


def load(artifact: str | os.PathLike[str] | Mapping[str, Any]) -> Graph:
    """Read an artifact from a file, or from the document that a capture script returned.

    A graph whose declared types do not hold is loaded; ``check`` reports it. Raises ArtifactError for anything that is
    not a valid artifact.
    """
    from tlir.schema import from_json, read

    if isinstance(artifact, Mapping):
        return Graph(from_json(artifact))
    if not isinstance(artifact, str | os.PathLike):
        raise UsageError("TL0901", f"an artifact is a path or a dict, not a {type(artifact).__name__}")
    path = os.fspath(artifact)
    return Graph(read(path), path)


def compare(
    artifact: str | os.PathLike[str] | Mapping[str, Any] | Graph,
    tolerance: Number | None = None,
    rtol: Number = 0,
    *,
    ulps: int | None = None,
    words: bool = False,
    nan_payload: bool = False,
    device: str = "reference",
    policy: str | None = None,
    accuracy: str | os.PathLike[str] | None = None,
) -> CompareReport:
    """Run an artifact on its samples and compare with the outputs that the frontend recorded.

    ``tolerance`` is absolute, by default the artifact's own or 2e-5; with "auto" bounds judge under the ``policy``, see
    ``Graph.compare``. The report has ``.ok`` and ``.outputs``.
    """
    graph = artifact if isinstance(artifact, Graph) else load(artifact)
    return graph.compare(
        tolerance=tolerance,
        rtol=rtol,
        ulps=ulps,
        words=words,
        nan_payload=nan_payload,
        device=device,
        policy=policy,
        accuracy=accuracy,
    )


@dataclass(frozen=True)
class VerifyReport:
    """What ``verify`` found: ``checks`` in the order asked for, and the graph and comparison they were made on."""

    checks: tuple[Check, ...]
    graph: Graph
    comparison: CompareReport | None = None

    @property
    def ok(self) -> bool:
        """No check failed, and a comparison that was asked for was made."""
        made = all(check.status == "passed" for check in self.checks if check.name == "compare")
        return made and all(check.status != "failed" for check in self.checks)

    def to_json(self) -> dict[str, Any]:
        return {"ok": self.ok, "checks": [check.to_json() for check in self.checks]}

    def __str__(self) -> str:
        lines = [f"{check.name}: {check.status}: {check.covered}" for check in self.checks]
        for check in self.checks:
            lines += [f"  {found.message}" for found in check.findings if found.level == "error"]
        return "\n".join(lines)


def verify(
    function: Callable[..., Any],
    *args: Any,
    frontend: str = "jax",
    checks: Sequence[str] = ("structure", "types", "compare"),
    tolerance: Number | None = None,
    rtol: Number = 0,
    ulps: int | None = None,
    words: bool = False,
    device: str = "reference",
    **kwargs: Any,
) -> VerifyReport:
    """Capture ``function(*args, **kwargs)`` with its frontend and make the checks on the artifact, in one call.

    ``checks`` are some of ``CHECKS``; "compare" runs the graph and compares with the frontend's outputs, under
    ``tolerance``, ``rtol``, ``ulps`` and ``words``. A keyword argument of the function that has one of these names
    cannot be given; wrap the function.

    Raises UsageError TL0901 for an unknown frontend or check; UnsupportedError TL0803 where the frontend is not
    installed and TL0804 where the function cannot be expressed, with every primitive that cannot.
    """
    if frontend not in FRONTENDS:
        raise UsageError("TL0901", f"there is no frontend {frontend!r}", hint=f"one of {', '.join(FRONTENDS)}")
    names = (checks,) if isinstance(checks, str) else tuple(checks)
    for name in names:
        if name not in CHECKS:
            raise UsageError("TL0901", f"there is no check {name!r}", hint=f"the checks are {', '.join(CHECKS)}")
    if not names:
        raise UsageError("TL0901", "verify needs something to check", hint=f"the checks are {', '.join(CHECKS)}")
    for name in ("name", "trace", "compile"):
        if name in kwargs:  # an option of the capture script's export
            raise UsageError("TL0901", f"verify cannot pass on the keyword argument {name!r}", hint="wrap the function")
    graph = load(_capture(frontend, function, args, kwargs))
    made = {check.name: check for check in graph.check().checks}
    comparison: CompareReport | None = None
    if "compare" in names:
        from tlir.passes.check import Check

        if made["types"].status == "passed":
            comparison = graph.compare(tolerance=tolerance, rtol=rtol, ulps=ulps, words=words, device=device)
            made["compare"] = _comparison_check(graph, comparison)
        else:
            made["compare"] = Check("compare", "not applicable", "the declared types do not hold")
    return VerifyReport(tuple(made[name] for name in names), graph, comparison)


def counted(count: int, noun: str) -> str:
    """The number with its noun: "1 output", "2 outputs"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _comparison_check(graph: Graph, report: CompareReport) -> Check:
    from tlir.passes.check import Check, Finding

    covered = f"{counted(len(report.outputs), 'output')}, {counted(report.count, 'element')}: {report.rule}"
    findings = []
    for output in report.outputs:
        if not output.ok:
            node = graph.ir.nodes[graph.ir.body.outputs[output.position].node]
            worst = output.worst[0]
            place = f"{output.name}{list(worst.index) if worst.index else ''}"
            message = f"{output.failing} of {output.count} elements differ, the most {place}: recorded "
            message += f"{worst.expected}, got {worst.got}"
            pointer = f"/samples/{output.sample}/outputs/{output.position}"
            findings.append(Finding("error", "mismatch", message, str(node), node.id, node.source, pointer=pointer))
    return Check("compare", "passed" if report.ok else "failed", covered, tuple(findings))


def frontend_operations(frontend: str) -> dict[str, Any]:
    """What the frontend's capture script makes of every primitive or operator of the installed frontend.

    A document with ``frontend``, ``frontend_version`` and ``operations``, each a dict with ``name``, ``status`` and
    what belongs to that, as docs/json-output.md says. The script is run in a process of its own.

    Raises UsageError TL0901 for an unknown frontend, UnsupportedError TL0803 where it is not installed.
    """
    import json
    import subprocess

    _require_frontend(frontend)
    command = [sys.executable, str(_script_path(f"{frontend}_capture")), "--list-operations", "--json"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8")
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise UnsupportedError("TL0803", f"{frontend} is installed but cannot be used: {last}")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def _require_frontend(frontend: str) -> None:
    if frontend not in FRONTENDS:
        raise UsageError("TL0901", f"there is no frontend {frontend!r}", hint=f"one of {', '.join(FRONTENDS)}")
    if importlib.util.find_spec(frontend) is None:
        hint = f"install it: pip install 'tlir[{frontend}]'"
        raise UnsupportedError("TL0803", f"{frontend} is not installed", hint=hint)


def _capture(frontend: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The document that the frontend's capture script makes."""
    _require_frontend(frontend)
    script = _capture_script(f"{frontend}_capture")
    try:
        return script.export(function, *args, **kwargs)
    except script.CaptureError as error:
        raise UnsupportedError("TL0804", str(error)) from error


def _script_path(name: str) -> Path:
    """The file of a capture script: that of an installed tlir, or that of the source tree."""
    here = Path(__file__).resolve().parent
    for folder in (here / "capture", here.parent / "capture"):
        if (folder / f"{name}.py").exists():
            return folder / f"{name}.py"
    raise TlirError("TL9901", f"the capture script {name}.py is not part of this installation")


def _capture_script(name: str) -> ModuleType:
    """The capture script of an installed tlir, or that of the source tree."""
    try:
        return importlib.import_module(f"tlir.capture.{name}")
    except ModuleNotFoundError as error:
        if error.name not in ("tlir.capture", f"tlir.capture.{name}"):
            raise
    path = _script_path(name)
    module_name = f"tlir.capture.{name}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[module_name]
        raise
    return module
