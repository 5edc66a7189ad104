"""Comparing what a graph computes with what the frontend recorded: words first, then distances and tolerances."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from tlir.compare.factorizations import aligned, aligned_results, with_factors
from tlir.compare.measure import compare_tensors, output_names
from tlir.compare.report import CompareReport, Element, OutputComparison
from tlir.compare.rule import DEFAULT_TOLERANCE, Number, Rule, make_rule
from tlir.errors import ArtifactError, UsageError
from tlir.ir.graph import Graph, Node
from tlir.ir.tensor import Tensor

__all__ = [
    "DEFAULT_TOLERANCE",
    "CompareReport",
    "Element",
    "OutputComparison",
    "Rule",
    "aligned_results",
    "check_options",
    "compare",
    "compare_tensors",
    "output_names",
]


def check_options(
    tolerance: Number | None,
    rtol: Number,
    ulps: int | None,
    words: bool,
    nan_payload: bool,
    policy: str | None = None,
    table: Path | None = None,
    artifact_tolerance: str | None = None,
) -> Rule:
    """The rule that the options state; that of an automatic tolerance is for what bounds leave undecided. UsageError
    TL0901 for options that do not fit together."""
    if tolerance != "auto":
        for name, given in (("a policy", policy), ("an accuracy table", table)):
            if given is not None:
                raise UsageError("TL0901", f"{name} needs the tolerance auto", hint="give the tolerance auto too")
        return make_rule(tolerance, rtol, ulps, words, nan_payload, artifact_tolerance)
    from tlir.compare.bounds import resolve

    make_rule("0" if words else None, rtol, ulps, words, nan_payload)
    resolve(policy or "frontend", None, table)
    return make_rule(0, rtol, ulps, False, False)


Evaluate = Callable[[Graph, Sequence[Tensor]], Sequence[Tensor]]


def compare(
    graph: Graph,
    *,
    tolerance: Number | None = None,
    rtol: Number = 0,
    ulps: int | None = None,
    words: bool = False,
    nan_payload: bool = False,
    device: str = "reference",
    evaluate: Evaluate | None = None,
    policy: str | None = None,
    table: Path | None = None,
    observe: Callable[[Node], None] | None = None,
) -> CompareReport:
    """Run the graph on the inputs of every sample and compare each output, element by element, with the recorded one.

    An element passes if ``|got - recorded| <= tolerance + rtol * |recorded|``, decided exactly (a complex number by its
    modulus). ``tolerance`` is by default the artifact's own, or 2e-5; text and floats are taken as the decimals they
    show. With ``ulps``, it passes if at most so many steps from number to number of the output's format lie between
    the two (for a complex number, in each part); with ``ulps`` and a ``tolerance`` or ``rtol``, if either holds. With
    ``words``, if the bits are the same, or both are NaN unless ``nan_payload``.

    Except under ``words``, eigenvectors and singular vectors are compared up to what their definition leaves free
    (``tlir.compare.factorizations``), and -0 equals 0. NaN equals NaN, an infinity only itself. Integers must be equal
    unless ``ulps`` allows a distance, Booleans always. An output without elements passes, and says that none were
    compared.

    With ``tolerance="auto"`` an element passes if rigorous bounds explain it: the report is an ``AutoReport``, see
    ``tlir.compare.auto``. ``policy`` names what executions are permitted ("frontend" unless given) and ``table``
    replaces the table of the accuracy of elementary functions; ``rtol`` and ``ulps`` then say what elements have to
    satisfy that the bounds leave undecided. Samples with a trace are also compared node by node (``locate``): a node
    that is none of what its recorded operands permit is a bug, and where it is stands in the report's ``locations``.

    ``evaluate`` replaces the run on ``device``; ``observe`` is called after each node that bounds have passed.

    Raises UsageError TL0901 for options that do not fit together; ArtifactError TL0701 where there is no sample or no
    output, so that nothing passes because nothing was compared; and what ``tlir.backends.run`` raises.
    """
    auto = tolerance == "auto"
    rule = check_options(tolerance, rtol, ulps, words, nan_payload, policy, table, graph.tolerance)
    if not graph.samples:
        raise ArtifactError(
            "TL0701",
            "no sample is recorded, so there is nothing to compare with",
            pointer="/samples",
            hint="capture the function again with example arguments",
        )
    if not graph.body.outputs:
        raise ArtifactError(
            "TL0701", "the graph returns nothing, so there is nothing to compare", pointer="/output_ids"
        )
    given = evaluate is not None
    if evaluate is None:
        from tlir.backends import run

        def evaluate(graph: Graph, inputs: Sequence[Tensor]) -> Sequence[Tensor]:
            return run(graph, inputs, device=device)

    if auto:
        from tlir.compare.auto import compare_auto
        from tlir.compare.fit import reproduced

        chosen = policy or "frontend"
        run_there = None if device == "reference" and not given else evaluate
        report = compare_auto(
            graph,
            policy=chosen,
            table=table,
            rtol=rtol,
            ulps=ulps,
            device=device,
            run=run_there,
            reproduce=reproduced,
            progress=observe,
        )
        if not any(sample.trace for sample in graph.samples):
            return report
        from tlir.compare.locate import located

        return replace(report, locations=located(graph, chosen, table))
    names = output_names(graph)
    outputs: list[OutputComparison] = []
    evaluated, factors = (graph, []) if rule.words else with_factors(graph)
    freedom = {place: each.freedom for each in factors for place in each.positions}
    for k, sample in enumerate(graph.samples):
        got = aligned(factors, sample.outputs, evaluate(evaluated, sample.inputs))
        for position, (expected, result) in enumerate(zip(sample.outputs, got, strict=True)):
            node = graph.nodes[graph.body.outputs[position].node]
            measured = compare_tensors(
                expected, result, rule, sample=k, position=position, name=names[position], node=node
            )
            outputs.append(replace(measured, freedom=freedom.get(position)))
    return CompareReport(tuple(outputs), rule, device, len(graph.samples), graph.producer)
