"""A PyTorch module from an ONNX graph: PyTorch's operators, called one after the other, as a peer to measure against.

What depends on shapes alone is computed once, on the host, when the module first runs: NumPy arrays stand for such
values, and those that meet a tensor of the device are uploaded then. Later runs queue only operators on the device, so
that the module can be captured in a CUDA graph. One module serves inputs of one set of shapes.
"""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUntypedBaseClass=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from onnx_rules import HOST_INPUTS, RULES, Node, Rule, Unsupported

Tensor = Any
Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Step:
    """An operator on the device; what is given is the name of a value, or what is known already."""

    rule: Rule
    node: Node
    given: tuple[Any, ...]


class OnnxModule(torch.nn.Module):
    """`module(*inputs)` gives the outputs in the graph's order."""

    def __init__(
        self, model: onnx.ModelProto, device: str = "cuda", dtype: Any = torch.float32, channels_last: bool = False
    ) -> None:
        super().__init__()
        graph = model.graph
        opset = next(one.version for one in model.opset_import if one.domain in ("", "ai.onnx"))
        self._device, self._dtype, self._channels_last = device, dtype, channels_last
        self._nodes = [Node.of(proto, opset, dtype) for proto in graph.node]
        unknown = sorted({node.kind for node in self._nodes} - set(RULES) - {"Constant"})
        if unknown:
            raise Unsupported(f"no rule for {', '.join(unknown)}")
        self._constants: dict[str, Array] = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
        for node in self._nodes:
            if node.kind == "Constant":
                self._constants[node.outputs[0]] = node.constant()
        self.inputs = [one.name for one in graph.input if one.name not in self._constants]
        self.outputs = [one.name for one in graph.output]
        self._steps: list[Step] | None = None
        self._known: dict[str, Tensor] = {}

    def forward(self, *inputs: Tensor) -> list[Tensor]:
        if self._steps is None:
            return self._first(inputs)
        values = {**self._known, **dict(zip(self.inputs, inputs, strict=True))}
        for step in self._steps:
            given = [values[one] if isinstance(one, str) else one for one in step.given]
            results = step.rule(step.node, given)
            values.update(zip(step.node.outputs, results if isinstance(results, list | tuple) else [results]))
        return [values[name] for name in self.outputs]

    def _first(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Run the graph, note the steps on the device, and keep what is known."""
        values: dict[str, Any] = {"": None, **self._constants, **dict(zip(self.inputs, inputs, strict=True))}
        uploads: dict[str, Tensor] = {}
        steps: list[Step] = []
        for node in self._nodes:
            if node.kind == "Constant":
                continue
            given = [values[name] for name in node.inputs]
            if node.kind == "Shape":
                values[node.outputs[0]] = node.shape_of(given[0])
                continue
            on_host = not any(isinstance(one, torch.Tensor) for one in given)
            arguments = [self._argument(node, place, value, on_host, uploads) for place, value in enumerate(given)]
            results = RULES[node.kind](node, arguments)
            results = results if isinstance(results, list | tuple) else [results]
            if on_host:
                results = [one.numpy() for one in results]
            else:
                pairs = zip(node.inputs, given, arguments, strict=True)
                known = (name if isinstance(value, torch.Tensor) else made for name, value, made in pairs)
                steps.append(Step(RULES[node.kind], node, tuple(known)))
            values.update(zip(node.outputs, results, strict=False))
        self._steps = steps
        self._known = {
            name: self._uploaded(name, values[name], uploads)
            for name in self.outputs
            if not isinstance(values[name], torch.Tensor)
        }
        return [self._known.get(name, values[name]) for name in self.outputs]

    def _argument(self, node: Node, place: int, value: Any, on_host: bool, uploads: dict[str, Tensor]) -> Any:
        """What the rule gets: host inputs as lists and numbers, the rest as tensors on one device."""
        if place in HOST_INPUTS.get(node.kind, ()):
            if isinstance(value, torch.Tensor) and node.kind not in ("Pow", "Clip"):
                raise Unsupported(f"{node.kind} {node.outputs[0]}: a size that depends on the data")
            return value.tolist() if isinstance(value, np.ndarray) else value
        if value is None or isinstance(value, torch.Tensor):
            return value
        return torch.from_numpy(np.array(value)) if on_host else self._uploaded(node.inputs[place], value, uploads)

    def _uploaded(self, name: str, value: Array, uploads: dict[str, Tensor]) -> Tensor:
        if name not in uploads:
            tensor = torch.from_numpy(np.array(value))
            if tensor.is_floating_point():
                tensor = tensor.to(self._dtype)
            if tensor.dim() == 4 and self._channels_last:
                tensor = tensor.contiguous(memory_format=torch.channels_last)
            uploads[name] = tensor.to(self._device)
        return uploads[name]
