"""Changing how reductions and contractions accumulate: order, accumulator's dtype, and fused products.

The words of the result may change, which is why nothing else ever changes them: this rewrite is asked for, and says for
every node what was there before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tlir.errors import ArtifactError, UsageError
from tlir.ir.graph import Body, Graph, Node
from tlir.ir.ops import OPERATIONS, Accumulate
from tlir.ir.ops.attributes import Accumulation, AttributeValueError
from tlir.ir.types import DType, parse_dtype
from tlir.ir.verify import node_type_error
from tlir.passes.render.escape import printable
from tlir.passes.render.values import accumulate_text

RESULT = "result"
"""The name that stands for the accumulator's default dtype, that of the result."""


@dataclass(frozen=True)
class Request:
    """What is to change; None is kept. ``order`` is (order, block length), ``dtype`` ``RESULT`` or a dtype's name."""

    order: tuple[str, int] | None = None
    fma: bool | None = None
    dtype: str | None = None

    def parts(self) -> list[Request]:
        """One request per setting."""
        parts = [Request(order=self.order)] if self.order is not None else []
        parts += [Request(fma=self.fma)] if self.fma is not None else []
        return parts + ([Request(dtype=self.dtype)] if self.dtype is not None else [])

    def without(self, other: Request) -> Request:
        """This request without the settings that ``other`` makes."""
        return Request(
            self.order if other.order is None else None,
            self.fma if other.fma is None else None,
            self.dtype if other.dtype is None else None,
        )

    def __str__(self) -> str:
        parts = []
        if self.order is not None:
            parts.append("order " + Accumulate(order=self.order[0], block=self.order[1]).order_text)
        if self.fma is not None:
            parts.append("fma" if self.fma else "no fma")
        if self.dtype is not None:
            parts.append(f"dtype {printable(self.dtype)}")
        return ", ".join(parts)


@dataclass(frozen=True)
class Reordering:
    """One node that was looked at: how it accumulated, how it does now, and the settings that do not apply to it with
    the reason. ``place`` is its id, for a node of a region ``12.0.3``: node 3 of region 0 of node 12."""

    place: str
    node: Node
    before: Accumulate
    after: Accumulate
    kept: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        return self.before != self.after

    def to_json(self) -> dict[str, Any]:
        parts: dict[str, Any] = {"id": self.place, "op": self.node.op, "changed": self.changed}
        parts |= {"before": accumulate_text(self.before), "after": accumulate_text(self.after)}
        parts |= {"name": self.node.name} if self.node.name is not None else {}
        return parts | ({"not_applicable": list(self.kept)} if self.kept else {})


def parse_order(text: str) -> tuple[str, int]:
    """(order, block length) of ``sequential``, ``pairwise`` or ``blocked(n)``. UsageError TL0901 otherwise."""
    try:
        value = Accumulation().decode({"order": text}, {})
    except AttributeValueError as error:
        raise UsageError("TL0901", str(error), hint="write for example --order 'blocked(32)'") from None
    return value.order, value.block


def reorder(
    graph: Graph,
    order: str | None = None,
    fma: bool | None = None,
    dtype: str | None = None,
    nodes: Sequence[str] = (),
) -> tuple[Graph, list[Reordering]]:
    """The graph with other settings of ``accumulate``, and a report of every node that was asked for.

    ``order`` is "sequential", "pairwise" or "blocked(n)"; ``dtype`` the accumulator's, "result" for that of the result;
    None keeps what is there. ``nodes`` are ids or names; without them every node that accumulates is meant, and a
    setting that does not apply to one of them (a fused product to a plain sum, a float accumulator to integers) is
    reported and left out there.

    UsageError TL0901 for a request that says nothing or names no node; TL1001 where a type rule forbids the
    combination, or nothing that was asked for applies.
    """
    request = Request(None if order is None else parse_order(order), fma, dtype)
    if not request.parts():
        raise UsageError("TL0901", "nothing to change", hint="give --order, --fma, --no-fma or --dtype")
    if dtype not in (None, RESULT):
        _dtype(graph, dtype)
    rewriter = _Rewriter(graph, request, _selected(graph.body, nodes))
    body = rewriter.body(graph.body, "")
    if not nodes:
        for part in request.parts():
            if str(part) in rewriter.nowhere:
                reason = rewriter.nowhere[str(part)] or "there is no reduction or contraction"
                raise UsageError("TL1001", f"{part} applies to no node of this graph: {reason}")
    return replace(graph, body=body), rewriter.report


