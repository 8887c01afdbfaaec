"""ONNX's own interface to a backend (`onnx.backend.base.Backend`): `prepare`, `run_model`, `run_node`.

The environment variable MLIRT_BACKEND_TARGET (cpu, cuda, reference) replaces the target that the device stands for.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep

from mlirt.builder.config.build_config import BuildConfig
from mlirt.errors import InvalidInputError, UnsupportedError
from mlirt.frontend.importing.refusals import ValueNeededError
from mlirt.frontend.onnx.composed_values import GivenShapes, holds_sequence, is_composed, put_together, taken_apart
from mlirt.frontend.onnx.narrow_types import NARROW_TYPES
from mlirt.frontend.onnx.tensor_reader import read_tensor

if TYPE_CHECKING:
    from mlirt.runtime.engine_interface import EngineLike

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Inputs: TypeAlias = "Mapping[str, Any] | Sequence[Any]"

_TARGETS = {"CPU": "cpu", "CUDA": "cuda"}
_MAX_STEERING_INPUT = 4096


class MlirtBackendRep(BackendRep):
    """A model that is ready to run.

    Some inputs (axes, shapes, pads) steer what the network is; an engine needs them when it is built. Such a model is
    built again for each new value of these inputs, and the engines are kept. So is a model with inputs that are
    sequences or optional, for each new number and shapes of their items.
    """

    def __init__(self, model: onnx.ModelProto, target: str, **options: Any) -> None:
        self._model = model
        self._config = BuildConfig.of(options.pop("config", None), {"target": target, **options})
        stored = {tensor.name for tensor in model.graph.initializer}
        self._declared = [value for value in model.graph.input if value.name not in stored]
        self._inputs = [value.name for value in self._declared]
        self._outputs = list(model.graph.output)
        self._output_types = {value.name: value.type.tensor_type.elem_type for value in model.graph.output}
        self._steering: list[str] = []
        self._engines: dict[tuple[object, ...], EngineLike] = {}
        if any(map(is_composed, self._declared)):
            return
        try:
            self._engines[()] = self._built({}, {})
        except ValueNeededError as error:
            if not error.inputs:
                raise
            self._steering.extend(error.inputs)

    def run(self, inputs: Inputs, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs in the model's order, for inputs by name or in that order (`None` for one that is left out).

        Inputs may be `TensorProto`s; if all are, so are the outputs. Outputs of element types that NumPy lacks always
        are, for example of 8-bit floats.
        """
        feeds, shapes = self._feeds(inputs)
        results = self._results(feeds, shapes)
        given = [value for value in (inputs.values() if isinstance(inputs, Mapping) else inputs) if value is not None]
        protos = [value for value in given if isinstance(value, onnx.TensorProto)]
        wanted, raw = len(protos) == len(given) > 0, any(value.HasField("raw_data") for value in protos)
        return tuple(self._output(value, results, wanted, raw) for value in self._outputs)

    def _output(self, value: onnx.ValueInfoProto, results: Mapping[str, Array], as_proto: bool, raw: bool) -> Any:
        found = put_together(value, results)
        return found if holds_sequence(value) else self._result(value.name, found, as_proto, raw)

    def _results(self, feeds: Mapping[str, Array], shapes: GivenShapes) -> Mapping[str, Array]:
        """The outputs of an engine that fits; one that was built for other inputs is built again for these."""
        engine = self._engine(feeds, shapes)
        try:
            return engine.run({name: array for name, array in feeds.items() if name not in self._steering})
        except InvalidInputError:
            more = [name for name, array in feeds.items() if name not in self._steering and _may_steer(array)]
            if not more:
                raise
            self._steering.extend(more)
            return self._results(feeds, shapes)

    def _result(self, name: str, array: Array, as_proto: bool, raw: bool) -> Any:
        """An output as an array or a `TensorProto`, which holds raw bytes or elements as the inputs did."""
        narrow = NARROW_TYPES.get(self._output_types[name])
        if narrow is None:
            return onnx.numpy_helper.from_array(np.asarray(array), name) if as_proto else array
        numbers = narrow.numbers(np.asarray(array))
        if raw:
            return onnx.numpy_helper.from_array(numbers, name)
        return onnx.helper.make_tensor(name, self._output_types[name], numbers.shape, numbers.reshape(-1))

    def _feeds(self, inputs: Inputs) -> tuple[dict[str, Array], GivenShapes]:
        if not isinstance(inputs, Mapping):
            if not isinstance(inputs, list | tuple):
                inputs = [np.asarray(inputs)]
            if len(inputs) != len(self._inputs):
                raise InvalidInputError(f"expected {len(self._inputs)} inputs {self._inputs}, got {len(inputs)}")
            inputs = dict(zip(self._inputs, inputs, strict=True))
        given = {name: None if value is None else _value(value, name) for name, value in inputs.items()}
        return taken_apart(self._declared, given)

    def _engine(self, feeds: Mapping[str, Array], shapes: GivenShapes) -> EngineLike:
        while True:
            missing = [name for name in self._steering if name not in feeds]
            if missing:
                raise InvalidInputError(f"the input {missing[0]!r} is missing; expected {self._inputs}")
            constants = {name: feeds[name] for name in self._steering}
            values = tuple((array.dtype.str, array.shape, array.tobytes()) for array in constants.values())
            key = (*values, repr(shapes)) if shapes else values
            if key in self._engines:
                return self._engines[key]
            try:
                self._engines[key] = self._built(constants, shapes)
            except ValueNeededError as error:
                more = [
                    name
                    for name in error.inputs
                    if name not in self._steering and feeds[name].size <= _MAX_STEERING_INPUT
                ]
                if not more:
                    raise
                self._steering.extend(more)

    def _built(self, constants: Mapping[str, Array], shapes: GivenShapes) -> EngineLike:
        from mlirt.builder.compile import compile

        return compile(self._model, config=self._config.replace(constants=constants, input_shapes=shapes))


