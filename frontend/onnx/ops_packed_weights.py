"""Weights of 2, 4 and 8 bits in blocks, several to a byte, as onnxruntime's quantisers pack them."""

from __future__ import annotations

import numpy as np

from mlirt.dialects.packed_codes import BITS, middle, packed, unpacked
from mlirt.dialects.symbolic import Dim
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.node import Node
from mlirt.frontend.onnx.packed_matrices import shifted

_DOMAIN = "com.microsoft"


@onnx_op("MatMulNBits", domain=_DOMAIN)
def matmul_n_bits(net: Network, node: Node) -> Value:
    """`x W^T` with W [N, K] of few bits: each block along K has a scale and a zero point.

    `accuracy_level` lets a runtime compute with fewer bits than x has; it is never made use of.
    """
    block, count, depth = (node.integer(name) for name in ("block_size", "N", "K"))
    bits = _bits(node, block)
    x, scales, zeros, bias = node.input(0), node.input(2), node.optional(3), node.optional(5)
    if node.optional(4) is not None:
        raise node.unsupported("a g_idx, which reorders the blocks, is not known; quantise without act-order")
    if node.integer("weight_prepacked", 0):
        raise node.unsupported("weights that are packed for one device are not known")
    blocks = -(-depth // block)
    shape: list[Dim] = [count, blocks]
    codes = layers.reshape(net, node.input(1), [count, blocks * block * bits // 8])
    if zeros is not None and zeros.element_name == "uint8":
        zeros = _points(net, node, layers.reshape(net, zeros, [count, -(-blocks * bits // 8)]), bits, blocks)
    scales = layers.reshape(net, scales, shape)
    zeros = None if zeros is None else layers.reshape(net, zeros, shape)
    weights = net.emit("dequantize_blocks", [codes, scales, zeros], bits=bits, block=block, depth=depth)
    weights = layers.with_rank(net, layers.cast(net, weights, x.element), x.rank)
    result = layers.matrix_multiply(net, x, weights, rhs_op="transpose")
    return result if bias is None else layers.binary(net, "sum", result, bias)


@onnx_op("GatherBlockQuantized", domain=_DOMAIN)
def gather_block_quantized(net: Network, node: Node) -> Value:
    """Rows of a table of few bits, whose blocks along its last axis have scales and zero points.

    The table stays packed: only the rows that are read become numbers.
    """
    data, indices, scales, zeros = node.input(0), node.input(1), node.input(2), node.optional(3)
    block = node.integer("block_size", 128)
    bits = _bits(node, block) if data.narrow is None else data.narrow.bits
    gathered, along = node.axis("gather_axis", 0, data.rank), node.axis("quantize_axis", 1, data.rank)
    if gathered or along != data.rank - 1 or not along:
        raise node.unsupported("only rows (gather_axis 0) with blocks along the last axis are known")
    (*_, width), blocks = data.dims, scales.dims[-1]
    if not isinstance(width, int) or not isinstance(blocks, int):
        raise node.unsupported(f"the width {width} of a table must be known")
    if data.narrow is not None:
        depth = width
        data, zeros = _codes_of_elements(net, node, data, zeros, block)
    elif data.element_name == "uint8":
        depth = width * 8 // bits
        missing = blocks * block * bits // 8 - width
        if missing:
            data = layers.pad(net, data, [0] * data.rank, [*[0] * (data.rank - 1), missing], "constant", None)
        zeros = None if zeros is None else _points(net, node, zeros, bits, blocks)
    else:
        raise node.unsupported(f"a table of {data.element_name} is not known, only one of bytes, int4 or uint4")
    rows = [
        None if one is None else net.emit("gather", [one, indices], mode="default", axis=0)
        for one in (data, scales, zeros)
    ]
    return net.emit("dequantize_blocks", rows, bits=bits, block=block, depth=depth)


def _codes_of_elements(
    net: Network, node: Node, data: Value, zeros: Value | None, block: int
) -> tuple[Value, Value | None]:
    """A constant table of int4 or uint4 as packed codes, and its zero points, which are 0 where there are none."""
    assert data.narrow is not None
    array, points = data.array, None if zeros is None else zeros.array
    if not data.narrow.is_integer or array is None or (zeros is not None and points is None):
        raise node.unsupported("a table of narrow elements, and its zero points, must be constant integers")
    offset = middle(data.narrow.bits) if array.dtype.kind == "i" else 0
    codes = net.constant(packed(shifted(array, offset), block, data.narrow.bits), data.hint)
    if points is None:
        blocks = -(-array.shape[-1] // block)
        points = np.zeros((*array.shape[:-1], blocks), array.dtype)
    return codes, net.constant(shifted(points, offset))


def _bits(node: Node, block: int) -> int:
    bits = node.integer("bits", 4)
    if bits not in BITS:
        raise node.unsupported(f"weights of {bits} bits are not known, only of 2, 4 and 8")
    if block < 16 or block & (block - 1):
        raise node.invalid(f"expected a block_size of 16 or a larger power of 2, got {block}")
    return bits


def _points(net: Network, node: Node, zeros: Value, bits: int, blocks: int) -> Value:
    """The zero points in bytes, one a block."""
    if bits == 8:
        return zeros
    if zeros.array is None:
        raise node.unsupported("zero points of less than 8 bits must be constants")
    return net.constant(np.ascontiguousarray(unpacked(zeros.array, bits)[..., :blocks]), zeros.hint)
