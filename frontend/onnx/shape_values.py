"""Shape arithmetic at import: small tensors whose elements follow from the shapes of the network's inputs.

`propagate` knows the ONNX ops that exporters use between `Shape` and `Reshape`, and computes them on arrays of
`Number`s (integers, symbolic dimensions, exact quotients, `None` for an element that only the run can tell).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.ir import Attribute

from mlirt.dialects.tensor_types import is_float
from mlirt.frontend.importing import dim_numbers
from mlirt.frontend.importing.number_arrays import MAX_SIZE, Numbers, bounded
from mlirt.frontend.onnx import shape_rules as rules
from mlirt.frontend.onnx.shape_rules import Rule


def has_rule(op_type: str) -> bool:
    """Whether an op is shape arithmetic at all."""
    return op_type in _RULES


def propagate(
    op_type: str, inputs: Sequence[Numbers | None], attributes: Mapping[str, Any], element: Attribute
) -> Sequence[Numbers] | None:
    """The elements of the results of a node, or `None` where the op is no shape arithmetic or its operands are unknown.

    `attributes` are plain Python values; `element` is the element type of the first input: integers divide rounding
    toward zero, floats exactly.
    """
    rule = _RULES.get(op_type)
    if rule is None:
        return None
    try:
        results = rule(inputs, attributes, is_float(element))
    except (ValueError, IndexError, TypeError):
        return None  # the handler of the op says what is wrong with it
    if results is None or any(result.size > MAX_SIZE for result in results):
        return None
    return [bounded(result) for result in results]


_RULES: dict[str, Rule] = {
    "Add": rules.elementwise(dim_numbers.add, 2),
    "Sub": rules.elementwise(dim_numbers.subtract, 2),
    "Mul": rules.elementwise(dim_numbers.multiply, 2),
    "Div": rules.divide,
    "Mod": rules.modulo,
    "Neg": rules.elementwise(dim_numbers.negate, 1),
    "Abs": rules.elementwise(dim_numbers.absolute, 1),
    "Floor": rules.elementwise(dim_numbers.floor, 1),
    "Ceil": rules.elementwise(dim_numbers.ceiling, 1),
    "Max": rules.variadic(dim_numbers.largest),
    "Min": rules.variadic(dim_numbers.smallest),
    "Sum": rules.variadic(dim_numbers.add),
    "Equal": rules.elementwise(dim_numbers.equal, 2),
    "Less": rules.elementwise(dim_numbers.less, 2),
    "LessOrEqual": rules.elementwise(dim_numbers.less_equal, 2),
    "Greater": rules.elementwise(dim_numbers.greater, 2),
    "GreaterOrEqual": rules.elementwise(dim_numbers.greater_equal, 2),
    "Not": rules.elementwise(dim_numbers.logical_not, 1),
    "And": rules.elementwise(dim_numbers.logical_and, 2),
    "Or": rules.elementwise(dim_numbers.logical_or, 2),
    "Where": rules.elementwise(dim_numbers.choose, 3),
    "Cast": rules.cast,
    "Identity": rules.identity,
    "Gather": rules.gather,
    "Concat": rules.concat,
    "Split": rules.split,
    "Slice": rules.slice_,
    "Unsqueeze": rules.unsqueeze,
    "Squeeze": rules.squeeze,
    "Reshape": rules.reshape,
    "Expand": rules.expand,
    "Transpose": rules.transpose,
    "ConstantOfShape": rules.constant_of_shape,
    "Range": rules.range_,
    "ReduceProd": rules.reduction(dim_numbers.multiply, 1),
    "ReduceSum": rules.reduction(dim_numbers.add, 0),
    "ReduceMax": rules.reduction(dim_numbers.largest, None),
    "ReduceMin": rules.reduction(dim_numbers.smallest, None),
    "Size": rules.size,
    "Shape": rules.shape,
}
