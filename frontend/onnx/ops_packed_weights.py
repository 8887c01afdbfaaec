"""Weights of 2, 4 and 8 bits in blocks, several to a byte, as onnxruntime's quantisers pack them."""

from __future__ import annotations

import numpy as np

from mlirt.dialects.symbolic import Dim
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.node import Node

_DOMAIN = "com.microsoft"
_BITS = (2, 4, 8)


@onnx_op("MatMulNBits", domain=_DOMAIN)
def matmul_n_bits(net: Network, node: Node) -> Value:
    """`x W^T` with W [N, K] of few bits: each block along K has a scale and a zero point."""
    block, count, depth = (node.integer(name) for name in ("block_size", "N", "K"))
    bits = _bits(node, block)
    x, scales, zeros, bias = node.input(0), node.input(2), node.optional(3), node.optional(5)
    if node.optional(4) is not None:
        raise node.unsupported("a g_idx, which reorders the blocks, is not known; quantise without act-order")
    if node.integer("weight_prepacked", 0):
        raise node.unsupported("weights that are packed for one device are not known")
    blocks = -(-depth // block)
    shape: list[Dim] = [count, blocks]
    codes = _unpacked(net, layers.reshape(net, node.input(1), [*shape, block * bits // 8]), bits)
    if zeros is not None and zeros.element_name == "uint8":
        packed = layers.reshape(net, zeros, [count, -(-blocks * bits // 8)])
        zeros = layers.along(net, _unpacked(net, packed, bits), 1, 0, blocks)
    scales = layers.reshape(net, scales, shape)
    zeros = None if zeros is None else layers.reshape(net, zeros, shape)
    weights = _dequantized(net, codes, scales, zeros, bits)
    weights = layers.along(net, layers.reshape(net, weights, [count, blocks * block]), 1, 0, depth)
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
    bits = _bits(node, block)
    gathered, along = node.axis("gather_axis", 0, data.rank), node.axis("quantize_axis", 1, data.rank)
    if data.element_name != "uint8" or gathered or along != data.rank - 1 or not along:
        raise node.unsupported("only rows (gather_axis 0) of bytes with blocks along the last axis are known")
    given = [data, scales] if zeros is None else [data, scales, zeros]
    rows = [net.emit("gather", [table, indices], mode="default", axis=0) for table in given]
    codes = _unpacked(net, rows[0], bits)
    *outer, width = codes.dims
    blocks = rows[1].dims[-1]
    points = None if zeros is None else layers.along(net, _unpacked(net, rows[2], bits), codes.rank - 1, 0, blocks)
    if not isinstance(width, int) or not isinstance(blocks, int):
        raise node.unsupported(f"the width {width} of a table must be known")
    padded = layers.pad(net, codes, [0] * codes.rank, [*[0] * len(outer), blocks * block - width], "constant", None)
    by_blocks = layers.reshape(net, padded, [*outer, blocks, block])
    numbers = _dequantized(net, by_blocks, rows[1], points, bits)
    return layers.along(net, layers.reshape(net, numbers, [*outer, blocks * block]), codes.rank - 1, 0, width)


def _bits(node: Node, block: int) -> int:
    bits = node.integer("bits", 4)
    if bits not in _BITS:
        raise node.unsupported(f"weights of {bits} bits are not known, only of 2, 4 and 8")
    if block < 16 or block & (block - 1):
        raise node.invalid(f"expected a block_size of 16 or a larger power of 2, got {block}")
    return bits


def _unpacked(net: Network, packed: Value, bits: int) -> Value:
    """The numbers in bytes, as uint8 where they are known and else as int32: the lowest bits of a byte come first."""
    if bits == 8:
        return packed
    if packed.array is not None:
        parts = [(packed.array >> np.uint8(shift)) & np.uint8((1 << bits) - 1) for shift in range(0, 8, bits)]
        flat = np.stack(parts, axis=-1).reshape(*packed.array.shape[:-1], -1)
        return net.constant(flat, packed.hint)
    wide = layers.cast(net, packed, "int32")
    ones = layers.scalar_like(net, 1 << bits, wide)
    shifted = [wide]
    for _ in range(bits, 8, bits):
        shifted.append(layers.binary(net, "floor_div", shifted[-1], ones))
    pieces = [layers.unsqueeze(net, layers.binary(net, "mod", part, ones), [wide.rank]) for part in shifted]
    joined = layers.concatenate(net, pieces, wide.rank)
    return layers.reshape(net, joined, [*wide.dims[:-1], wide.dims[-1] * len(pieces)])


def _dequantized(net: Network, codes: Value, scales: Value, zeros: Value | None, bits: int) -> Value:
    """(codes - zeros) * scales for codes [.., blocks, block], with one scale and zero point a block."""
    numbers = layers.cast(net, codes, scales.element)
    if zeros is None:
        points = layers.scalar_like(net, 1 << (bits - 1), numbers)
    else:
        points = layers.unsqueeze(net, layers.cast(net, zeros, scales.element), [zeros.rank])
    shifted = layers.binary(net, "sub", numbers, points)
    return layers.binary(net, "prod", shifted, layers.unsqueeze(net, scales, [scales.rank]))
