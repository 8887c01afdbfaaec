"""Weights in the order in which the kernels read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirt.dialects.layout import arranged

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


def pack(kernel: Array, groups: int, columns: int, lanes: int, input_lanes: int, word: int = 1) -> Array:
    """`[k, c, h, w]` as `[group, panel, c / input_lanes, h, w, input_lanes / word, columns * lanes * word]`.

    A panel is what a tile of `columns` vectors of channels is multiplied with; zeros stand beyond the last channel.
    """
    split, sizes = kernel.reshape(groups, -1, *kernel.shape[1:]), {"k": columns * lanes, "i": input_lanes // word}
    return arranged(split, "g (p k) (c i v) h w", "g p c h w i (k v)", v=word, **sizes)


def pack_depthwise(kernel: Array, lanes: int) -> Array:
    """`[c, 1, h, w]` as `[c / lanes, h, w, lanes]`."""
    return arranged(kernel[:, 0], "(b l) h w", "b h w l", l=lanes)
