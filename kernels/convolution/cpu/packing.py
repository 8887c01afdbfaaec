"""Weights in the order in which the kernels read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


def pack(kernel: Array, groups: int, columns: int, lanes: int, input_lanes: int, word: int = 1) -> Array:
    """`[k, c, h, w]` as `[group, panel, c / input_lanes, h, w, input_lanes / word, columns * lanes, word]`.

    A panel is what a tile of `columns` vectors of channels is multiplied with; zeros stand beyond the last channel.
    """
    import numpy as np

    outputs, inputs, height, width = kernel.shape
    per_group = outputs // groups
    size = columns * lanes
    panels, blocks = -(-per_group // size), -(-inputs // input_lanes)
    padded = np.zeros((groups, panels * size, blocks * input_lanes, height, width), kernel.dtype)
    padded[:, :per_group, :inputs] = kernel.reshape(groups, per_group, inputs, height, width)
    split = padded.reshape(groups, panels, size, blocks, input_lanes, height, width)
    ordered = split.transpose(0, 1, 3, 5, 6, 4, 2)
    words = ordered.reshape(*ordered.shape[:5], input_lanes // word, word, size)
    return np.ascontiguousarray(np.swapaxes(words, -1, -2).reshape(ordered.shape))


def pack_depthwise(kernel: Array, lanes: int) -> Array:
    """`[c, 1, h, w]` as `[c / lanes, h, w, lanes]`."""
    import numpy as np

    channels, _, height, width = kernel.shape
    blocks = -(-channels // lanes)
    padded = np.zeros((blocks * lanes, height, width), kernel.dtype)
    padded[:channels] = kernel[:, 0]
    return np.ascontiguousarray(padded.reshape(blocks, lanes, height, width).transpose(0, 2, 3, 1))
