"""Shape refinement: what shape arithmetic tells about a layer, a constant in its place or its shapes as properties."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from mlirt.dialects.context import weights_of
from mlirt.dialects.known_shapes import with_known_shapes
from mlirt.dialects.locations import name_of
from mlirt.dialects.shape_arithmetic import ShapeArithmetic, numbers
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import dims, element_of, is_unknown, numpy_dtype
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.passes.cleanup.rewriting import insert_before, replace


def refine(layer: TensorOp, arithmetic: ShapeArithmetic, ctx: Context) -> TensorOp | None:
    """The layer as it is now; None where a constant stands in its place."""
    constant = _as_constant(layer, arithmetic, ctx)
    if constant is not None:
        replace(layer, insert_before(layer, constant))
        return None
    refined = with_known_shapes(layer, arithmetic)
    if refined is not None:
        insert_before(layer, refined)
        replace(layer, *refined.results)
        layer = refined
    refine_results(layer)
    return layer


def _as_constant(layer: TensorOp, arithmetic: ShapeArithmetic, ctx: Context) -> ConstantOp | None:
    if len(layer.results) != 1:
        return None
    elements = arithmetic.elements(layer.results[0])
    known = None if elements is None else numbers(elements)
    if known is None:
        return None
    import numpy as np

    of = layer.results[0].type
    array = np.array(known, numpy_dtype(element_of(of))).reshape([len(known)] if dims(of) else [])
    return ConstantOp.from_array(array, weights_of(ctx), name_of(layer))


def refine_results(layer: TensorOp) -> None:
    """Narrow the result types to what the operands' types now say."""
    try:
        inferred = layer.infer()
    except VerifyException:
        return
    for result, new in zip(list(layer.results), inferred, strict=True):
        if result.type != new and _says_more(new, result.type):
            Rewriter.replace_value_with_new_type(result, new)


def _says_more(new: Attribute, old: Attribute) -> bool:
    """Whether a type knows each length that another knows, and one more."""
    pairs = list(zip(dims(new), dims(old), strict=True))
    kept = all(is_unknown(before) or not is_unknown(after) for after, before in pairs)
    numbers_kept = all(not isinstance(before, int) or before == after for after, before in pairs)
    gained = any(_rank_of(after) > _rank_of(before) for after, before in pairs)
    return kept and numbers_kept and gained


def _rank_of(length: Dim) -> int:
    """How much is known: nothing, a name, a number."""
    return 2 if isinstance(length, int) else 0 if is_unknown(length) else 1


def update_results(function: FuncOp) -> None:
    """Let the function's type follow the types that it returns."""
    last = function.body.block.last_op
    if isinstance(last, ReturnOp):
        types = [value.type for value in last.operands]
        function.function_type = FunctionType.from_lists(list(function.function_type.inputs), types)
