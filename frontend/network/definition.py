"""INetworkDefinition: a network that is made layer by layer (tensorrt-features.md#2.1 to 2.20)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import index
from typing import TYPE_CHECKING, Any, cast

from mlirt.errors import InvalidInputError, MlirtError
from mlirt.frontend.network.conditionals import ConditionalMethods
from mlirt.frontend.network.graph import NetworkGraph
from mlirt.frontend.network.implicit_batch import WithBatch
from mlirt.frontend.network.layer import ILayer
from mlirt.frontend.network.layers_index import IndexMethods
from mlirt.frontend.network.layers_move import MoveMethods
from mlirt.frontend.network.layers_plugin import PluginMethods
from mlirt.frontend.network.layers_pointwise import PointwiseMethods
from mlirt.frontend.network.layers_product import ProductMethods
from mlirt.frontend.network.layers_quantize import QuantizeMethods
from mlirt.frontend.network.layers_recurrent import RecurrentMethods
from mlirt.frontend.network.layers_reduce import ReduceMethods
from mlirt.frontend.network.layers_rest import RestMethods
from mlirt.frontend.network.layers_sample import SampleMethods
from mlirt.frontend.network.layers_source import SourceMethods
from mlirt.frontend.network.layers_suppress import SuppressMethods
from mlirt.frontend.network.layers_window import WindowMethods
from mlirt.frontend.network.loops import LoopMethods
from mlirt.frontend.network.methods import Methods
from mlirt.frontend.network.tensor import ITensor
from mlirt.tensorrt.argument_types import expect
from mlirt.tensorrt.build_enums import STRONGLY_TYPED_BIT, NetworkDefinitionCreationFlag
from mlirt.tensorrt.context_manager import ContextManager
from mlirt.tensorrt.data_types import DataType
from mlirt.tensorrt.deprecation import deprecated
from mlirt.tensorrt.logger import ILogger
from mlirt.tensorrt.reported_version import reports_at_least
from mlirt.tensorrt.reporting import Reporter, Reporting
from mlirt.tensorrt.weights import Weights, as_weights

if TYPE_CHECKING:
    from mlirt.tensorrt.weights import Array

if TYPE_CHECKING or reports_at_least(8, 6):
    from mlirt.frontend.network.layers_later import LaterMethods
else:

    class LaterMethods(Methods):
        """No layer came later than the version that is told."""


class INetworkDefinition(
    Reporting,
    PointwiseMethods,
    WindowMethods,
    ProductMethods,
    MoveMethods,
    IndexMethods,
    ReduceMethods,
    QuantizeMethods,
    SampleMethods,
    SourceMethods,
    RecurrentMethods,
    RestMethods,
    PluginMethods,
    SuppressMethods,
    LaterMethods,
    LoopMethods,
    ConditionalMethods,
    ContextManager,
):
    """Tensors and layers, to be built by `Builder.build_serialized_network`. It has an explicit batch.

    A layer's op is made when its shape is first asked for, or when the network is built; what is wrong with it is
    reported then. Arguments that can never be right are reported at once, and the method returns None.
    """

    def __init__(self, logger: ILogger, *, has_implicit_batch: bool = False) -> None:
        self.name = "Unnamed Network 0"
        self.reporter = Reporter(logger)
        self.graph = NetworkGraph(self.reporter)
        self.is_strongly_typed = False
        self.made_by: Any = None
        if has_implicit_batch:
            self.graph.make_beside = lambda: WithBatch(self, INetworkDefinition(logger))
        self.fix_attributes()

    @property
    def has_implicit_batch_dimension(self) -> bool:
        return self.graph.has_implicit_batch

    if reports_at_least(10):

        @property
        def flags(self) -> int:
            """The mask of `NetworkDefinitionCreationFlag`."""
            return 1 << NetworkDefinitionCreationFlag.EXPLICIT_BATCH | self.is_strongly_typed << STRONGLY_TYPED_BIT

        def get_flag(self, flag: NetworkDefinitionCreationFlag) -> bool:
            """Whether the network was made with a flag."""
            return bool(self.flags >> flag & 1)

    if reports_at_least(8, 6):

        @property
        def builder(self) -> Any:
            """The builder that the network was made with."""
            return self.made_by

    def with_batch(self, max_batch_size: int) -> INetworkDefinition:
        """The network with an explicit batch that stands for this one (mlirt's own, tensorrt-features.md#2.17)."""
        found = WithBatch(self, INetworkDefinition(self.reporter.logger)).finish()
        found.graph.max_batch_size = max_batch_size
        return found

    @property
    def has_explicit_precision(self) -> bool:
        deprecated("quantize layers")
        return False

    @property
    def num_layers(self) -> int:
        return len(self.graph.records)

    @property
    def num_inputs(self) -> int:
        return len(self.graph.inputs)

    @property
    def num_outputs(self) -> int:
        return len(self.graph.outputs)

    def add_input(self, name: str, dtype: DataType, shape: Sequence[int]) -> ITensor:
        """A new input; -1 is a length that the run decides. None for a name that is empty or taken
        (tensorrt-features.md#2.2).
        """
        expect("add_input(): dtype", dtype, DataType)
        lengths = _whole_numbers(f"add_input(): the shape of {name!r}", shape)
        if not name or self.graph.is_taken(name):
            return self._refused("addInput", f"an input needs a name of its own, got {name!r}")
        if any(length < -1 for length in lengths):
            return self._refused("addInput", f"input {name!r}: {lengths} is no shape")
        if self.graph.has_implicit_batch and -1 in lengths:
            return self._refused("addInput", f"input {name!r}: {lengths} is for a network with an explicit batch")
        tensor = ITensor(self.graph, name, shape=lengths)
        tensor.dtype = dtype
        self.graph.inputs.append(tensor)
        self.graph.start_again()
        return tensor

    def mark_output(self, tensor: ITensor) -> None:
        """Make a tensor an output of the network (tensorrt-features.md#2.3)."""
        expect("mark_output()", tensor, ITensor)
        if tensor in self.graph.outputs:
            self.graph.reporter.warning(f"{tensor.name} is an output already")
            return
        self.graph.rename_tensor(tensor, tensor.name)
        self.graph.outputs.append(tensor)

    def unmark_output(self, tensor: ITensor) -> None:
        """Let a tensor be no output any more."""
        for outputs in (self.graph.outputs, self.graph.shape_outputs):
            if tensor in outputs:
                outputs.remove(tensor)

    def mark_debug(self, tensor: ITensor) -> bool:
        """Let an engine beside this network's compute a tensor, for a debug listener; False for one that is marked."""
        expect("mark_debug()", tensor, ITensor)
        if tensor in self.graph.debug:
            return False
        self.graph.rename_tensor(tensor, tensor.name)
        self.graph.debug.append(tensor)
        return True

    def unmark_debug(self, tensor: ITensor) -> bool:
        """Undo `mark_debug`; False for what is not marked."""
        known = tensor in self.graph.debug
        if known:
            self.graph.debug.remove(tensor)
        return known

    def is_debug_tensor(self, tensor: ITensor) -> bool:
        """Whether a tensor is marked."""
        return tensor in self.graph.debug

    def mark_output_for_shapes(self, tensor: ITensor) -> bool:
        """Make a tensor an output that is delivered as a shape, to the host's memory (tensorrt-features.md#2.4).

        False, with an error in the log, for one that no shape can be: floating-point numbers, or more dimensions.
        """
        expect("mark_output_for_shapes()", tensor, ITensor)
        if len(tensor.shape) > 1 or tensor.dtype not in (DataType.INT32, DataType.INT64):
            self._refused(
                "markOutputForShapes",
                f"{tensor.name}: a shape is Int32 of at most one dimension, got {tensor.dtype.name} {tensor.shape}",
            )
            return False
        self.mark_output(tensor)
        if tensor not in self.graph.shape_outputs:
            self.graph.shape_outputs.append(tensor)
        return True

    def unmark_output_for_shapes(self, tensor: ITensor) -> bool:
        """Undo `mark_output_for_shapes`; False for what is no such output."""
        known = tensor in self.graph.shape_outputs
        self.unmark_output(tensor)
        return known

    def remove_tensor(self, tensor: ITensor) -> None:
        """Take a tensor out of the network that no layer reads; raises `InvalidInputError` for one that is read."""
        readers = [record.name for record in self.graph.records if tensor in record.inputs]
        if readers:
            raise InvalidInputError(f"tensor {tensor.name!r} is read by {readers[0]}")
        self.unmark_output(tensor)
        self.unmark_debug(tensor)
        if tensor in self.graph.inputs:
            self.graph.inputs.remove(tensor)
            self.graph.start_again()

    def get_layer(self, index: int) -> ILayer:
        """A layer, as the base class shows it; None where there is none."""
        record = _at(self.graph.records, index)
        return cast("ILayer", None) if record is None else ILayer(record)

    def get_input(self, index: int) -> ITensor:
        """An input; None where there is none."""
        return _at(self.graph.inputs, index)

    def get_output(self, index: int) -> ITensor:
        """An output; None where there is none."""
        return _at(self.graph.outputs, index)

    def set_weights_name(self, weights: Weights | Array, name: str) -> bool:
        """The name of weights in the plan; False for one that is taken (tensorrt-features.md#2.19)."""
        return self.graph.name_weights(as_weights(weights).numpy(), name)

    def serialize(self) -> memoryview | None:
        """The network as IR text, with its weights inside, which `mlirt.compile` and the tools read
        (tensorrt-features.md#2.18); None, with the reason in the log, for one that cannot be built.
        """
        from mlirt.dialects.context import RtContext
        from mlirt.dialects.trt.constant import ConstantOp
        from mlirt.dialects.xdsl_compat import module_text
        from mlirt.frontend.network.module import network_module

        ctx = RtContext()
        try:
            module = network_module(self, ctx)
            for op in module.walk():
                if isinstance(op, ConstantOp):
                    op.inline(ctx.weights)
            return memoryview(module_text(module, debuginfo=True).encode())
        except MlirtError as error:
            self.graph.reporter.error("network.py::serialize", error)
            return None

    def __len__(self) -> int:
        return self.num_layers

    def __getitem__(self, index: int) -> ILayer:
        """A layer, from the end below 0; raises `IndexError` where there is none."""
        return ILayer(self.graph.records[index])

    def __iter__(self) -> Iterator[ILayer]:
        return (self.get_layer(index) for index in range(self.num_layers))

    def _refused(self, where: str, text: str) -> Any:
        self.graph.reporter.error(f"network.py::{where}", text)
        return None


def _at(items: Sequence[Any], place: int) -> Any:
    return items[place] if 0 <= place < len(items) else None


def _whole_numbers(where: str, shape: Sequence[int]) -> list[int]:
    try:
        return [index(length) for length in shape]
    except TypeError:
        raise TypeError(f"{where}: expected whole numbers such as (1, 3, -1, -1), got {shape!r}") from None
