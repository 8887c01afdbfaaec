"""Shape arithmetic at import: small tensors whose elements follow from the shapes of the network's inputs.

`propagate` knows the ONNX ops that exporters use between `Shape` and `Reshape`, and computes them on arrays of `Number`s
(integers, symbolic dimensions, exact quotients, `None` for an element that only the run can tell).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import Attribute

from mlirt.dialects.tensor_types import is_float
from mlirt.frontend.onnx import dim_numbers as numbers_of
from mlirt.frontend.onnx.dim_numbers import Number, Ratio

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.object_]]
Rule: TypeAlias = "Callable[[Sequence[Numbers | None], Mapping[str, Any], bool], Sequence[Numbers] | None]"

LARGEST_SIZE = 512

# Stands for an optional input that is left out, where `None` is one whose elements are unknown.
ABSENT: Numbers = np.empty(0, np.object_)


def as_numbers(array: Array | None) -> Numbers | None:
    """The elements of a small array; `None` for a large one."""
    if array is None or array.size > LARGEST_SIZE or array.dtype.kind not in "iubf":
        return None
    result = np.empty(array.shape, np.object_)
    for index, element in np.ndenumerate(array):
        result[index] = numbers_of.from_float(float(element)) if array.dtype.kind == "f" else int(element)
    return result


def numbers_from(elements: Sequence[Number]) -> Numbers:
    """A one-dimensional array of numbers."""
    result = np.empty(len(elements), np.object_)
    for k, element in enumerate(elements):
        result[k] = element
    return result


def constant_of(numbers: Numbers, dtype: np.dtype[Any]) -> Array | None:
    """The array where every element is a plain number, else `None`."""
    elements = [element.value if isinstance(element, Ratio) else element for element in numbers.flat]
    if not all(isinstance(element, int | float) for element in elements):
        return None
    return np.array(elements).reshape(numbers.shape).astype(dtype)


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
    if results is None or any(result.size > LARGEST_SIZE for result in results):
        return None
    return results


def _elementwise(function: Callable[..., Number], arity: int) -> Rule:
    apply = np.frompyfunc(function, arity, 1)

    def rule(inputs: Sequence[Numbers | None], attributes: Mapping[str, Any], floats: bool) -> Sequence[Numbers] | None:
        known = _all_known(inputs)
        return None if known is None or len(known) != arity else [_array(apply(*known))]

    return rule


def _variadic(function: Callable[[Number, Number], Number]) -> Rule:
    apply = np.frompyfunc(function, 2, 1)

    def rule(inputs: Sequence[Numbers | None], attributes: Mapping[str, Any], floats: bool) -> Sequence[Numbers] | None:
        known = _all_known(inputs)
        if not known:
            return None
        result = known[0]
        for other in known[1:]:
            result = apply(result, other)
        return [_array(result)]

    return rule


def _divide(inputs: Sequence[Numbers | None], attributes: Mapping[str, Any], floats: bool) -> Sequence[Numbers] | None:
    return _elementwise(numbers_of.divide if floats else numbers_of.divide_integers, 2)(inputs, attributes, floats)


def _modulo(inputs: Sequence[Numbers | None], attributes: Mapping[str, Any], floats: bool) -> Sequence[Numbers] | None:
    return None if attributes.get("fmod") else _elementwise(numbers_of.remainder, 2)(inputs, attributes, floats)


def _cast(inputs: Sequence[Numbers | None], attributes: Mapping[str, Any], floats: bool) -> Sequence[Numbers] | None:
    target = attributes.get("to")
    if target in _BOOL_TYPES:
        return _elementwise(lambda a: numbers_of.logical_not(numbers_of.equal(a, 0)), 1)(inputs, attributes, floats)
    if target in _INTEGER_TYPES:
        return _elementwise(numbers_of.truncate, 1)(inputs, attributes, floats)
    return _identity(inputs, attributes, floats) if target in _FLOAT_TYPES else None


# onnx.TensorProto's numbers of the types, so that this module needs no onnx.
_FLOAT_TYPES, _INTEGER_TYPES, _BOOL_TYPES = frozenset({1, 11}), frozenset({6, 7, 12, 13}), frozenset({9})


def _identity(inputs: Sequence[Numbers | None], attributes: Mapping[str, Any], floats: bool) -> Sequence[Numbers] | None:
    return None if inputs[0] is None else [inputs[0]]


def _gather(inputs: Sequence[Numbers | None], attributes: Mapping[str, Any], floats: bool) -> Sequence[Numbers] | None:
    data, indices = inputs[0], _integers(inputs[1])
    return None if data is None or indices is None else [_array(np.take(data, indices, attributes.get("axis", 0)))]


def _concat(inputs: Sequence[Numbers | None], attributes: Mapping[str, Any], floats: bool) -> Sequence[Numbers] | None:
    known = _all_known(inputs)
    return None if known is None else [np.concatenate(known, attributes.get("axis", 1))]


def _split(inputs: Sequence[Numbers | None], attributes: Mapping[str, Any], floats: bool) -> Sequence[Numbers] | None:
    sizes = _parameter(inputs, attributes, 1, "split")
    if inputs[0] is None or sizes is None:
        return None
    return np.split(inputs[0], np.cumsum(sizes)[:-1], attributes.get("axis", 0))


def _slice(inputs: Sequence[Numbers | None], attributes: Mapping[str, Any], floats: bool) -> Sequence[Numbers] | None:
    data = inputs[0]
    starts, ends = (_parameter(inputs, attributes, k, name) for k, name in ((1, "starts"), (2, "ends")))
    if data is None or starts is None or ends is None:
        return None
    axes = _parameter(inputs, attributes, 3, "axes", default=list(range(len(starts))))
    steps = _parameter(inputs, attributes, 4, "steps", default=[1] * len(starts))
    if axes is None or steps is None:
        return None
    selection = [slice(None)] * data.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        stop = None if step < 0 and end < -data.shape[axis] else end
        selection[axis] = slice(start, stop, step)
    return [data[tuple(selection)]]


def _unsqueeze(inputs: Sequence[Numbers | None], attributes: Mapping[str, Any], floats: bool) -> Sequence[Numbers] | None:
    axes = _parameter(inputs, attributes, 1, "axes")
    return None if inputs[0] is None or axes is None else [np.expand_dims(inputs[0], tuple(axes))]


def _squeeze(inputs: Sequence[Numbers | None], attributes: Mapping[str, Any], floats: bool) -> Sequence[Numbers] | None:
    if inputs[0] is None:
        return None
    ones = [k for k, size in enumerate(inputs[0].shape) if size == 1]
    axes = _parameter(inputs, attributes, 1, "axes", default=ones)
    return None if axes is None else [np.squeeze(inputs[0], tuple(axes))]


def _reshape(inputs: Sequence[Numbers | None], attributes: Mapping[str, Any], floats: bool) -> Sequence[Numbers] | None:
    shape = _parameter(inputs, attributes, 1, "shape")
    if inputs[0] is None or shape is None:
        return None
    if not attributes.get("allowzero"):
        shape = [inputs[0].shape[k] if size == 0 else size for k, size in enumerate(shape)]
    return [inputs[0].reshape(shape)]


def _expand(inputs: Sequence[Numbers | None], attributes: Mapping[str, Any], floats: bool) -> Sequence[Numbers] | None:
    shape = _parameter(inputs, attributes, 1, "shape")
    if inputs[0] is None or shape is None or np.prod(shape, dtype=float) > LARGEST_SIZE:
        return None
    return [np.broadcast_to(inputs[0], np.broadcast_shapes(inputs[0].shape, tuple(shape)))]


def _transpose(inputs: Sequence[Numbers | None], attributes: Mapping[str, Any], floats: bool) -> Sequence[Numbers] | None:
    return None if inputs[0] is None else [np.transpose(inputs[0], attributes.get("perm"))]


def _constant_of_shape(inputs: Sequence[Numbers | None], attributes: Mapping[str, Any], floats: bool) -> Sequence[Numbers] | None:
    shape, fill = _integers(inputs[0]), as_numbers(np.asarray(attributes.get("value", 0.0)))
    if shape is None or fill is None or np.prod(shape, dtype=float) > LARGEST_SIZE:
        return None
    return [np.broadcast_to(fill.reshape(-1)[:1].reshape((1,) * len(shape)), [int(size) for size in shape])]


def _range(inputs: Sequence[Numbers | None], attributes: Mapping[str, Any], floats: bool) -> Sequence[Numbers] | None:
    bounds = [_integers(value) for value in inputs]
    if len(bounds) != 3 or any(bound is None or bound.size != 1 for bound in bounds):
        return None
    start, limit, step = (int(bound.item()) for bound in bounds if bound is not None)
    return [numbers_from(list(range(start, limit, step)[: LARGEST_SIZE + 1]))] if step else None


def _reduction(function: Callable[[Number, Number], Number], start: Number) -> Rule:
    def rule(inputs: Sequence[Numbers | None], attributes: Mapping[str, Any], floats: bool) -> Sequence[Numbers] | None:
        data = inputs[0]
        axes = _parameter(inputs, attributes, 1, "axes", default=[])
        if data is None or data.ndim > 1 or data.size == 0 or axes is None or (not axes and attributes.get("noop_with_empty_axes")):
            return None
        result = start if start is not None else data.flat[0]
        for element in data.flat if start is not None else data.flat[1:]:
            result = function(result, element)
        keep = data.ndim == 1 and attributes.get("keepdims", 1)
        return [numbers_from([result]) if keep else _array(result)]

    return rule


def _size(inputs: Sequence[Numbers | None], attributes: Mapping[str, Any], floats: bool) -> Sequence[Numbers] | None:
    return None if inputs[0] is None else [_array(inputs[0].size)]


def _shape(inputs: Sequence[Numbers | None], attributes: Mapping[str, Any], floats: bool) -> Sequence[Numbers] | None:
    return None if inputs[0] is None else [numbers_from(list(inputs[0].shape[attributes.get("start", 0) : attributes.get("end")]))]


_RULES: dict[str, Rule] = {
    "Add": _elementwise(numbers_of.add, 2),
    "Sub": _elementwise(numbers_of.subtract, 2),
    "Mul": _elementwise(numbers_of.multiply, 2),
    "Div": _divide,
    "Mod": _modulo,
    "Neg": _elementwise(numbers_of.negate, 1),
    "Abs": _elementwise(numbers_of.absolute, 1),
    "Floor": _elementwise(numbers_of.floor, 1),
    "Ceil": _elementwise(numbers_of.ceiling, 1),
    "Max": _variadic(numbers_of.largest),
    "Min": _variadic(numbers_of.smallest),
    "Sum": _variadic(numbers_of.add),
    "Equal": _elementwise(numbers_of.equal, 2),
    "Less": _elementwise(numbers_of.less, 2),
    "LessOrEqual": _elementwise(numbers_of.less_equal, 2),
    "Greater": _elementwise(lambda a, b: numbers_of.less(b, a), 2),
    "GreaterOrEqual": _elementwise(lambda a, b: numbers_of.less_equal(b, a), 2),
    "Not": _elementwise(numbers_of.logical_not, 1),
    "And": _elementwise(numbers_of.logical_and, 2),
    "Or": _elementwise(numbers_of.logical_or, 2),
    "Where": _elementwise(numbers_of.choose, 3),
    "Cast": _cast,
    "Identity": _identity,
    "Gather": _gather,
    "Concat": _concat,
    "Split": _split,
    "Slice": _slice,
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Reshape": _reshape,
    "Expand": _expand,
    "Transpose": _transpose,
    "ConstantOfShape": _constant_of_shape,
    "Range": _range,
    "ReduceProd": _reduction(numbers_of.multiply, 1),
    "ReduceSum": _reduction(numbers_of.add, 0),
    "ReduceMax": _reduction(numbers_of.largest, None),
    "ReduceMin": _reduction(numbers_of.smallest, None),
    "Size": _size,
    "Shape": _shape,
}


def _all_known(inputs: Sequence[Numbers | None]) -> list[Numbers] | None:
    known = [value for value in inputs if value is not None]
    return known if len(known) == len(inputs) else None


def _array(value: object) -> Numbers:
    """An object array; NumPy unwraps those without dimensions."""
    if isinstance(value, np.ndarray):
        return value
    result = np.empty((), np.object_)
    result[()] = value
    return result


def _integers(value: Numbers | None) -> np.ndarray[Any, np.dtype[np.int64]] | None:
    if value is None or not all(isinstance(element, int) for element in value.flat):
        return None
    return value.astype(np.int64)


def _parameter(
    inputs: Sequence[Numbers | None], attributes: Mapping[str, Any], position: int, name: str, default: list[int] | None = None
) -> list[int] | None:
    """A list of integers that is an attribute in old opsets and an input in new ones."""
    if name in attributes:
        return list(attributes[name])
    if position >= len(inputs) or inputs[position] is ABSENT:
        return default
    found = _integers(inputs[position])
    return None if found is None else [int(element) for element in found.reshape(-1)]
