"""Plugins for tests: arithmetic on host memory that writes down in `events` what is asked of them."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np

import mlirt as trt

Description = trt.PluginTensorDesc
Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"


def array_at(address: int, described: Description) -> Array:
    """The tensor of the host that lies at an address."""
    dtype = np.dtype(trt.nptype(described.type))
    count = trt.volume(described.dims)
    if not count:
        return np.empty(tuple(described.dims), dtype)
    memory = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(address)
    return np.ctypeslib.as_array(memory).view(dtype).reshape(tuple(described.dims))


class Repeat(trt.IPluginV2DynamicExt):
    """`factor * x`, `times` times one after the other along the first axis."""

    events: list[str]
    types = (trt.DataType.FLOAT,)

    def __init__(self, factor: float = 2.0, times: int = 1, events: list[str] | None = None) -> None:
        super().__init__()
        self.plugin_type = "Repeat"
        self.factor, self.times = factor, times
        self.events = [] if events is None else events

    def note(self, event: str) -> None:
        self.events.append(event)

    def get_output_dimensions(
        self, output_index: int, inputs: Sequence[trt.DimsExprs], expr_builder: trt.IExprBuilder, /
    ) -> trt.DimsExprs:
        found = trt.DimsExprs(inputs[0])
        times = expr_builder.constant(self.times)
        found[0] = expr_builder.operation(trt.DimensionOperation.PROD, found[0], times)
        return found

    def supports_format_combination(self, pos: int, in_out: Sequence[Description], num_inputs: int, /) -> bool:
        self.note(f"supports {pos} {in_out[pos].type.name}")
        return in_out[pos].format == trt.TensorFormat.LINEAR and in_out[pos].type in self.types

    def configure_plugin(
        self, inputs: Sequence[trt.DynamicPluginTensorDesc], outputs: Sequence[trt.DynamicPluginTensorDesc], /
    ) -> None:
        ends = f"{inputs[0].min} to {inputs[0].max}"
        self.note(f"configure {inputs[0].desc.dims} {ends} -> {outputs[0].desc.dims}")

    def get_workspace_size(self, inputs: Sequence[Description], outputs: Sequence[Description], /) -> int:
        self.note("workspace")
        return 4 * trt.volume(inputs[0].dims)

    def enqueue(
        self,
        input_desc: Sequence[Description],
        output_desc: Sequence[Description],
        inputs: Sequence[int],
        outputs: Sequence[int],
        workspace: int,
        stream: int,
        /,
    ) -> None:
        self.note(f"enqueue {input_desc[0].dims} -> {output_desc[0].dims} on {'a stream' if stream else 'the host'}")
        given = [array_at(address, desc) for address, desc in zip(inputs, input_desc, strict=True)]
        made = [array_at(address, desc) for address, desc in zip(outputs, output_desc, strict=True)]
        self.compute(given, made, workspace)

    def compute(self, given: Sequence[Array], made: Sequence[Array], workspace: int) -> None:
        """Write the results, by way of the workspace."""
        scaled = array_at(workspace, Description(given[0].shape, trt.float32))
        scaled[...] = given[0] * np.float32(self.factor)
        made[0][...] = np.concatenate([scaled] * self.times)

    def initialize(self) -> int | None:
        self.note("initialize")
        return None

    def terminate(self) -> None:
        self.note("terminate")

    def destroy(self) -> None:
        self.note("destroy")

    def clone(self) -> Repeat:
        self.note("clone")
        return type(self)(self.factor, self.times, self.events)

    def serialize(self) -> bytes:
        self.note("serialize")
        return json.dumps({"factor": self.factor, "times": self.times}).encode()


class RepeatCreator(trt.IPluginCreator):
    """Makes them from the fields `factor` and `times`; all that it makes shares its `events`."""

    def __init__(self, made: type[Repeat] = Repeat) -> None:
        super().__init__()
        self.name = "Repeat"
        self.made = made
        self.events: list[str] = []
        self.fields: dict[str, trt.PluginField] = {}
        names = ("factor", trt.PluginFieldType.FLOAT32), ("times", trt.PluginFieldType.INT32)
        self.field_names = trt.PluginFieldCollection(trt.PluginField(name, None, type=kind) for name, kind in names)

    def create_plugin(self, name: str, field_collection: trt.PluginFieldCollection, /) -> Repeat:
        self.fields = {field.name: field for field in field_collection}
        settings = {name: np.asarray(field.data).ravel()[0].item() for name, field in self.fields.items()}
        return self.made(**settings, events=self.events)

    def deserialize_plugin(self, name: str, serialized_plugin: bytes, /) -> Repeat:
        self.events.append(f"deserialize {name}")
        return self.made(**json.loads(serialized_plugin), events=self.events)


@contextmanager
def registered(creator: trt.IPluginCreatorInterface, namespace: str = "") -> Generator[trt.IPluginRegistry]:
    """Let a creator be found meanwhile."""
    registry = trt.get_plugin_registry()
    assert registry.register_creator(creator, namespace)
    try:
        yield registry
    finally:
        registry.deregister_creator(creator)
