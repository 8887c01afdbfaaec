"""ONNX in, `trt` out: the entry of the importer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import ModelProto
from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.context import RtContext
from mlirt.dialects.registry import register_dialects
from mlirt.errors import InvalidModelError, UnsupportedError, reports_shortage
from mlirt.frontend.importing.main_function import end_network, main_module
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.importing.number_arrays import Array
from mlirt.frontend.onnx.assumptions import Assumptions, Reading, best_reading
from mlirt.frontend.onnx.function_bodies import function_table
from mlirt.frontend.onnx.graph_inputs import Shapes, read_inputs
from mlirt.frontend.onnx.graph_reader import GraphReader, Scope
from mlirt.frontend.onnx.missing_operators import with_all_missing
from mlirt.frontend.onnx.model_reader import Model, ModelSource, opsets, read_model
from mlirt.frontend.onnx.sequences import is_tensor_value, named_parts
from mlirt.frontend.onnx.squeezed_outputs import squeezed_results


@reports_shortage("the model")
def import_model(
    model: ModelSource | Model,
    ctx: RtContext,
    input_shapes: Shapes | None = None,
    constants: Mapping[str, Array] | None = None,
    *,
    keeps_weights: bool = False,
    outputs: Sequence[str] = (),
    keeps_layers: bool = False,
) -> ModuleOp:
    """The network of an ONNX model as `func.func @main` in the `trt` dialect; weights go to the context's store.

    `input_shapes` replaces the dimensions of inputs (numbers, or names and expressions for dynamic ones); `constants`
    gives inputs fixed values, which then are no inputs of the network any more. A sequence has as many items as there
    are shapes for it, and item 2 of `x` is the input (or output) `x[2]`; an optional without value has the shape None.
    `outputs` are tensors of the graph that become outputs behind its own. With `keeps_weights` weights are constants of
    their own that other importers would join, such as statistics; with `keeps_layers` identities are layers.
    Raises `InvalidModelError` for a damaged model, `UnsupportedError` for one that uses what is not supported yet; the
    latter is an `UnsupportedOperatorsError` that lists them all where several nodes cannot be computed.
    """
    source = read_model(model)
    proto = source.proto
    more = [name for name in outputs if name not in {value.name for value in proto.graph.output}]
    register_dialects(ctx)

    def read(assumed: Assumptions) -> Reading:
        net = Network(ctx.weights, assumed, keeps_weights=keeps_weights)
        net.keeps_layers = keeps_layers
        scope = Scope(opsets(proto), function_table(proto.functions), folder=source.folder, stored=source.stored)
        read_inputs(proto.graph, net, scope, input_shapes or {}, constants or {})
        outputs = GraphReader(net).read_graph(proto.graph, scope, more)
        reading = Reading(_module(proto, net, outputs, more), net.mismatches + _other_ranks(proto, outputs))
        scope.values.clear()  # those not read yet refer to one another, and would keep arrays without a reader
        return reading

    try:
        return best_reading(read)
    except UnsupportedError as error:
        told = with_all_missing(error, proto)
        if told is error:
            raise
        raise told from error


def _module(proto: ModelProto, net: Network, outputs: Sequence[Value], more: Sequence[str]) -> ModuleOp:
    names = [*(value.name for value in proto.graph.output), *more]
    if len(set(names)) != len(names):
        raise InvalidModelError(f"two graph outputs have the same name: {names}")
    parts = [part for name, value in zip(names, outputs, strict=True) for part in named_parts(name, value)]
    end_network(net, [value for _, value in parts])
    return main_module(net, parts, squeezed_results(net))


def _other_ranks(proto: ModelProto, outputs: Sequence[Value]) -> int:
    """How many outputs have another rank than the model declares."""
    declared = [value.type.tensor_type for value in proto.graph.output]
    return sum(
        is_tensor_value(value) and type_.HasField("shape") and len(type_.shape.dim) != value.rank
        for type_, value in zip(declared, outputs, strict=False)  # tensors that the caller asks for come last
    )
