"""Data-dependent shapes: each length that only the run can tell gets a symbol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.integer_list import integers
from mlirt.dialects.locations import name_of
from mlirt.dialects.shape_arithmetic import ShapeArithmetic
from mlirt.dialects.slicing import SliceMode
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import dims
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.elementwise import ElementwiseKind as Kind
from mlirt.dialects.trt.fill import FillOp
from mlirt.dialects.trt.resize import ResizeOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.trt.slice import SliceOp
from mlirt.passes.cleanup.rewriting import insert_before, replace
from mlirt.passes.cleanup.run_time_words import Word, Words
from mlirt.passes.cleanup.shape_refinement import refine, refine_results, update_results


@dataclass(frozen=True)
class DefineDataDependentSizesPass(ModulePass):
    """Give layers whose shape is an operand that depends on data their shape as properties, in symbols.

    `trt.define_size` says what each symbol stands for in a run; the run ends with an error where a reshape asks for
    another number of elements, or a slice leaves its tensor. What follows from the dimensions of the inputs needs no
    symbol. Layers in loops and branches, slices with run-time strides, and those with run-time starts in another mode
    than strict bounds are left alone.

    Before:

        %y = trt.resize nearest %x, %shape : (tensor<1x3x4x4xf32>, tensor<4xi64>) -> tensor<?x?x?x?xf32>

    After:

        %h = trt.gather %shape, %two : (tensor<4xi64>, tensor<i64>) -> tensor<i64>
        trt.define_size %h {symbol = "size2"} : tensor<i64>
        ...
        %y = trt.resize nearest %x {output_dims = #trt.dims<["size0", "size1", "size2", "size3"]>} : ...
    """

    name = "define-data-dependent-sizes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, FuncOp) and function.body.blocks and _needs_sizes(function):
                _define(function, ctx)
                update_results(function)


def _needs_sizes(function: FuncOp) -> bool:
    return any(_shape_operands(op) for op in function.body.block.ops if isinstance(op, TensorOp))


def _define(function: FuncOp, ctx: Context) -> None:
    arithmetic = ShapeArithmetic()
    words = Words(function, arithmetic, ctx)
    for op in list(function.body.block.ops):
        if not isinstance(op, TensorOp) or isinstance(op, ConstantOp):
            continue
        if not isinstance(op, SliceOp) or all(arithmetic.elements(one) is not None for one in _shape_operands(op)):
            layer = refine(op, arithmetic, ctx)
        else:
            layer = op  # its operands are still to be compared with each other
        made = None if layer is None or not _shape_operands(layer) else _with_sizes(layer, words)
        if layer is not None and made is not None:
            insert_before(layer, made)
            replace(layer, *made.results)
            refine_results(made)


def _shape_operands(op: TensorOp) -> list[SSAValue]:
    if isinstance(op, SliceOp):
        given = [op.dynamic_start, op.dynamic_size, op.dynamic_stride]
    else:
        given = [op.shape] if isinstance(op, ShuffleOp | FillOp | ResizeOp) else []
    return [operand for operand in given if operand is not None]


def _with_sizes(layer: TensorOp, words: Words) -> TensorOp | None:
    words.stand_before(layer)
    if isinstance(layer, ShuffleOp):
        return _rebuild(layer, [layer.input, None], {"reshape_dims": DimsAttr.of(_reshaped(layer, words))})
    if isinstance(layer, ResizeOp):
        assert layer.shape is not None
        return _rebuild(layer, [layer.input, None], {"output_dims": words.lengths(layer.shape)})
    if isinstance(layer, FillOp):
        assert layer.shape is not None
        return _rebuild(layer, [None, layer.alpha, layer.beta], {"output_dims": words.lengths(layer.shape)})
    assert isinstance(layer, SliceOp)
    return _sliced(layer, words)


def _rebuild(layer: TensorOp, operands: Sequence[SSAValue | None], properties: dict[str, Attribute]) -> TensorOp:
    kept = {name: value for name, value in layer.properties.items() if name != "operandSegmentSizes"}
    return type(layer).build_inferred(operands, {**kept, **properties}, layer.location)


def _reshaped(layer: ShuffleOp, words: Words) -> list[Dim]:
    """The dimensions of the reshape, -1 for the only one that is not known: it keeps the number of elements."""
    assert layer.shape is not None
    order = range(len(dims(layer.input.type))) if layer.first_transpose is None else integers(layer.first_transpose)
    before = layer.transposed_dims()
    found = words.of(layer.shape)
    lengths: list[Dim | None] = [None if word.dim == -1 else word.dim for word in found]
    if layer.places:
        lengths = [before[k] if dim == 0 and k < len(before) else dim for k, dim in enumerate(lengths)]
    if lengths.count(None) == 1 and 0 not in lengths:
        return [-1 if dim is None else dim for dim in lengths]
    own = [words.layers.length(layer.input, axis) for axis in order]
    asked = words.without_placeholders([word.value for word in found], own, copies=layer.places)
    message = f"layer {name_of(layer)}: the shape asks for another number of elements than there are"
    words.require(words.binary(Kind.EQUAL, words.product(asked), words.product(own)), message)
    return [words.size(value) if dim is None else dim for dim, value in zip(lengths, asked, strict=True)]


def _sliced(layer: SliceOp, words: Words) -> TensorOp | None:
    if layer.dynamic_stride is not None or layer.stride is None:
        return None
    strict = layer.mode.data is SliceMode.STRICT_BOUNDS
    if layer.dynamic_start is not None and not strict:
        return None
    starts = words.of_either(layer.dynamic_start, layer.start)
    sizes = words.of_either(layer.dynamic_size, layer.size)
    if starts is None or sizes is None:
        return None
    if strict:
        _check_bounds(layer, words, starts, sizes)
    properties: dict[str, Attribute] = {
        "start": DimsAttr.of([words.dim_of(word) for word in starts]),
        "size": DimsAttr.of([words.dim_of(word) for word in sizes]),
    }
    return _rebuild(layer, [layer.input, None, None, None, layer.fill], properties)


def _check_bounds(layer: SliceOp, words: Words, starts: Sequence[Word], sizes: Sequence[Word]) -> None:
    """A run goes on only where each axis is sliced inside of its length, or not at all."""
    assert layer.stride is not None
    zero, one = words.layers.number(0), words.layers.number(1)
    for axis, (start, size, stride) in enumerate(zip(starts, sizes, integers(layer.stride), strict=True)):
        if isinstance(start.dim, int) and isinstance(size.dim, int) and isinstance(dims(layer.input.type)[axis], int):
            continue  # the verifier has compared them
        length = words.layers.length(layer.input, axis)
        steps = words.binary(Kind.PROD, words.binary(Kind.SUB, size.value, one), words.layers.number(stride))
        last = words.binary(Kind.SUM, start.value, steps)
        inside = words.binary(Kind.EQUAL, size.value, zero)
        both = [words.binary(Kind.LESS, place, length) for place in (start.value, last)]
        both += [words.not_below_zero(place) for place in (start.value, last)]
        all_fit = both[0]
        for fits in both[1:]:
            all_fit = words.binary(Kind.AND, all_fit, fits)
        message = f"layer {name_of(layer)}: out of bounds slice on axis {axis}"
        words.require(words.binary(Kind.OR, inside, all_fit), message)