def _dtype(graph: Graph, name: str | None) -> DType | None:
    if name is None or name == RESULT:
        return None
    try:
        return parse_dtype(name, graph.formats)
    except KeyError:
        hint = "`tlir info` lists the dtypes; `result` is that of the result"
        raise UsageError("TL0901", f"there is no dtype {printable(name)!r}", hint=hint) from None


def accumulates(node: Node) -> bool:
    """Whether the node's operation says how it accumulates."""
    operation = OPERATIONS.get(node.op)
    return operation is not None and "accumulate" in operation.attributes


def _selected(body: Body, names: Sequence[str]) -> Collection[int] | None:
    """Ids of the nodes that are named; None without names."""
    if not names:
        return None
    found: set[int] = set()
    for name in names:
        ids = [node.id for node in body.nodes if node.name == name]
        number = name.removeprefix("%")
        if not ids and number.isascii() and number.isdigit() and int(number) < len(body.nodes):
            ids = [int(number)]
        if not ids:
            raise UsageError("TL0901", f"there is no node {printable(name)!r}", hint="`tlir show` lists the nodes")
        for node_id in ids:
            if not accumulates(body.nodes[node_id]):
                message = "this operation accumulates nothing"
                raise UsageError("TL1001", message, node=printable(str(body.nodes[node_id])))
        found.update(ids)
    return found


class _Rewriter:
    """Rewrites bodies and keeps the report. ``nowhere`` holds the settings that have applied to no node so far, each
    with the last reason."""

    def __init__(self, graph: Graph, request: Request, selected: Collection[int] | None) -> None:
        self.graph, self.request, self.selected = graph, request, selected
        self.report: list[Reordering] = []
        self.nowhere: dict[str, str] = {str(part): "" for part in request.parts()}

    def body(self, body: Body, prefix: str) -> Body:
        return replace(body, nodes=tuple(self._node(body, node, prefix) for node in body.nodes))

    def _node(self, body: Body, node: Node, prefix: str) -> Node:
        place = f"{prefix}{node.id}"
        if self.selected is None and node.regions:
            regions = tuple(self.body(region, f"{place}.{k}.") for k, region in enumerate(node.regions))
            return replace(node, regions=regions)
        if not accumulates(node) or (self.selected is not None and node.id not in self.selected):
            return node
        before = node.attrs.get("accumulate") or Accumulate()
        request, kept = self.request, []
        if self.selected is None:
            for part in self.request.parts():
                error = self._error(body, node, self._applied(part, Accumulate()))
                if error is not None:
                    request = request.without(part)
                    kept.append(f"{part}: {error.message}")
                    if str(part) in self.nowhere:
                        self.nowhere[str(part)] = error.message
                else:
                    self.nowhere.pop(str(part), None)
        after = self._applied(request, before)
        error = self._error(body, node, after)
        if error is not None:
            hint = "--no-fma gives up the fused products" if after.fma and self.request.fma is None else None
            raise UsageError("TL1001", error.message, node=printable(str(node)), source=node.source, hint=hint)
        self.report.append(Reordering(place, node, before, after, tuple(kept)))
        return _with(node, after)

    def _applied(self, request: Request, before: Accumulate) -> Accumulate:
        after = before
        if request.order is not None:
            after = replace(after, order=request.order[0], block=request.order[1])
        if request.fma is not None:
            after = replace(after, fma=request.fma)
        if request.dtype is not None:
            after = replace(after, dtype=_dtype(self.graph, request.dtype))
        return after

    def _error(self, body: Body, node: Node, accumulate: Accumulate) -> ArtifactError | None:
        """Why the type rule forbids it; None where it holds, or where it does not hold before either."""
        error = node_type_error(body, _with(node, accumulate), "")
        if error is not None and node_type_error(body, _with(node, Accumulate()), "") is not None:
            raise ArtifactError(error.code, error.message, node=printable(str(node)), source=node.source)
        return error


def _with(node: Node, accumulate: Accumulate) -> Node:
    attrs: Mapping[str, Any] = {name: value for name, value in node.attrs.items() if name != "accumulate"}
    if accumulate != Accumulate():
        attrs = {**attrs, "accumulate": accumulate}
    return replace(node, attrs=attrs)