def _value(value: Any, name: str) -> Any:
    """An array, a list of them for a sequence, or None."""
    if not isinstance(value, list):
        return _array(value, name)
    return [_array(item, name) for item in cast("list[Any]", value)]


def _array(value: Any, name: str) -> Array:
    if isinstance(value, onnx.TensorProto):
        return read_tensor(value, f"input {name!r}")
    array = np.asarray(value)
    narrow = next((kind for kind in NARROW_TYPES.values() if kind.name == array.dtype.name), None)
    return array if narrow is None else narrow.stored(array)


def _may_steer(array: Array) -> bool:
    """Whether an input looks like a shape, axes or pads."""
    return array.dtype.kind == "i" and array.ndim < 2 and array.size <= _MAX_STEERING_INPUT


class MlirtBackend(Backend):
    """mlirt as an ONNX backend; what it cannot do raises `mlirt.UnsupportedError`, which is a `NotImplementedError`."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> MlirtBackendRep:
        _refuse_other_rounding(model)
        _refuse_random_numbers(model)
        return MlirtBackendRep(model, _target(device), **kwargs)

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls, node: onnx.NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None, **kwargs: Any
    ) -> tuple[Any, ...]:
        """Run one node alone; the outputs' types are found by ONNX's shape inference."""
        names = list(dict.fromkeys(name for name in node.input if name))
        given: Inputs = inputs
        arrays = [np.asarray(array) for array in (given.values() if isinstance(given, Mapping) else given)]
        values = [
            onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in zip(names, arrays, strict=True)
        ]
        results = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = onnx.helper.make_graph([node], "node", values, results)
        opset = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid(node.domain, opset)])
        return cls.run_model(model, arrays, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        if device.split(":")[0] == "CUDA":
            from mlirt.builder.host import gpu_is_here

            return gpu_is_here()
        return device == "CPU"


def _refuse_other_rounding(model: onnx.ModelProto) -> None:
    """This interface stands for ONNX's own numbers; its softmax in bfloat16 rounds at every addition."""
    narrow = onnx.TensorProto.BFLOAT16
    if not any(value.type.tensor_type.elem_type == narrow for value in model.graph.output):
        return
    for node in model.graph.node:
        if node.op_type in ("Attention", "Softmax"):
            raise UnsupportedError(
                f"{node.op_type} (node {node.name!r}) in bfloat16: ONNX's backend tests expect sums that are rounded "
                "to 8 bits at every addition, mlirt adds in float32; mlirt.compile runs the model"
            )


def _refuse_random_numbers(model: onnx.ModelProto) -> None:
    """What this interface gives is compared with another backend's numbers, and no two have the same random ones."""
    for node in (node for nodes in (model.graph, *model.functions) for node in nodes.node):
        if node.op_type.startswith(("RandomNormal", "RandomUniform")) or node.op_type in ("Bernoulli", "Multinomial"):
            raise UnsupportedError(
                f"{node.op_type} (node {node.name!r}): random numbers differ between backends; mlirt.compile runs the "
                "model, with other numbers in each run"
            )


def _target(device: str) -> str:
    forced = os.environ.get("MLIRT_BACKEND_TARGET")
    if forced:
        return forced
    kind = device.split(":")[0]
    if kind not in _TARGETS:
        raise InvalidInputError(f"device {device!r} is not known; expected one of {', '.join(_TARGETS)}")
    return _TARGETS[kind]


prepare = MlirtBackend.prepare
run_model = MlirtBackend.run_model
run_node = MlirtBackend.run_node
supports_device = MlirtBackend.supports_device
is_compatible = MlirtBackend.is_compatible
