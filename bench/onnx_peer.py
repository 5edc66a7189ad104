"""The workloads of graphs.py as ONNX models, and a call of ONNX Runtime for each.

``model(name, arguments)`` gives the model of a workload, written with the operators that an exporter would choose
(Gemm and MatMul, Softmax, LayerNormalization, Gelu with tanh, Conv, ReduceSum); ``caller`` a function without arguments
that runs it. Arguments above 4 MiB are handed over as OrtValues, which saves a copy, smaller ones as arrays, which
saves the 80 microseconds that an OrtValue costs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

OPSET = 20
LARGE = 4 << 20  # bytes


class Model:
    """Nodes and constants in the order in which they are written."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def __call__(self, operator: str, *inputs: Any, **attributes: Any) -> str:
        """One node of one result; inputs that are not names become constants."""
        names = [each if isinstance(each, str) else self.constant(each) for each in inputs]
        result = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, names, [result], **attributes))
        return result

    def constant(self, value: Any) -> str:
        array = np.asarray(value, np.float32 if isinstance(value, float) else None)
        self.constants.append(numpy_helper.from_array(array, f"c{len(self.constants)}"))
        return self.constants[-1].name

    def finished(self, arguments: list[Any], result: str) -> bytes:
        inputs = [
            helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for i, x in enumerate(arguments)
        ]
        kind = inputs[0].type.tensor_type.elem_type or TensorProto.FLOAT
        output = helper.make_tensor_value_info(result, kind, None)
        graph = helper.make_graph(self.nodes, "workload", inputs, [output], self.constants)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
        return made.SerializeToString()


def _chain(m: Model) -> str:
    quotient = m("Div", m("Sub", m("Mul", m("Add", m("Mul", "x0", 2.0), 1.0), "x0"), 3.0), 4.0)
    return m("Max", quotient, m("Neg", "x0"))


def _layer_norm(m: Model) -> str:
    return m("LayerNormalization", "x0", "x1", "x2", axis=-1, epsilon=1e-5)


def _perceptron(m: Model) -> str:
    hidden = m("Relu", m("MatMul", m("Relu", m("MatMul", "x0", "x1")), "x2"))
    return m("MatMul", hidden, "x3")


def _transformer(m: Model) -> str:
    ones, zeros = np.ones(512, np.float32), np.zeros(512, np.float32)

    def heads(x: str) -> str:
        return m("Transpose", m("Reshape", x, np.array([4, 128, 8, 64])), perm=[0, 2, 1, 3])

    h = m("LayerNormalization", "x0", ones, zeros, axis=-1, epsilon=1e-5)
    q, k, v = (heads(m("MatMul", h, name)) for name in ("x1", "x2", "x3"))
    scores = m("Div", m("MatMul", q, m("Transpose", k, perm=[0, 1, 3, 2])), 8.0)
    attention = m("MatMul", m("Softmax", scores, axis=-1), v)
    joined = m("Reshape", m("Transpose", attention, perm=[0, 2, 1, 3]), np.array([4, 128, 512]))
    x = m("Add", "x0", m("MatMul", joined, "x4"))
    h = m("LayerNormalization", x, ones, zeros, axis=-1, epsilon=1e-5)
    return m("Add", x, m("MatMul", m("Gelu", m("MatMul", h, "x5"), approximate="tanh"), "x6"))


GRAPHS: dict[str, Callable[[Model], str]] = {
    "chain": _chain,
    "gelu": lambda m: m("Gelu", "x0", approximate="tanh"),
    "softmax": lambda m: m("Softmax", "x0", axis=-1),
    "layernorm": _layer_norm,
    "product": lambda m: m("MatMul", "x0", "x1"),
    "perceptron": _perceptron,
    "transformer": _transformer,
    "convolution": lambda m: m("Conv", "x0", "x1", pads=[1, 1, 1, 1]),
    "sum": lambda m: m("ReduceSum", "x0", keepdims=0),
}


def caller(name: str, arguments: list[Any], threads: int) -> Callable[[], Any] | None:
    """A call of the workload with that name in `graphs.WORKLOADS`; None where it is not written in ONNX (loops)."""
    build = GRAPHS.get(name.split("-")[0])
    if build is None:
        return None
    model = Model()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(
        model.finished(arguments, build(model)), options, providers=["CPUExecutionProvider"]
    )
    feed = {f"x{i}": x for i, x in enumerate(arguments)}
    if max(x.nbytes for x in arguments) <= LARGE:
        return lambda: session.run(None, feed)
    values = {key: onnxruntime.OrtValue.ortvalue_from_numpy(x) for key, x in feed.items()}
    outputs = [each.name for each in session.get_outputs()]
    return lambda: session.run_with_ort_values(outputs, values)
