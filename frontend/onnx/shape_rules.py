"""What single ops do to arrays of `Number`s: one function per ONNX op that exporters use in shape arithmetic.

A rule gets the elements of the inputs, the attributes as plain values, and whether the first input holds floats; it
answers with the elements of the results, or with `None` where they do not follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from mlirt.frontend.importing import dim_numbers
from mlirt.frontend.importing.dim_numbers import Number
from mlirt.frontend.importing.number_arrays import (
    ABSENT,
    MAX_SIZE,
    Numbers,
    as_numbers,
    number_array,
    numbers_from,
    plain_integers,
)

Inputs: TypeAlias = "Sequence[Numbers | None]"
Attributes: TypeAlias = "Mapping[str, Any]"
Outputs: TypeAlias = "Sequence[Numbers] | None"
Rule: TypeAlias = "Callable[[Inputs, Attributes, bool], Outputs]"


def elementwise(function: Callable[..., Number], arity: int) -> Rule:
    apply = np.frompyfunc(function, arity, 1)

    def rule(inputs: Inputs, attributes: Attributes, floats: bool) -> Outputs:
        known = _all_known(inputs)
        return None if known is None or len(known) != arity else [number_array(apply(*known))]

    return rule


def variadic(function: Callable[[Number, Number], Number]) -> Rule:
    apply = np.frompyfunc(function, 2, 1)

    def rule(inputs: Inputs, attributes: Attributes, floats: bool) -> Outputs:
        known = _all_known(inputs)
        if not known:
            return None
        result = known[0]
        for other in known[1:]:
            result = number_array(apply(result, other))
        return [result]

    return rule


def divide(inputs: Inputs, attributes: Attributes, floats: bool) -> Outputs:
    return elementwise(dim_numbers.divide if floats else dim_numbers.divide_integers, 2)(inputs, attributes, floats)


def modulo(inputs: Inputs, attributes: Attributes, floats: bool) -> Outputs:
    return None if attributes.get("fmod") else elementwise(dim_numbers.remainder, 2)(inputs, attributes, floats)


def cast(inputs: Inputs, attributes: Attributes, floats: bool) -> Outputs:
    target = attributes.get("to")
    if target in _BOOL_TYPES:
        return elementwise(dim_numbers.is_true, 1)(inputs, attributes, floats)
    if target in _INTEGER_TYPES:
        return elementwise(dim_numbers.truncate, 1)(inputs, attributes, floats)
    return identity(inputs, attributes, floats) if target in _FLOAT_TYPES else None


# onnx.TensorProto's numbers of the types, so that this module needs no onnx.
_FLOAT_TYPES, _INTEGER_TYPES, _BOOL_TYPES = frozenset({1, 11}), frozenset({6, 7, 12, 13}), frozenset({9})


def identity(inputs: Inputs, attributes: Attributes, floats: bool) -> Outputs:
    return None if inputs[0] is None else [inputs[0]]


def gather(inputs: Inputs, attributes: Attributes, floats: bool) -> Outputs:
    data, indices = inputs[0], plain_integers(inputs[1])
    if data is None or indices is None:
        return None
    return [number_array(np.take(data, indices, attributes.get("axis", 0)))]


def concat(inputs: Inputs, attributes: Attributes, floats: bool) -> Outputs:
    known = _all_known(inputs)
    return None if known is None else [np.concatenate(known, attributes.get("axis", 1))]


def split(inputs: Inputs, attributes: Attributes, floats: bool) -> Outputs:
    sizes = _parameter(inputs, attributes, 1, "split")
    if inputs[0] is None or sizes is None:
        return None
    return np.split(inputs[0], np.cumsum(sizes)[:-1], attributes.get("axis", 0))


def slice_(inputs: Inputs, attributes: Attributes, floats: bool) -> Outputs:
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


def unsqueeze(inputs: Inputs, attributes: Attributes, floats: bool) -> Outputs:
    axes = _parameter(inputs, attributes, 1, "axes")
    return None if inputs[0] is None or axes is None else [np.expand_dims(inputs[0], tuple(axes))]


def squeeze(inputs: Inputs, attributes: Attributes, floats: bool) -> Outputs:
    if inputs[0] is None:
        return None
    ones = [k for k, size in enumerate(inputs[0].shape) if size == 1]
    axes = _parameter(inputs, attributes, 1, "axes", default=ones)
    return None if axes is None else [np.squeeze(inputs[0], tuple(axes))]


def reshape(inputs: Inputs, attributes: Attributes, floats: bool) -> Outputs:
    shape = _parameter(inputs, attributes, 1, "shape")
    if inputs[0] is None or shape is None:
        return None
    if not attributes.get("allowzero"):
        shape = [inputs[0].shape[k] if size == 0 else size for k, size in enumerate(shape)]
    return [inputs[0].reshape(shape)]


def expand(inputs: Inputs, attributes: Attributes, floats: bool) -> Outputs:
    shape = _parameter(inputs, attributes, 1, "shape")
    if inputs[0] is None or shape is None or np.prod(shape, dtype=float) > MAX_SIZE:
        return None
    return [np.broadcast_to(inputs[0], np.broadcast_shapes(inputs[0].shape, tuple(shape)))]


def transpose(inputs: Inputs, attributes: Attributes, floats: bool) -> Outputs:
    return None if inputs[0] is None else [np.transpose(inputs[0], attributes.get("perm"))]


def constant_of_shape(inputs: Inputs, attributes: Attributes, floats: bool) -> Outputs:
    shape, fill = plain_integers(inputs[0]), as_numbers(np.asarray(attributes.get("value", 0.0)))
    if shape is None or fill is None or np.prod(shape, dtype=float) > MAX_SIZE:
        return None
    return [np.broadcast_to(fill.reshape(-1)[:1].reshape((1,) * len(shape)), [int(size) for size in shape])]


def range_(inputs: Inputs, attributes: Attributes, floats: bool) -> Outputs:
    bounds = [plain_integers(value) for value in inputs]
    if len(bounds) != 3 or any(bound is None or bound.size != 1 for bound in bounds):
        return None
    start, limit, step = (int(bound.item()) for bound in bounds if bound is not None)
    return [numbers_from(list(range(start, limit, step)[: MAX_SIZE + 1]))] if step else None


def reduction(function: Callable[[Number, Number], Number], start: Number) -> Rule:
    def rule(inputs: Inputs, attributes: Attributes, floats: bool) -> Outputs:
        data = inputs[0]
        axes = _parameter(inputs, attributes, 1, "axes", default=[])
        if (
            data is None
            or data.ndim > 1
            or data.size == 0
            or axes is None
            or (not axes and attributes.get("noop_with_empty_axes"))
        ):
            return None
        result = start if start is not None else data.flat[0]
        for element in data.flat if start is not None else data.flat[1:]:
            result = function(result, element)
        keep = data.ndim == 1 and attributes.get("keepdims", 1) == 1
        return [numbers_from([result]) if keep else number_array(result)]

    return rule


def size(inputs: Inputs, attributes: Attributes, floats: bool) -> Outputs:
    return None if inputs[0] is None else [number_array(inputs[0].size)]


def shape(inputs: Inputs, attributes: Attributes, floats: bool) -> Outputs:
    return (
        None
        if inputs[0] is None
        else [numbers_from(list(inputs[0].shape[attributes.get("start", 0) : attributes.get("end")]))]
    )


def _all_known(inputs: Sequence[Numbers | None]) -> list[Numbers] | None:
    known = [value for value in inputs if value is not None]
    return known if len(known) == len(inputs) else None


def _parameter(
    inputs: Sequence[Numbers | None],
    attributes: Mapping[str, Any],
    position: int,
    name: str,
    default: list[int] | None = None,
) -> list[int] | None:
    """A list of integers that is an attribute in old opsets and an input in new ones."""
    if name in attributes:
        return list(attributes[name])
    if position >= len(inputs) or inputs[position] is ABSENT:
        return default
    found = plain_integers(inputs[position])
    return None if found is None else [int(element) for element in found.reshape(-1)]
