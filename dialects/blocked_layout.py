"""Blocked tensors: channels in blocks of a vector's width, `[n, c, h, w]` as `[n, ceil(c / b), h, w, b]`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import Attribute

from mlirt.dialects.layout import arranged
from mlirt.dialects.symbolic import ceil_div
from mlirt.dialects.tensor_types import Tensor, channels, dims, element_of, tensor

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


def blocked(plain: Attribute, lanes: int, halo: Sequence[int] = (), fill: int = 0) -> Tensor:
    """The blocked type that holds a plain rank-4 tensor, with cells around height and width whose bytes are `fill`."""
    batch, count, height, width = dims(plain)
    cells = halo if any(halo) else ()
    space = [batch, ceil_div(count, lanes), height, width, lanes]
    return tensor(element_of(plain), space, count, cells, fill=fill if cells else 0)


def plain(of: Attribute) -> Tensor:
    """The plain type with the elements of a tensor: no blocks, no halo."""
    count = channels(of)
    if count is None:
        return tensor(element_of(of), dims(of))
    batch, _, height, width, _ = dims(of)
    return tensor(element_of(of), [batch, count, height, width])


def is_blocked(of: Attribute) -> bool:
    return channels(of) is not None


def block_array(array: Array, lanes: int) -> Array:
    """A plain `[n, c, h, w]` array in blocks; lanes beyond the last channel are zero."""
    import numpy as np

    return np.ascontiguousarray(arranged(array, "n (c l) h w", "n c h w l", l=lanes))


def unblock_array(array: Array, count: int) -> Array:
    """The plain `[n, count, h, w]` array of a blocked one."""
    import numpy as np

    return np.ascontiguousarray(arranged(array, "n c h w l", "n (c l) h w")[:, :count])
