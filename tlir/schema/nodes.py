"""Types, tensors, nodes and bodies from JSON.

One ``BodyReader`` reads one document. What repeats in a graph (dtypes, tensor types, references) is made once and
shared, so that a node costs a few microseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from tlir.errors import Source
from tlir.floatlib.format import Format
from tlir.ir.graph import Body, Node, Ref
from tlir.ir.ops import OPERATIONS, Accumulate, Operation
from tlir.ir.ops.attributes import Accumulation, TensorData
from tlir.ir.tensor import Tensor, words_shape
from tlir.ir.types import MAX_ELEMENTS, MAX_RANK, NAMED, DType, TensorType, complex_of, parse_dtype
from tlir.schema import fields
from tlir.schema.external import ExternalFile
from tlir.schema.fault import Fault, clip, missing_field, show, step, suggestion, unknown_field, wrong_type
from tlir.schema.words import from_base64, from_hex, held_words


class BodyReader:
    """Reads what nodes consist of, for one document of this version, with its formats and external files."""

    def __init__(self, version: int, formats: Mapping[str, Format], external: Mapping[str, ExternalFile]) -> None:
        self._version = version
        self._formats = formats
        self._external = external
        self._dtypes: dict[str, DType] = {}
        self._types: dict[tuple[Any, ...], TensorType] = {}
        self._refs: list[Ref] = []
        self._node_fields = fields.NODE_FIELDS | (fields.NODE_FIELDS_3 if version >= 3 else frozenset())

    # ---- types ------------------------------------------------------------------------------------------------------

    def dtype(self, name: Any, pointer: str) -> DType:
        """The dtype of this name. Fault TL0203, TL0206."""
        if type(name) is not str:
            raise wrong_type(name, "the name of a dtype (a string)", pointer)
        dtype = self._dtypes.get(name)
        if dtype is None:
            try:
                dtype = self._dtypes[name] = parse_dtype(name, self._formats)
            except KeyError:
                hint = suggestion(name, [*NAMED, *self._formats, *(complex_of(d).name for d in self._floats())])
                raise Fault("TL0206", f"there is no dtype {show(name)}", pointer, hint) from None
        return dtype

    def _floats(self) -> list[DType]:
        return [dtype for dtype in NAMED.values() if dtype.is_float]

    def tensor_type(self, shape: Any, dtype: Any) -> TensorType:
        """The type that JSON values say, found under ``/shape`` and ``/dtype``. Fault TL0203 to TL0206, TL0216."""
        if type(shape) is not list:
            raise wrong_type(shape, "an array of sizes (integers)", "/shape")
        if len(shape) > MAX_RANK:
            raise Fault("TL0216", f"{len(shape)} axes, where {MAX_RANK} are allowed", "/shape")
        for size in shape:
            if type(size) is not int:
                axis = next(k for k, other in enumerate(shape) if type(other) is not int)
                raise wrong_type(shape[axis], "a size (an integer)", f"/shape/{axis}")
        if type(dtype) is not str:
            raise wrong_type(dtype, "the name of a dtype (a string)", "/dtype")
        key = (dtype, *shape)
        found = self._types.get(key)
        if found is None:
            found = self._types[key] = self._new_type(shape, self.dtype(dtype, "/dtype"))
        return found

    def _new_type(self, shape: list[int], dtype: DType) -> TensorType:
        for axis, size in enumerate(shape):
            if size < 0:
                raise Fault("TL0204", f"the size {show(size)} is negative", f"/shape/{axis}")
        # Axes of size 0 do not count, so that no product of sizes overflows anywhere
        if max(shape, default=0) > MAX_ELEMENTS or prod(size for size in shape if size) > MAX_ELEMENTS:
            sizes = ", ".join(map(show, shape[:8])) + (", …" if len(shape) > 8 else "")
            raise Fault("TL0216", f"the shape [{sizes}] has more than 2^40 elements", "/shape")
        found = TensorType(tuple(shape), dtype)
        if len(words_shape(found)) > MAX_RANK:
            raise Fault("TL0216", f"{len(shape)} axes of {dtype.name} and its parts, {MAX_RANK} are allowed", "/shape")
        return found

    # ---- tensors ----------------------------------------------------------------------------------------------------

    def tensor(self, value: Any) -> Tensor:
        """A tensor with its words. Fault TL02xx, TL04xx, TL05xx."""
        members = fields.members(value, "a tensor", fields.TENSOR_FIELDS, fields.TENSOR_FIELDS_3, self._version)
        fields.required(members, fields.RESULT_FIELDS)
        declared = self.tensor_type(members["shape"], members["dtype"])
        forms = [key for key in ("words", "base64", "file") if key in members]
        if len(forms) != 1 or ("tensor" in members) != ("file" in members):
            code = "TL0403" if len(forms) > 1 else "TL0201"
            raise Fault(code, "a tensor has exactly one of words, base64, or file and tensor")
        form = forms[0]
        try:
            if form == "file":
                return self._external_tensor(members, declared)
            if form == "base64" and (held := held_words(members, declared)) is not None:
                return Tensor(declared, held)
            data = members[form]
            if type(data) is not str:
                raise wrong_type(data, "a string")
            return Tensor(declared, from_hex(data, declared) if form == "words" else from_base64(data, declared))
        except Fault as fault:
            raise fault.under(f"/{form}") from None

    def _external_tensor(self, members: dict[str, Any], declared: TensorType) -> Tensor:
        name, key = fields.text(members["file"], ""), fields.text(members["tensor"], "")
        file = self._external.get(name)
        if file is None:
            raise Fault("TL0501", f"the file {show(name)} is not listed in external", hint="list its size and SHA-256")
        return file.tensor(key, declared)

    # ---- values -----------------------------------------------------------------------------------------------------

    def ref(self, value: Any, pointer: str) -> Ref:
        """A value: an id, or in version 3 ``[id, k]``. Fault TL0203, TL0204, TL0212."""
        if type(value) is int:
            if 0 <= value < len(self._refs):
                return self._refs[value]
            return Ref(fields.integer(value, pointer, -fields.MAX_INTEGER))
        if type(value) is not list or len(value) != 2:
            expected = "an integer (the id of a node)" + (" or [id, result]" if self._version >= 3 else "")
            raise wrong_type(value, expected, pointer)
        if self._version < 3:
            raise fields.later_feature("a value [id, result]", self._version, pointer)
        low = -fields.MAX_INTEGER
        return Ref(fields.integer(value[0], f"{pointer}/0", low), fields.integer(value[1], f"{pointer}/1", low))

    def refs(self, value: Any, pointer: str) -> tuple[Ref, ...]:
        """A list of values."""
        items = fields.array(value, "values (ids of nodes)", pointer)
        known, count = self._refs, len(self._refs)
        return tuple(
            [
                known[item] if type(item) is int and 0 <= item < count else self.ref(item, f"{pointer}/{k}")
                for k, item in enumerate(items)
            ]
        )

    # ---- bodies and nodes -------------------------------------------------------------------------------------------

    def body(self, value: dict[str, Any]) -> Body:
        """The body in an object that has the fields ``BODY_FIELDS``. Fault TL02xx, TL04xx, TL05xx."""
        items = fields.array(value["nodes"], "nodes", "/nodes")
        self._refs += [Ref(k) for k in range(len(self._refs), len(items))]
        nodes = []
        for position, item in enumerate(items):
            try:
                nodes.append(self._node(item))
            except Fault as fault:
                raise _at_node(fault, item).under(f"/nodes/{position}") from None
        listed = fields.array(value["input_ids"], "ids of nodes", "/input_ids")
        ids = [fields.integer(item, f"/input_ids/{k}", -fields.MAX_INTEGER) for k, item in enumerate(listed)]
        return Body(tuple(nodes), tuple(ids), self.refs(value["output_ids"], "/output_ids"))

    def _node(self, value: Any) -> Node:
        if type(value) is not dict:
            raise wrong_type(value, "a node (an object)")
        if not value.keys() <= self._node_fields:
            fields.members(value, "a node", fields.NODE_FIELDS, fields.NODE_FIELDS_3, self._version)
        try:
            op, node_id, inputs = value["op"], value["id"], value["inputs"]
        except KeyError as error:
            raise missing_field(error.args[0]) from None
        operation = OPERATIONS.get(op) if type(op) is str else None
        if operation is None:
            raise _unknown_operation(op)
        if type(node_id) is not int or not 0 <= node_id <= fields.MAX_INTEGER:
            fields.integer(node_id, "/id")
        name = fields.label(value["name"], "/name") if "name" in value else None
        source = self._source(value["source"]) if "source" in value else None
        types = self._results(value)
        operands = self.refs(inputs, "/inputs")
        attrs = self._attributes(operation, value.get("attrs", {}))
        regions = self._regions(value["regions"]) if "regions" in value else ()
        return Node(node_id, operation.name, operands, attrs, types, name, source, regions)

    def _results(self, value: dict[str, Any]) -> tuple[TensorType, ...]:
        if "results" not in value:
            if "shape" not in value or "dtype" not in value:
                raise missing_field("shape" if "shape" not in value else "dtype")
            return (self.tensor_type(value["shape"], value["dtype"]),)
        if "shape" in value or "dtype" in value:
            raise Fault("TL0202", "a node with results has no shape and dtype of its own", "/results")
        types = []
        for k, item in enumerate(fields.array(value["results"], "types", "/results")):
            try:
                known = frozenset(fields.RESULT_FIELDS)
                fields.required(fields.members(item, "a type", known, frozenset(), self._version), fields.RESULT_FIELDS)
                types.append(self.tensor_type(item["shape"], item["dtype"]))
            except Fault as fault:
                raise fault.under(f"/results/{k}") from None
        return tuple(types)

    def _attributes(self, operation: Operation, value: Any) -> Mapping[str, Any]:
        declared = operation.attributes
        if type(value) is not dict:
            raise wrong_type(value, "an object of attributes", "/attrs")
        attrs: dict[str, Any] = {}
        for key, item in value.items():
            attribute = declared.get(key)
            if attribute is None:
                if not declared:
                    raise Fault("TL0202", f"{operation.name} has no attributes", "/attrs" + step(key))
                raise unknown_field(key, declared, "/attrs")
            try:
                attrs[key] = self._attribute(attribute.kind, item)
            except Fault as fault:
                raise fault.under(f"/attrs/{key}") from None
        for key, attribute in declared.items():
            if attribute.required and key not in attrs:
                raise missing_field(key, "/attrs")
        if attrs.get("accumulate") == Accumulate():
            del attrs["accumulate"]
        return attrs

    def _attribute(self, kind: Any, value: Any) -> Any:
        if isinstance(kind, TensorData):
            return self.tensor(value)
        if isinstance(kind, Accumulation) and self._version < 3:
            raise fields.later_feature("accumulate", self._version)
        try:
            return kind.decode(value, self._formats)
        except ValueError as error:
            # AttributeValueError, or Python's refusal to print an integer of thousands of digits in one
            shown = "" if type(value) in (dict, list) else f", not {show(value)}"
            message = str(error) + shown if str(error).startswith("expected") else str(error)
            raise Fault("TL0204", clip(message)) from None

    def _source(self, value: Any) -> Source:
        try:
            members = fields.members(value, "a source", fields.SOURCE_FIELDS, frozenset(), self._version)
            fields.required(members, ("file", "line"))
            file, line = fields.label(members["file"], "/file"), fields.integer(members["line"], "/line")
            return Source(file, line, fields.label(members.get("function", ""), "/function"))
        except Fault as fault:
            raise fault.under("/source") from None

    def _regions(self, value: Any) -> tuple[Body, ...]:
        regions = []
        for k, item in enumerate(fields.array(value, "regions", "/regions")):
            try:
                known = frozenset(fields.BODY_FIELDS)
                fields.required(fields.members(item, "a region", known, frozenset(), self._version), fields.BODY_FIELDS)
                regions.append(self.body(item))
            except Fault as fault:
                raise fault.under(f"/regions/{k}") from None
        return tuple(regions)


def _unknown_operation(op: Any) -> Fault:
    if type(op) is not str:
        return wrong_type(op, "the name of an operation (a string)", "/op")
    hint = suggestion(op, OPERATIONS) or "`tlir ops` lists the operations"
    return Fault("TL0205", f"there is no operation {show(op)}", "/op", hint)


def _at_node(fault: Fault, value: Any) -> Fault:
    """The fault with the text of its node and the user's source line, as far as these can be read."""
    if fault.node is None and type(value) is dict:
        node_id, op, name = value.get("id"), value.get("op"), value.get("name")
        parts = [show(node_id)] if type(node_id) is int else []
        parts += [op[:60]] if type(op) is str else []
        parts += [repr(name[:60])] if type(name) is str else []
        fault.node = " ".join(parts) or None
        source = value.get("source")
        if type(source) is dict and type(source.get("file")) is str and type(source.get("line")) is int:
            line = source["line"] if 0 <= source["line"] <= fields.MAX_INTEGER else 0
            function = source["function"] if type(source.get("function")) is str else ""
            fault.source = Source(clip(source["file"]), line, clip(function, 60))
    return fault
