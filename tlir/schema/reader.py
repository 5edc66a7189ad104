"""Artifacts from files and from Python objects: a whole graph, or one error with its place.

The steps: the text becomes a document (``tlir.schema.text``), the document's fields are read here, its nodes and
tensors in ``tlir.schema.nodes``, and the structure of the graph is verified in ``tlir.ir.verify``. Reading trusts
nothing: it allocates no more than what the file itself holds, recurses no deeper than a bound, and gives for every
fault an ``ArtifactError`` with a stable code, the file, a JSON pointer, and the node and source line where there are.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tlir.errors import ArtifactError
from tlir.floatlib.format import Format
from tlir.ir import tree
from tlir.ir.graph import Graph, Producer, Ref, Sample
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED
from tlir.ir.verify import verify_structure
from tlir.schema import fields
from tlir.schema.external import ExternalFile
from tlir.schema.fault import MAX_SHOWN, Fault, clip, show, step, wrong_type
from tlir.schema.nodes import BodyReader
from tlir.schema.text import check_nesting, parse


def read(path: str | os.PathLike[str]) -> Graph:
    """The graph in an artifact's file, its structure verified. External tensors are views of mapped files.

    ArtifactError, codes TL01xx to TL05xx, for a file that is not a valid artifact.
    """
    file = os.fspath(path)
    try:
        document = parse(_bytes(file))
    except Fault as fault:
        raise fault.error(clip(file, 4096)) from None
    return _graph(document, Path(file).parent, file)


def from_json(
    document: Any, folder: str | os.PathLike[str] | None = None, file: str | os.PathLike[str] | None = None
) -> Graph:
    """The graph of an artifact given as Python objects: dict, list, str, int, bool and None, of these very types.

    ``folder`` is where external files lie, ``file`` a name for messages. ArtifactError as ``read``.
    """
    name = None if file is None else os.fspath(file)
    try:
        check_nesting(document, shared=True)
    except Fault as fault:
        raise fault.error(name) from None
    return _graph(document, None if folder is None else Path(folder), name)


def _bytes(file: str) -> bytes:
    try:
        with open(file, "rb") as stream:
            mode = os.fstat(stream.fileno()).st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
                raise Fault("TL0101", "this is a device, not a file")
            return stream.read()
    except IsADirectoryError:
        raise Fault("TL0101", "this is a folder, not a file") from None
    except OSError as error:
        raise Fault("TL0101", f"the file cannot be read: {error.strerror}") from None
    except ValueError:
        raise Fault("TL0101", "there is no file of this name") from None


def _graph(document: Any, folder: Path | None, file: str | None) -> Graph:
    try:
        graph = _Document(document, folder).graph()
        verify_structure(graph)
    except Fault as fault:
        raise fault.error(file) from None
    except ArtifactError as error:
        error.file = file
        error.message = clip(error.message)
        error.pointer, error.node = error.pointer and clip(error.pointer), error.node and clip(error.node)
        raise
    except RecursionError:
        raise Fault("TL0106", "lists and objects are nested too deeply").error(file) from None
    return graph


class _Document:
    """The top level of a document: version, formats, external files, nodes, trees, samples."""

    def __init__(self, document: Any, folder: Path | None) -> None:
        self._version = _version(document)
        later = fields.DOCUMENT_FIELDS_3
        self._members = fields.members(document, "an artifact", fields.DOCUMENT_FIELDS, later, self._version)
        fields.required(self._members, fields.DOCUMENT_REQUIRED)
        self._formats = _formats(self._members.get("formats", {}))
        external = _external(self._members.get("external", {}), folder)
        self._reader = BodyReader(self._version, self._formats, external)

    def graph(self) -> Graph:
        members = self._members
        body = self._reader.body(members)
        if self._version == 1:
            for key, count in (("input_ids", len(body.input_ids)), ("output_ids", len(body.outputs))):
                if count != 1:
                    message = f"version 1 has exactly one of {key}, not {count}"
                    raise Fault("TL0212", message, f"/{key}", "change the version to 2")
        tolerance = members.get("tolerance")
        if "tolerance" in members:
            what = 'a decimal number as text, such as "1e-3"'
            tolerance = fields.matching(tolerance, fields.TOLERANCE_PATTERN, what, "/tolerance")
        return Graph(
            body,
            fields.label(members["name"], "/name"),
            self._tree("input_tree", len(body.input_ids)),
            self._tree("output_tree", len(body.outputs)),
            self._formats,
            _producer(members["producer"]) if "producer" in members else None,
            self._samples(members.get("samples", [])),
            tolerance,
        )

    def _tree(self, key: str, leaves: int) -> tree.Tree | None:
        if key not in self._members:
            return None
        try:
            decoded = tree.decode(self._members[key], leaves)
        except tree.TreeError as error:
            raise Fault("TL0215", str(error), f"/{key}{error.pointer}") from None
        except ValueError:
            raise Fault("TL0215", "an integer has thousands of digits", f"/{key}") from None
        if (key == "input_tree") != (isinstance(decoded, tree.Container) and decoded.kind == "call"):
            expected = "the arguments of a call, args and kwargs" if key == "input_tree" else "a result, not a call"
            raise Fault("TL0215", f"must be {expected}", f"/{key}")
        _check_tree_texts(decoded, f"/{key}")
        return decoded

    def _samples(self, value: Any) -> tuple[Sample, ...]:
        samples = []
        for k, item in enumerate(fields.array(value, "samples", "/samples")):
            try:
                samples.append(self._sample(item))
            except Fault as fault:
                raise fault.under(f"/samples/{k}") from None
        return tuple(samples)

    def _sample(self, value: Any) -> Sample:
        known, later = fields.SAMPLE_FIELDS, fields.SAMPLE_FIELDS_3
        members = fields.members(value, "a sample", known, later, self._version)
        fields.required(members, ("inputs", "outputs"))
        inputs, outputs = self._tensors(members, "inputs"), self._tensors(members, "outputs")
        return Sample(inputs, outputs, self._trace(members["trace"]) if "trace" in members else None)

    def _tensors(self, members: Mapping[str, Any], key: str) -> tuple[Tensor, ...]:
        tensors = []
        for k, item in enumerate(fields.array(members[key], "tensors", f"/{key}")):
            try:
                tensors.append(self._reader.tensor(item))
            except Fault as fault:
                raise fault.under(f"/{key}/{k}") from None
        return tuple(tensors)

    def _trace(self, value: Any) -> dict[Ref, Tensor]:
        trace: dict[Ref, Tensor] = {}
        for k, item in enumerate(fields.array(value, "values with their tensors", "/trace")):
            try:
                known = frozenset(fields.TRACE_FIELDS)
                members = fields.members(item, "a value and its tensor", known, frozenset(), self._version)
                fields.required(members, fields.TRACE_FIELDS)
                ref = self._reader.ref(members["value"], "/value")
                if ref in trace:
                    raise Fault("TL0214", f"the value {ref} is there twice", "/value")
                try:
                    trace[ref] = self._reader.tensor(members["tensor"])
                except Fault as fault:
                    raise fault.under("/tensor") from None
            except Fault as fault:
                raise fault.under(f"/trace/{k}") from None
        return trace


def _version(document: Any) -> int:
    if type(document) is not dict:
        raise Fault("TL0108", f"an artifact is an object, not {show(document)}")
    if type(document.get("format")) is not str or document["format"] != fields.FORMAT:
        found = f"is {show(document['format'])}" if "format" in document else "is missing"
        raise Fault("TL0108", f'this is not a tlir artifact: the field format must be "tlir" and {found}', "/format")
    fields.required(document, ("version",))
    version = document["version"]
    if type(version) is not int:
        raise wrong_type(version, "an integer", "/version")
    if version not in fields.VERSIONS:
        newest = fields.VERSIONS[-1]
        hint = f"this release reads versions {fields.VERSIONS[0]} to {newest}"
        if version > newest:
            hint = f"it was written by a later release of tlir; {hint}; install a later one"
        raise Fault("TL0107", f"version {show(version)} is not known", "/version", hint)
    return version


def _formats(value: Any) -> dict[str, Format]:
    if type(value) is not dict:
        raise wrong_type(value, "an object of name and descriptor", "/formats")
    formats: dict[str, Format] = {}
    for name, descriptor in value.items():
        at = "/formats" + step(name)
        fields.matching(name, fields.IDENTIFIER_PATTERN, "a name of letters, digits and _", at, "TL0213")
        if name in NAMED:
            raise Fault("TL0213", f"{name} is a dtype of every artifact and cannot be declared", at)
        if type(descriptor) is not dict:
            raise wrong_type(descriptor, "a descriptor (an object)", at)
        if descriptor.get("bias", 0) is None:
            raise Fault("TL0213", "bias is null; it must be an integer, or left out for that of IEEE", f"{at}/bias")
        try:
            formats[name] = Format.from_descriptor(descriptor)
        except (ValueError, TypeError) as error:
            raise Fault("TL0213", clip(str(error), MAX_SHOWN), at) from None
    return formats


def _external(value: Any, folder: Path | None) -> dict[str, ExternalFile]:
    if type(value) is not dict:
        raise wrong_type(value, "an object of file name and its size and SHA-256", "/external")
    files: dict[str, ExternalFile] = {}
    for name, item in value.items():
        at = "/external" + step(name)
        try:
            fields.text(name, "")
            members = fields.members(item, "a description", frozenset(fields.EXTERNAL_FIELDS), frozenset(), 3)
            fields.required(members, fields.EXTERNAL_FIELDS)
            sha256 = fields.matching(members["sha256"], fields.SHA256_PATTERN, "64 lower-case hex digits", "/sha256")
            size = fields.integer(members["size"], "/size")
            if folder is None:
                raise Fault("TL0501", "there is no folder to look for external files in", hint="give the folder")
            files[name] = ExternalFile(folder, name, size, sha256)
        except Fault as fault:
            raise fault.under(at) from None
    return files


def _producer(value: Any) -> Producer:
    try:
        members = fields.members(value, "a producer", fields.PRODUCER_FIELDS, frozenset(), 3)
        fields.required(members, ("frontend",))
        texts = {key: fields.label(members[key], f"/{key}") for key in fields.PRODUCER_TEXTS if key in members}
        outputs = fields.choice(members.get("outputs", "op-by-op"), fields.PRODUCER_OUTPUTS, "/outputs")
        flags = members.get("flags", {})
        if type(flags) is not dict:
            raise wrong_type(flags, "an object", "/flags")
        for key, item in flags.items():
            fields.label(key, "/flags")
            fields.flag(item, "/flags" + step(key))
        return Producer(outputs=outputs, flags=dict(flags), **texts)
    except Fault as fault:
        raise fault.under("/producer") from None


def _check_tree_texts(value: tree.Tree, at: str) -> None:
    """Names and keys that UTF-8 can write; fields of named tuples and names of arguments are labels."""
    if isinstance(value, tree.Container):
        for key in value.keys:
            if type(key) is int:
                fields.integer(key, at, -fields.MAX_INTEGER - 1)
            elif value.kind == "dict":
                fields.text(key, at)
            else:
                fields.label(key, at)
        fields.text(value.name, at)
        for child in value.children:
            _check_tree_texts(child, at)
