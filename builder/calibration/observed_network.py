"""A network as calibration runs it: cleaned up, and with the tensors that are looked at as further outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp, StringAttr, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import entry_function, input_names, output_names
from mlirt.dialects.layer_precisions import drop_layer_precisions
from mlirt.dialects.symbolic import evaluate, symbols
from mlirt.dialects.tensor_names import tensor_names
from mlirt.dialects.tensor_types import dims, element_of, is_tensor, rank
from mlirt.dialects.trt.activation import ActivationKind, ActivationOp
from mlirt.dialects.trt.elementwise import ElementwiseOp
from mlirt.dialects.trt.gather import GatherOp
from mlirt.dialects.trt.scale import ScaleOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.trt.slice import SliceOp
from mlirt.passes.pipeline import PipelineOptions, run_phases
from mlirt.passes.quantization.tensor_ranges import take_ranges

# Their results hold the numbers of their operands, so that they have the operands' range.
_MOVES = (ShuffleOp, SliceOp, GatherOp)
_POINTWISE = (ActivationOp, ElementwiseOp, ScaleOp)


def cleaned(module: ModuleOp, ctx: RtContext, target: str) -> ModuleOp:
    """The network after the phase `cleanup`; its tensors have the names under which `insert-scales` looks for them.

    It is observed in float32, so that nothing is left of what its layers are asked to compute in.
    """
    drop_layer_precisions(module)
    run_phases(module, ctx, last="cleanup", options=PipelineOptions(target))
    return module


def cleaned_with_ranges(module: ModuleOp, ctx: RtContext, target: str) -> ModuleOp:
    """The same for a network that carries ranges, and still does so afterwards."""
    ranges = take_ranges(module)
    run_phases(module, ctx, last="cleanup", options=PipelineOptions(target))
    module.attributes |= ranges
    return module


def observed_names(module: ModuleOp, before_fusion: bool = True) -> list[str]:
    """The tensors of a cleaned network that need ranges: float32, at least two dimensions, made by no mere move.

    Before fusion these are all of them, so that the names fit every target (tensorrt-features.md#9.25); after fusion
    tensors are left out that exist only inside of a fused layer.
    """
    names = tensor_names(module)
    return [name for value, name in names.items() if _is_wanted(value) and (before_fusion or not _vanishes(value))]


def _is_wanted(value: SSAValue) -> bool:
    if not is_tensor(value.type) or element_of(value.type) != f32 or rank(value.type) < 2:
        return False
    return isinstance(value, BlockArgument) or not isinstance(value.owner, _MOVES)


def rectified_names(module: ModuleOp) -> dict[str, str]:
    """The tensors that rectifiers make, each with the name of the tensor that its rectifier reads."""
    names = tensor_names(module)
    found: dict[str, str] = {}
    for value, name in names.items():
        op = value.owner
        if isinstance(op, ActivationOp) and op.kind.data is ActivationKind.RELU and op.input in names:
            found[name] = names[op.input]
    return found


def _vanishes(value: SSAValue) -> bool:
    readers = {use.operation for use in value.uses}
    reader = readers.pop() if len(readers) == 1 else None
    return isinstance(value.owner, Operation) and isinstance(reader, _POINTWISE)


def element_counts(module: ModuleOp, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """How many elements each tensor has where the inputs have these shapes; 0 where only the run tells."""
    function = entry_function(module)
    sizes: dict[str, int] = {}
    for name, argument in zip(input_names(function), function.body.block.args, strict=True):
        for dim, size in zip(dims(argument.type), shapes[name], strict=True):
            sizes |= {str(dim): size} if not isinstance(dim, int) else {}
    found: dict[str, int] = {}
    for value, name in tensor_names(module).items():
        known = all(isinstance(dim, int) or symbols(dim) <= sizes.keys() for dim in dims(value.type))
        count = 1
        for dim in dims(value.type) if known else (0,):
            count *= evaluate(dim, sizes)
        found[name] = count
    return found


def with_outputs(module: ModuleOp, wanted: Sequence[str]) -> tuple[ModuleOp, dict[str, str]]:
    """A copy of a cleaned network with further outputs, and for each wanted tensor the output that it is.

    Inputs of the network are none: the caller has them.
    """
    copy = module.clone()
    function = entry_function(copy)
    last = function.body.block.last_op
    assert isinstance(last, ReturnOp)
    names = {name: value for value, name in tensor_names(copy).items() if not isinstance(value, BlockArgument)}
    own = dict(zip(last.operands, output_names(function), strict=True))
    taken = set(own.values())
    added: dict[str, SSAValue] = {}
    for name in wanted:
        if name in names and names[name] not in own:
            own[names[name]] = _free(name, taken.__contains__)
            taken.add(own[names[name]])
            added[own[names[name]]] = names[name]
    return_also(function, last, added)
    return copy, {name: own[names[name]] for name in wanted if name in names}


def _free(name: str, is_taken: Callable[[str], bool]) -> str:
    while is_taken(name):
        name += "'"
    return name


def return_also(function: FuncOp, last: ReturnOp, added: Mapping[str, SSAValue]) -> None:
    """Give a network further outputs, by their names."""
    last.operands = [*last.operands, *added.values()]
    types = [value.type for value in last.operands]
    old = list(function.res_attrs or [DictionaryAttr({})] * (len(types) - len(added)))
    function.res_attrs = ArrayAttr([*old, *(DictionaryAttr({"trt.name": StringAttr(name)}) for name in added)])
    function.properties["function_type"] = FunctionType.from_lists(list(function.function_type.inputs), types)
