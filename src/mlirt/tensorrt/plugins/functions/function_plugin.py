"""A plugin whose kernel is a function, and its creator, which plans and networks find by the op's name."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mlirt.errors import InvalidInputError, PluginError
from mlirt.tensorrt.data_types import DataType
from mlirt.tensorrt.plugins.fields import PluginField, PluginFieldCollection, PluginFieldType
from mlirt.tensorrt.plugins.functions.function_op import FunctionOp, from_json, to_json
from mlirt.tensorrt.plugins.functions.tensors import Tensor, TensorDesc
from mlirt.tensorrt.plugins.plugin import IPluginV2DynamicExt
from mlirt.tensorrt.plugins.registry import IPluginCreator, get_plugin_registry
from mlirt.tensorrt.plugins.shape_expressions import DimsExprs, IDimensionExpr, IExprBuilder
from mlirt.tensorrt.plugins.tensor_descriptions import PluginTensorDesc
from mlirt.tensorrt.run_enums import TensorFormat


class FunctionPlugin(IPluginV2DynamicExt):
    """Computes its outputs by a function. `ranks` are the numbers of dimensions of its inputs."""

    def __init__(self, op: FunctionOp, attributes: Mapping[str, Any], ranks: Sequence[int], num_outputs: int) -> None:
        super().__init__()
        self.op, self.attributes, self.ranks, self.num_outputs = op, dict(attributes), tuple(ranks), num_outputs
        self.plugin_type, self.plugin_version, self.plugin_namespace = op.name, "1", op.domain
        self.tactic = 0
        self._types: list[DataType] = []

    def get_output_datatype(self, index: int, input_types: Sequence[DataType], /) -> DataType:
        self._types = list(input_types)
        return self._described(unknown_lengths(self.ranks))[index].dtype

    def get_output_dimensions(
        self, output_index: int, inputs: Sequence[DimsExprs], expr_builder: IExprBuilder, /
    ) -> DimsExprs:
        return self._described(inputs)[output_index].shape_expr

    def _described(self, lengths: Sequence[Sequence[IDimensionExpr]]) -> Sequence[TensorDesc]:
        inputs = [TensorDesc(one, dtype) for one, dtype in zip(lengths, self._types, strict=True)]
        found = self.op.describe(inputs, self.attributes)
        if len(found) != self.num_outputs:
            raise PluginError(f"{self.op.label} has {self.num_outputs} outputs, but {len(found)} were described")
        if self.op.tune is not None:
            self.tactic = self.op.tune(inputs, found, self.attributes)
        return found

    def supports_format_combination(self, pos: int, in_out: Sequence[PluginTensorDesc], num_inputs: int, /) -> bool:
        """Tensors have the types that the network has them in, which are offered first."""
        return in_out[pos].format == TensorFormat.LINEAR

    def enqueue(
        self,
        input_desc: Sequence[PluginTensorDesc],
        output_desc: Sequence[PluginTensorDesc],
        inputs: Sequence[int],
        outputs: Sequence[int],
        workspace: int,
        stream: int,
        /,
    ) -> None:
        on_host = stream == 0
        read, written = (
            [
                Tensor(address, desc.dims, desc.type, on_host=on_host, written=is_written)
                for address, desc in zip(addresses, descriptions, strict=True)
            ]
            for addresses, descriptions, is_written in ((inputs, input_desc, False), (outputs, output_desc, True))
        )
        self.op.compute(read, written, self.attributes, stream, self.tactic)

    def serialize(self) -> bytes:
        attributes = {name: to_json(value) for name, value in self.attributes.items()}
        state = {"ranks": list(self.ranks), "outputs": self.num_outputs, "tactic": self.tactic}
        return json.dumps({"attributes": attributes, **state}).encode()

    def clone(self) -> FunctionPlugin:
        copy = FunctionPlugin(self.op, self.attributes, self.ranks, self.num_outputs)
        copy.tactic, copy._types = self.tactic, list(self._types)
        return copy


class FunctionCreator(IPluginCreator):
    """Makes plugins of one op: from what they have serialised, or for inputs that are like this (`plugin_for`)."""

    def __init__(self, op: FunctionOp) -> None:
        super().__init__()
        self.op = op
        self.name, self.plugin_version = op.name, "1"
        kind = PluginFieldType.UNKNOWN
        self.field_names = PluginFieldCollection([PluginField(name, None, kind) for name in op.attributes])

    def plugin_for(self, inputs: Sequence[TensorDesc], given: Mapping[str, Any]) -> FunctionPlugin:
        """A plugin for inputs of these types and ranks; raises `InvalidInputError` for attributes that do not fit."""
        attributes = self.op.checked(len(inputs), given)
        ranks = [one.ndim for one in inputs]
        symbolic = [TensorDesc(lengths, one.dtype) for lengths, one in zip(unknown_lengths(ranks), inputs, strict=True)]
        count = len(self.op.describe(symbolic, attributes))
        return FunctionPlugin(self.op, attributes, ranks, count)

    def deserialize_plugin(self, name: str, serialized_plugin: bytes, /) -> FunctionPlugin:
        state = json.loads(serialized_plugin)
        attributes = {one: from_json(value) for one, value in state["attributes"].items()}
        made = FunctionPlugin(self.op, attributes, state["ranks"], state["outputs"])
        made.tactic = state["tactic"]
        return made


def unknown_lengths(ranks: Sequence[int]) -> list[list[IDimensionExpr]]:
    """Lengths by the names that plugins' formulas have for them: `x0.1` is dimension 1 of input 0."""
    return [[IDimensionExpr(f"x{one}.{axis}") for axis in range(rank)] for one, rank in enumerate(ranks)]


def register_function(op: FunctionOp) -> FunctionCreator:
    """Let an op be found, in place of a function that was registered under its name before.

    Raises `InvalidInputError` where a plugin of another kind has the name.
    """
    registry, creator = get_plugin_registry(), FunctionCreator(op)
    before = registry.get_creator(op.name, "1", op.domain)
    if isinstance(before, FunctionCreator):
        registry.deregister_creator(before)
    elif before is not None:
        raise InvalidInputError(
            f"{op.label}: a plugin creator of this name and version 1 is registered; choose another"
        )
    registry.register_creator(creator, op.domain)
    return creator


def function_op(domain: str, name: str) -> FunctionCreator | None:
    """The creator of an op that a function computes; None where none is registered."""
    found = get_plugin_registry().get_creator(name, "1", domain)
    return found if isinstance(found, FunctionCreator) else None
