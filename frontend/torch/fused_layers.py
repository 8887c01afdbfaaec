"""Layers that PyTorch has as one operator for speed alone, in the operators that they stand for.

`nn.TransformerEncoderLayer` calls one operator for all of itself under `torch.no_grad()`, which TorchDynamo captures
as it is; PyTorch has no decomposition of it.
"""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By operator, for `ExportedProgram.run_decompositions`."""
    return {torch.ops.aten._transformer_encoder_layer_fwd.default: _encoder_layer}


def _encoder_layer(
    x: Any, width: int, heads: int, qkv: Any, qkv_bias: Any, out: Any, out_bias: Any, use_gelu: bool, norm_first: bool,
    epsilon: float, scale_1: Any, shift_1: Any, scale_2: Any, shift_2: Any, inner: Any, inner_bias: Any, outer: Any,
    outer_bias: Any, mask: Any = None, mask_type: int | None = None,
) -> Any:  # fmt: skip
    """[batch, length, width] to the same."""

    def attention(x: Any) -> Any:
        parts = F.linear(x, qkv, qkv_bias).chunk(3, -1)
        return F.linear(_attended(parts, heads, _additive(mask, mask_type, x.dtype)), out, out_bias)

    def network(x: Any) -> Any:
        hidden = F.linear(x, inner, inner_bias)
        return F.linear(F.gelu(hidden) if use_gelu else F.relu(hidden), outer, outer_bias)

    def norm_1(x: Any) -> Any:
        return F.layer_norm(x, (width,), scale_1, shift_1, epsilon)

    def norm_2(x: Any) -> Any:
        return F.layer_norm(x, (width,), scale_2, shift_2, epsilon)

    if norm_first:
        x = x + attention(norm_1(x))
        return x + network(norm_2(x))
    x = norm_1(x + attention(x))
    return norm_2(x + network(x))


def _attended(parts: tuple[Any, ...], heads: int, mask: Any) -> Any:
    query, key, value = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in parts)
    return F.scaled_dot_product_attention(query, key, value, mask).transpose(1, 2).flatten(2)


def _additive(mask: Any, mask_type: int | None, dtype: Any) -> Any:
    """What is added to scores [batch, heads, queries, keys]: masked is each place that is not zero.

    The type says how the mask lies: 0 [queries, keys], 1 [batch, keys], 2 as the scores.
    """
    if mask is None:
        return None
    lies = mask[:, None, None] if mask_type == 1 else mask
    return torch.zeros_like(lies, dtype=dtype).masked_fill(lies.bool(), float("-inf"))
