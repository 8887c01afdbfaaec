"""Modules with operators and options that networks of packages seldom have: masks, indices, states, types."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false, reportUntypedBaseClass=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch_module_cases import BATCH, SEQUENCE, SIGNAL, Inputs, ModuleCase, channels, features, image, several, tokens
from torch_written_functions import (
    attention,
    condition,
    counted,
    distances,
    einsums,
    functions,
    in_order,
    indexed,
    interpolated,
    last_of,
    looped,
    padded,
    pooled,
    sampled,
    statistics,
    triangles,
    typed,
    windows,
)


class Written(nn.Module):
    """A function of tensors as a module."""

    def __init__(self, function: Callable[..., Any], *parts: Any) -> None:
        super().__init__()
        self.function, self.parts = function, nn.ModuleList(parts)

    def forward(self, x: Any, y: Any = None) -> Any:
        """The function of the parts and the inputs, of which there are one or two."""
        return self.function(*self.parts, x) if y is None else self.function(*self.parts, x, y)


def integers(least: int, most: int, *sizes: int, dtype: Any = torch.int64) -> Inputs:
    """[batch, length, *sizes]."""
    return lambda batch, length: (torch.randint(least, most, (batch, length, *sizes), dtype=dtype),)


def masks() -> Inputs:
    """[batch, length] of truth values, the first of each row true."""

    def drawn(batch: int, length: int) -> tuple[Any, ...]:
        mask = torch.rand(batch, length) > 0.4
        mask[:, 0] = True
        return (mask,)

    return drawn


class Causal(nn.Module):
    """Attention written out, with a causal mask from lengths and a buffer of positions."""

    def __init__(self, width: int, heads: int, most: int) -> None:
        super().__init__()
        self.heads = heads
        self.packed = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width)
        self.register_buffer("mask", torch.full((most, most), float("-inf")).triu(1))

    def forward(self, x: Any) -> Any:
        """[batch, length, width]."""
        batch, length, width = x.shape
        q, k, v = self.packed(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5 + self.mask[:length, :length]
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width))


class Rotary(nn.Module):
    """Rotary positions with tables made at each call."""

    def forward(self, x: Any) -> Any:
        """[batch, length, width]."""
        half = x.shape[-1] // 2
        rates = 1.0 / (100.0 ** (torch.arange(0, half, dtype=torch.float32) / half))
        angles = torch.outer(torch.arange(x.shape[1], dtype=torch.float32), rates)
        cos, sin = torch.cat([angles, angles], -1).cos(), torch.cat([angles, angles], -1).sin()
        left, right = x.chunk(2, -1)
        return x * cos + torch.cat([-right, left], -1) * sin


class Router(nn.Module):
    """A mixture of experts: the two best of four, each computed for all tokens and weighted."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(width, 8), nn.SiLU(), nn.Linear(8, width)) for _ in "1234")

    def forward(self, x: Any) -> Any:
        """[batch, length, width]."""
        weights, chosen = self.gate(x).softmax(-1).topk(2, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        dense = torch.zeros(*x.shape[:-1], 4).scatter(-1, chosen, weights)
        stacked = torch.stack([expert(x) for expert in self.experts], -2)
        return (stacked * dense.unsqueeze(-1)).sum(-2), chosen


class ConvNext(nn.Module):
    """A block of ConvNeXt in channels-last order with layer scale."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.depth = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.full((width,), 0.5))

    def forward(self, x: Any) -> Any:
        """[batch, width, length, size]."""
        y = self.depth(x).permute(0, 2, 3, 1)
        y = self.down(F.gelu(self.up(self.norm(y)))) * self.scale
        return x + y.permute(0, 3, 1, 2)


class Lstms(nn.Module):
    """A recurrent network called with states of its own, whose states are results."""

    def __init__(self, kind: Any, **options: Any) -> None:
        super().__init__()
        self.cell = kind(6, 4, 2, batch_first=True, **options)
        self.start = nn.Parameter(torch.randn(2 * (2 if options.get("bidirectional") else 1), 1, 4))

    def forward(self, x: Any) -> Any:
        """[batch, length, 6]."""
        start = self.start.expand(-1, x.shape[0], -1).contiguous()
        is_lstm = isinstance(self.cell, nn.LSTM)
        y, last = self.cell(x, (start, start * 0.5) if is_lstm else start)
        return {"y": y, "last": last}


class InPlace(nn.Module):
    """Operators that write to their tensors, slices that are assigned to."""

    def forward(self, x: Any) -> Any:
        """[batch, length, width]."""
        y = x.clone()
        y[:, 0] = 0.5
        y[:, 1:3].mul_(2.0).add_(x[:, 1:3])
        y[..., -1] += y[..., 0]
        y.clamp_(-1.5, 1.5)
        y[:, ::2, 1] = x[:, ::2, 0]
        return y.relu_()


def written() -> list[ModuleCase]:
    """Modules of this file, and layers of torch.nn with seldom options."""
    case = ModuleCase
    pair = several(features(6), features(6))
    return [
        case("causal attention", lambda: Causal(12, 3, 64), features(12), SEQUENCE),
        case("rotary", lambda: Rotary(), features(8), SEQUENCE),
        case("router", lambda: Router(6), features(6), SEQUENCE),
        case("convnext", lambda: ConvNext(6), channels(6, 7), SIGNAL),
        case("lstm states", lambda: Lstms(nn.LSTM), features(6), SEQUENCE),
        case("lstm projected", lambda: nn.LSTM(6, 5, 1, proj_size=3, batch_first=True), features(6), SEQUENCE),
        case("gru both ways", lambda: Lstms(nn.GRU, bidirectional=True, bias=False), features(6), SEQUENCE),
        case("rnn", lambda: Lstms(nn.RNN), features(6), SEQUENCE),
        case("gru not batch first", lambda: nn.GRU(6, 5, 2, dropout=0.2), features(6), SEQUENCE),
        case("in place", lambda: InPlace(), features(5), SEQUENCE),
        case(
            "attention with padding",
            lambda: Written(
                attention, nn.MultiheadAttention(8, 2, batch_first=True, add_bias_kv=True, add_zero_attn=True)
            ),
            several(features(8), masks()),
            SEQUENCE * 2,
        ),
        case(
            "attention of other widths",
            lambda: Written(
                lambda m, x, y: m(x, y, y, need_weights=False)[0],
                nn.MultiheadAttention(8, 2, kdim=6, vdim=6, batch_first=True),
            ),
            several(features(8), features(6)),
            SEQUENCE * 2,
        ),
        case(
            "causal sdpa",
            lambda: Written(
                lambda x: F.scaled_dot_product_attention(
                    x.unsqueeze(1), x.unsqueeze(1), x.unsqueeze(1), is_causal=True, scale=0.3
                )
            ),
            features(8),
            SEQUENCE,
        ),
        case(
            "grouped sdpa",
            lambda: Written(
                lambda x: F.scaled_dot_product_attention(
                    x.unflatten(-1, (4, 2)).transpose(1, 2),
                    x[..., :4].unflatten(-1, (2, 2)).transpose(1, 2),
                    x[..., 4:].unflatten(-1, (2, 2)).transpose(1, 2),
                    enable_gqa=True,
                )
            ),
            features(8),
            SEQUENCE,
        ),
        case("pooled by mask", lambda: Written(pooled), several(features(6), masks()), SEQUENCE * 2),
        case("last of mask", lambda: Written(last_of), several(features(6), masks()), SEQUENCE * 2),
        case("condition", lambda: Written(condition), features(6), SEQUENCE),
        case("windows", lambda: Written(windows), image(8, 4), BATCH),
        case("statistics", lambda: Written(statistics), features(6), SEQUENCE),
        case("einsums", lambda: Written(einsums), several(features(6), features(6)), SEQUENCE * 2),
        case("sampled", lambda: Written(sampled), image(8), BATCH),
        case("interpolated", lambda: Written(interpolated), image(8), BATCH),
        case("counted", lambda: Written(counted), integers(0, 7), SEQUENCE),
        case("indexed", lambda: Written(indexed), several(features(6), integers(0, 1000)), SEQUENCE * 2),
        case("typed", lambda: Written(typed), several(integers(-9, 9), masks()), SEQUENCE * 2),
        case(
            "bfloat16",
            lambda: Written(lambda a, x: a(x), nn.Linear(6, 5).bfloat16()),
            features(6, torch.bfloat16),
            SEQUENCE,
        ),
        case(
            "half",
            lambda: Written(lambda a, x: a(x), nn.Sequential(nn.Linear(6, 5), nn.LayerNorm(5), nn.GELU()).half()),
            features(6, torch.float16),
            SEQUENCE,
        ),
        case("double", lambda: Written(lambda x: x.double().cumsum(1).exp().clamp(max=5)), features(6), SEQUENCE),
        case("looped", lambda: Written(looped), features(6), SEQUENCE),
        case("sorted", lambda: Written(in_order), features(6), SEQUENCE),
        case("padded", lambda: Written(padded), channels(4), SIGNAL),
        case("distances", lambda: Written(distances), pair, SEQUENCE * 2),
        case("triangles", lambda: Written(triangles), features(6), SEQUENCE),
        case("functions", lambda: Written(functions), features(6), SEQUENCE),
        case(
            "cumulative",
            lambda: Written(lambda x: (x.cumsum(1), x.cumprod(2), x.cummax(1), x.logcumsumexp(1))),
            features(4),
            SEQUENCE,
        ),
        case(
            "bags",
            lambda: Written(
                lambda a, b, x: (a(x), b(x)),
                nn.EmbeddingBag(50, 4, mode="max"),
                nn.EmbeddingBag(50, 4, mode="sum", padding_idx=0),
            ),
            tokens(50),
            SEQUENCE,
        ),
        case("embedding scaled", lambda: nn.Embedding(50, 6, max_norm=1.0), tokens(50), SEQUENCE),
        case(
            "group norm odd",
            lambda: nn.Sequential(
                nn.GroupNorm(1, 4, affine=False),
                nn.InstanceNorm2d(4, track_running_stats=True),
                nn.GroupNorm(4, 4, eps=1e-2),
            ),
            channels(4, 3),
            SIGNAL,
        ),
        case(
            "batch norm plain",
            lambda: nn.Sequential(nn.BatchNorm1d(4, affine=False), nn.BatchNorm1d(4, track_running_stats=False)),
            channels(4),
            SIGNAL,
        ),
        case(
            "pools",
            lambda: Written(
                lambda x: (
                    F.max_pool1d(x, 3, 1, dilation=2),
                    F.avg_pool1d(x, 4, 3, 1, ceil_mode=True),
                    F.max_pool1d(x, 2, return_indices=True),
                    F.lp_pool1d(x, 1.5, 3),
                )
            ),
            channels(4),
            SIGNAL,
        ),
        case(
            "unpooled",
            lambda: Written(lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2)),
            image(8),
            BATCH,
        ),
        case(
            "conv odd",
            lambda: nn.Sequential(
                nn.Conv2d(4, 8, (1, 3), dilation=(1, 2), padding="valid", bias=False),
                nn.Conv2d(8, 8, 3, padding=1, padding_mode="circular", groups=4),
                nn.ConvTranspose2d(8, 4, 3, 1, dilation=2, output_padding=0),
            ),
            image(12, 4),
            BATCH,
        ),
        case("spectral norm", lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(6, 4)), features(6), SEQUENCE),
        case(
            "transformer",
            lambda: Written(
                lambda m, x, y: m(
                    x, y, tgt_mask=nn.Transformer.generate_square_subsequent_mask(y.shape[1]), tgt_is_causal=True
                ),
                nn.Transformer(8, 2, 1, 1, 16, batch_first=True),
            ),
            several(features(8), features(8)),
            SEQUENCE * 2,
        ),
        case(
            "encoder with padding",
            lambda: Written(
                lambda m, x, mask: m(x, src_key_padding_mask=~mask),
                nn.TransformerEncoder(
                    nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 1, enable_nested_tensor=False
                ),
            ),
            several(features(8), masks()),
            SEQUENCE * 2,
        ),
        case(
            "bool and size",
            lambda: Written(
                lambda x: (
                    x > 0,
                    x.new_full((x.shape[0], 3), x.shape[1]),
                    torch.arange(x.shape[1]) * 2 + x.shape[0],
                    x.sum() > 0,
                )
            ),
            features(4),
            SEQUENCE,
        ),
        case("nonzero", lambda: Written(lambda x: (x > 0).nonzero()), features(4), SEQUENCE),
        case(
            "selected by mask",
            lambda: Written(lambda x, mask: x[mask].sum(0)),
            several(features(4), masks()),
            SEQUENCE * 2,
        ),
        case(
            "losses",
            lambda: Written(
                lambda x, y: (
                    F.mse_loss(x, y),
                    F.huber_loss(x, y, reduction="none"),
                    F.binary_cross_entropy_with_logits(x, y.sigmoid()),
                    F.cross_entropy(x.transpose(1, 2), y.argmax(-1)),
                    F.l1_loss(x, y, reduction="sum"),
                )
            ),
            pair,
            SEQUENCE * 2,
        ),
        case("spectrum", lambda: Written(lambda x: torch.fft.rfft(x, dim=-1).abs()), features(8), SEQUENCE),
        case(
            "stft",
            lambda: Written(lambda x: torch.stft(x, 8, 4, window=torch.hann_window(8), return_complex=True).abs()),
            lambda batch, length: (torch.randn(batch, 40),),
            BATCH,
        ),
        case(
            "linear algebra",
            lambda: Written(
                lambda x: (
                    torch.linalg.vector_norm(x, 3, -1),
                    torch.linalg.matrix_norm(x),
                    torch.baddbmm(x, x @ x.transpose(1, 2), x, beta=0.5),
                    torch.kron(x[0], torch.eye(2)),
                )
            ),
            features(6),
            SEQUENCE,
        ),
        case(
            "squeeze and split",
            lambda: Written(
                lambda x: (
                    *x.split((1, 2, 3), -1),
                    *x.tensor_split(2, -1),
                    x.unsqueeze(0).squeeze(0).squeeze(),
                    x.hsplit(1)[0],
                    torch.block_diag(x[0, :2], x[0, :2]),
                )
            ),
            features(6),
            SEQUENCE,
        ),
    ]
