"""Constant matrices of small integers with a scale for each block, as codes that stay packed."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import UnitAttr

from mlirt.dialects.packed_codes import middle, packed
from mlirt.dialects.tensor_types import is_float
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.quantize import DequantizeOp
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.importing.number_arrays import Array
from mlirt.frontend.onnx.node import Node

_BYTE = 8
FLOAT4 = "float4_e2m1fn"


def dequantized_blocks(net: Network, node: Node, x: Value, scale: Value, zero: Value | None, axis: int) -> Value | None:
    """The numbers of a constant matrix, by blocks along `axis`; None for other tensors and sizes."""
    block = node.integer("block_size", 0)
    bits = x.narrow.bits if x.narrow is not None else _BYTE
    if x.rank != 2 or x.element_name not in ("int8", "uint8") or not is_float(scale.element):
        return None
    if block < 1 or block * bits % _BYTE or scale.rank != 2:
        return None
    arrays = [x.array, _known(net, scale), None if zero is None else zero.array]
    if arrays[0] is None or arrays[1] is None or (zero is not None and arrays[2] is None):
        return None
    stored, scales, points = (None if one is None else one if axis else one.T for one in arrays)
    assert stored is not None
    assert scales is not None
    rows, depth = stored.shape
    expected = (rows, -(-depth // block))
    if scales.shape != expected or (points is not None and points.shape != expected):
        raise node.invalid(
            f"expected scales and zero points of {expected[1]} blocks of {block} for each of {rows} "
            f"{'rows' if axis else 'columns'}"
        )
    if x.narrow is not None and not x.narrow.is_integer:
        if x.narrow.name != FLOAT4 or zero is not None:
            return None
        given = [net.constant(packed(stored, block, bits), x.hint), net.constant(np.ascontiguousarray(scales)), None]
        numbers = net.emit("dequantize_blocks", given, bits=bits, block=block, depth=depth, float4=UnitAttr())
        return numbers if axis else layers.transpose(net, numbers, [1, 0])
    offset = middle(bits) if stored.dtype.kind == "i" else 0
    codes = net.constant(packed(shifted(stored, offset), block, bits), x.hint)
    shift = None if points is None else net.constant(shifted(points, offset))
    if points is None and not offset:  # unsigned integers stand for themselves
        shift = net.constant(np.zeros(expected, np.uint8))
    given = [codes, net.constant(np.ascontiguousarray(scales), scale.hint), shift]
    numbers = net.emit("dequantize_blocks", given, bits=bits, block=block, depth=depth)
    return numbers if axis else layers.transpose(net, numbers, [1, 0])


def _known(net: Network, scale: Value) -> Array | None:
    """Scales that are constants, or 8-bit floats with a scale of their own, as those of 4-bit floats are."""
    owner = None if scale.array is not None or scale.ssa is None else scale.ssa.owner
    if not isinstance(owner, DequantizeOp):
        return scale.array
    made = [one.owner for one in owner.operands]
    arrays = [one.array(net.store) for one in made if isinstance(one, ConstantOp)]
    return np.asarray(owner.reference(*arrays)[0]) if len(arrays) == len(made) else None


def shifted(stored: Array, offset: int) -> Array:
    """Integers as codes, which are not negative."""
    return np.ascontiguousarray((stored.astype(np.int16) + offset).astype(np.uint8))
