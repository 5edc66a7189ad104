"""Graphs to artifacts: the lowest version that can express them, and one canonical text for one graph."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

from tlir.errors import ArtifactError, UsageError
from tlir.floatlib.format import Format
from tlir.ir import tree
from tlir.ir.graph import Body, Graph, Node, Producer, Ref, Sample
from tlir.ir.ops import OPERATIONS, Accumulate
from tlir.ir.ops.attributes import TensorData
from tlir.ir.tensor import Tensor
from tlir.ir.types import DType, TensorType, parse_dtype
from tlir.ir.verify import verify_structure
from tlir.schema import fields
from tlir.schema.external import write_safetensors
from tlir.schema.fault import clip
from tlir.schema.files import replacing
from tlir.schema.reader import from_json
from tlir.schema.words import to_base64, to_hex, word_count

MAX_HEX_WORDS = 32
"""Words of the largest tensor that is written as hexadecimal text."""

_LINES = ("nodes", "samples")


# ---- versions -------------------------------------------------------------------------------------------------------


def lowest_version(graph: Graph) -> int:
    """The lowest version of the format that can express the graph: 1, 2 or 3."""
    if next(_needs_3(graph), None) is not None:
        return 3
    return 1 if len(graph.body.input_ids) == len(graph.body.outputs) == 1 else 2


def _needs_3(graph: Graph) -> Iterator[str]:
    """What a graph has that only version 3 can say, in words."""
    if graph.input_tree is not None or graph.output_tree is not None:
        yield "trees"
    if graph.formats:
        yield "declared formats"
    if any(sample.trace is not None for sample in graph.samples):
        yield "traces"
    for node in graph.body.nodes:
        if node.regions:
            yield f"regions (node {node})"
        if len(node.types) != 1:
            yield f"several results (node {node})"
        if node.attrs.get("accumulate", Accumulate()) != Accumulate():
            yield f"accumulate (node {node})"


def _checked_version(graph: Graph, version: int | None) -> int:
    lowest = lowest_version(graph)
    if version is None:
        return lowest
    if version not in fields.VERSIONS:
        known = ", ".join(map(str, fields.VERSIONS))
        raise UsageError("TL0901", f"there is no version {version!r} of the format; there are {known}")
    if version < lowest:
        reason = next(_needs_3(graph), "another number of inputs or outputs than one")
        raise UsageError("TL1001", f"version {version} cannot express {clip(reason)}; version {lowest} can")
    return version


def upgrade(
    artifact: Graph | dict[str, Any], version: int = fields.VERSIONS[-1], folder: str | os.PathLike[str] | None = None
) -> dict[str, Any]:
    """The document of the same graph in another version, by default the newest.

    ``artifact`` is a graph or a document, whose external files lie in ``folder``. ArtifactError for a document that
    is not valid, UsageError TL1001 where the version cannot express the graph.
    """
    graph = artifact if isinstance(artifact, Graph) else from_json(artifact, folder)
    return to_json(graph, version)


# ---- documents ------------------------------------------------------------------------------------------------------

_Store = Callable[[str, Tensor], "dict[str, Any] | None"]
"""Takes a tensor and its key in an external file; gives its JSON where it is stored there, None where it is not."""


def to_json(graph: Graph, version: int | None = None) -> dict[str, Any]:
    """The document of a graph, all tensors within it, in the lowest version that can express it or in ``version``.

    ArtifactError for a graph whose structure does not hold; UsageError for a version that cannot express it.
    """
    return _document(graph, _checked_version(graph, version), lambda key, tensor: None)


def _document(graph: Graph, version: int, store: _Store) -> dict[str, Any]:
    verify_structure(graph)
    encoder = _Encoder(graph.formats, store)
    document: dict[str, Any] = {"format": fields.FORMAT, "version": version, "name": graph.name}
    document |= encoder.body(graph.body, "node")
    if graph.producer is not None:
        document["producer"] = _producer(graph.producer)
    if graph.samples:
        document["samples"] = [encoder.sample(sample, f"sample{k}") for k, sample in enumerate(graph.samples)]
    if graph.tolerance is not None:
        document["tolerance"] = graph.tolerance
    for key, value in (("input_tree", graph.input_tree), ("output_tree", graph.output_tree)):
        if value is not None:
            document[key] = tree.encode(value)
    if graph.formats:
        document["formats"] = {name: _descriptor(fmt) for name, fmt in graph.formats.items()}
    return document


def _producer(producer: Producer) -> dict[str, Any]:
    texts = {key: getattr(producer, key) for key in fields.PRODUCER_TEXTS if getattr(producer, key)}
    flags = {"flags": dict(producer.flags)} if producer.flags else {}
    return {"frontend": producer.frontend, **texts, "outputs": producer.outputs, **flags}


def _descriptor(fmt: Format) -> dict[str, Any]:
    """All fields of a format but the two that nearly every format has the same: a sign bit, and subnormals."""
    descriptor = fmt.to_descriptor()
    return {key: value for key, value in descriptor.items() if key not in ("signed", "subnormals") or not value}


def _value(ref: Ref) -> Any:
    return ref.node if ref.result == 0 else [ref.node, ref.result]


class _Encoder:
    def __init__(self, formats: Mapping[str, Format], store: _Store) -> None:
        self._formats = formats
        self._store = store
        self._names: dict[DType, str] = {}

    def _dtype(self, dtype: DType) -> str:
        name = self._names.get(dtype)
        if name is None:
            try:
                declared = parse_dtype(dtype.name, self._formats) == dtype
            except KeyError:
                declared = False
            if not declared:
                raise ArtifactError(
                    "TL0206",
                    f"the graph does not declare the dtype {dtype.name}",
                    hint="add its format to the graph's formats",
                )
            name = self._names[dtype] = dtype.name
        return name

    def _type(self, type: TensorType) -> dict[str, Any]:
        return {"shape": list(type.shape), "dtype": self._dtype(type.dtype)}

    def tensor(self, tensor: Tensor, key: str) -> dict[str, Any]:
        described = self._type(tensor.type)
        stored = self._store(key, tensor)
        if stored is not None:
            return described | stored
        if word_count(tensor.type) <= MAX_HEX_WORDS:
            return described | {"words": to_hex(tensor.words, tensor.type)}
        return described | {"base64": to_base64(tensor.words, tensor.type)}

    def body(self, body: Body, key: str) -> dict[str, Any]:
        return {
            "input_ids": list(body.input_ids),
            "output_ids": [_value(ref) for ref in body.outputs],
            "nodes": [self._node(node, f"{key}{node.id}") for node in body.nodes],
        }

    def _node(self, node: Node, key: str) -> dict[str, Any]:
        document: dict[str, Any] = {"id": node.id, "op": node.op, "inputs": [_value(ref) for ref in node.inputs]}
        attrs = self._attributes(node, key)
        if attrs:
            document["attrs"] = attrs
        if len(node.types) == 1:
            document |= self._type(node.types[0])
        else:
            document["results"] = [self._type(type) for type in node.types]
        if node.name is not None:
            document["name"] = node.name
        if node.source is not None:
            source = node.source
            document["source"] = {"file": source.file, "line": source.line, "function": source.function}
        if node.regions:
            document["regions"] = [self.body(region, f"{key}.{k}.") for k, region in enumerate(node.regions)]
        return document

    def _attributes(self, node: Node, key: str) -> dict[str, Any]:
        attributes = OPERATIONS[node.op].attributes
        attrs = {}
        for name, value in node.attrs.items():
            if isinstance(attributes[name].kind, TensorData):
                attrs[name] = self.tensor(value, key)
            elif value != Accumulate():
                attrs[name] = attributes[name].kind.encode(value)
        return attrs

    def sample(self, sample: Sample, key: str) -> dict[str, Any]:
        document: dict[str, Any] = {}
        for what, tensors in (("input", sample.inputs), ("output", sample.outputs)):
            document[f"{what}s"] = [self.tensor(tensor, f"{key}.{what}{k}") for k, tensor in enumerate(tensors)]
        if sample.trace is not None:
            document["trace"] = [
                {"value": _value(ref), "tensor": self.tensor(tensor, f"{key}.value{ref.node}.{ref.result}")}
                for ref, tensor in sorted(sample.trace.items(), key=lambda item: item[0])
            ]
        return document


# ---- text and files -------------------------------------------------------------------------------------------------


def dumps(graph: Graph, version: int | None = None) -> str:
    """The canonical text of a graph (docs/artifact.md), all tensors within it. Errors as ``to_json``."""
    return "".join(_text(to_json(graph, version)))


_compact = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def _text(document: Mapping[str, Any]) -> Iterator[str]:
    yield "{\n"
    for position, key in enumerate(sorted(document)):
        value = document[key]
        yield (",\n" if position else "") + f"{_compact(key)}:"
        if key in _LINES and value:
            for k, item in enumerate(value):
                yield (",\n" if k else "[\n") + _compact(item)
            yield "\n]"
        else:
            yield _compact(value)
    yield "\n}\n"


def write(graph: Graph, path: str | os.PathLike[str], version: int | None = None, external: int | None = None) -> None:
    """Write a graph to a file, as a whole or not at all.

    With ``external``, tensors of more than so many bytes go to ``<stem>.safetensors`` in the same folder, which needs
    version 3. UsageError TL0109 where the file cannot be written; other errors as ``to_json``.
    """
    path = Path(path)
    tensors: dict[str, Tensor] = {}
    file = f"{path.stem}.safetensors"

    def store(key: str, tensor: Tensor) -> dict[str, Any] | None:
        if external is None or tensor.type.nbytes <= external:
            return None
        tensors[key] = tensor
        return {"file": file, "tensor": key}

    checked = _checked_version(graph, version)
    document = _document(graph, checked, store)
    if tensors and version is not None and version < 3:
        raise UsageError("TL1001", f"version {version} has no external files; version 3 has")
    # Both files are complete before the first of them takes its name
    with ExitStack() as stack:
        stream = stack.enter_context(replacing(path))
        if tensors:
            data = stack.enter_context(replacing(path.with_name(file)))
            size, sha256 = write_safetensors(data, tensors.items())
            document |= {"version": 3, "external": {file: {"sha256": sha256, "size": size}}}
        _write_text(stream, _text(document))


def _write_text(stream: BinaryIO, parts: Iterable[str]) -> None:
    for part in parts:
        stream.write(part.encode("utf-8"))
