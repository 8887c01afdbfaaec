"""rt-debug compare: every tensor that a compiled network keeps, layer by layer, against another way to compute it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp, StringAttr
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.fused.fused_op import FusedOp
from mlirt.dialects.fused.joining import IN_PLACE, JoiningOp
from mlirt.dialects.interpreter import entry_function, interpret, output_names
from mlirt.dialects.locations import name_of
from mlirt.errors import InvalidInputError
from mlirt.tools.debugging.case import Case
from mlirt.tools.debugging.differences import difference

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class TensorDifference:
    """A tensor, the launch that made it, and how far it is off."""

    name: str
    layer: str
    op: str
    error: float


def compared_tensors(case: Case) -> list[TensorDifference]:
    """Each result of a launch in order, compiled for the target, against the same IR on the interpreter.

    The phases up to `fusion` have run; all results are outputs of the network then, so that it is compiled with less
    overlap of memory, but with the kernels that it has.
    """
    module = case.after(None, "fusion")
    launches = with_all_results(module)
    expected, found = case.interpreted(module), case.compiled(module, "layout")
    return [
        TensorDifference(name, name_of(op), op.name, difference(found[name], expected[name]))
        for name, op in launches.items()
    ]


def compared_outputs(case: Case, expected: Mapping[str, Array]) -> list[TensorDifference]:
    """The outputs of the network on the target, against those of another engine."""
    found = case.compiled(case.module, case.first)
    missing = expected.keys() ^ found.keys()
    if missing:
        raise InvalidInputError(f"the two networks have other outputs: only one has {min(missing)!r}")
    return [TensorDifference(name, name, "output", difference(found[name], array)) for name, array in expected.items()]


def table(found: Sequence[TensorDifference], bound: float) -> list[str]:
    """A line for each tensor, and the first one beyond the bound."""
    width = max((len(one.layer) for one in found), default=5)
    lines = [f"{'error':>10}  {'layer':{width}}  op"]
    for one in found:
        mark = "  <-- beyond the bound" if one.error > bound else ""
        lines.append(f"{one.error:10.3g}  {one.layer:{width}}  {one.op}{mark}")
    first = first_beyond(found, bound)
    if first is None:
        lines.append(f"{'the tensor is' if len(found) == 1 else f'all {len(found)} tensors are'} within {bound:g}")
    else:
        lines.append(f"first tensor beyond {bound:g}: {first.name} of layer {first.layer} ({first.op})")
    return lines


def styles(found: Sequence[TensorDifference], bound: float) -> list[str]:
    """The style of each line of the table on a terminal."""
    rows = ["red" if one.error > bound else "" for one in found]
    return ["bold", *rows, "green" if first_beyond(found, bound) is None else "red"]


def first_beyond(found: Sequence[TensorDifference], bound: float) -> TensorDifference | None:
    """The first tensor that is further off than the bound."""
    return next((one for one in found if one.error > bound), None)


def onnxruntime_outputs(path: str, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """What onnxruntime computes for a model on a CPU."""
    runtime: Any = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")  # int8 products must not saturate
    session = runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names: list[str] = [output.name for output in session.get_outputs()]
    arrays: list[Array] = session.run(names, dict(feeds))
    return dict(zip(names, arrays, strict=True))


def reference_outputs(case: Case) -> dict[str, Array]:
    """What the network as it was read computes on the interpreter."""
    return interpret(case.module, case.ctx, case.feeds)


def with_all_results(module: ModuleOp, count: int | None = None) -> dict[str, Operation]:
    """Let the entry function return the results of all its launches; their ops by name of the output, in order.

    With `count` so many launches are left, and what they return is all.
    """
    function = entry_function(module)
    block = function.body.block
    launches: dict[str, Operation] = {}
    values: list[SSAValue] = []
    names: list[str] = []
    ops = list(block.ops)
    places = [place for place, op in enumerate(ops) if isinstance(op, FusedOp)]
    end = len(ops) if count is None else places[count - 1] + 1
    for op in ops[:end]:
        if isinstance(op, JoiningOp):
            op.attributes.pop(IN_PLACE, None)  # what is an output too cannot lie in another tensor
        if isinstance(op, FusedOp):
            for number, value in enumerate(op.results):
                name = f"{len(names)}:{value.name_hint or name_of(op)}" + (f".{number}" if number else "")
                launches[name] = op
                values.append(value)
                names.append(name)
    last = block.last_op
    assert isinstance(last, ReturnOp)
    kept = list(zip(output_names(function), last.operands, strict=True)) if count is None else []
    values += [value for _, value in kept]
    names += [name for name, _ in kept]
    for op in reversed([*ops[end:-1], last]):
        block.erase_op(op)
    block.add_op(ReturnOp(*values))
    inputs = function.function_type.inputs.data
    function.function_type = FunctionType.from_lists(list(inputs), [value.type for value in values])
    function.res_attrs = ArrayAttr(DictionaryAttr({"trt.name": StringAttr(name)}) for name in names)
    return launches
