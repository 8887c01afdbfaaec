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


def _attention(module: Any, x: Any, mask: Any) -> Any:
    return module(x, x, x, key_padding_mask=~mask, average_attn_weights=False)


def _pooled(x: Any, mask: Any) -> Any:
    weights = mask.unsqueeze(-1).to(x.dtype)
    return (x * weights).sum(1) / weights.sum(1).clamp(min=1e-6), x.masked_fill(~mask.unsqueeze(-1), -1e9).amax(1)


def _last_of(x: Any, mask: Any) -> Any:
    last = mask.long().cumsum(1).argmax(1)
    return x[torch.arange(x.shape[0]), last], x.gather(1, last.view(-1, 1, 1).expand(-1, 1, x.shape[2]))


def _condition(x: Any) -> Any:
    return torch.cond(x.sum() > 0, lambda x: x * 2 + 1, lambda x: x - 1, (x,))


def _windows(x: Any) -> Any:
    batch, count, height, width = x.shape
    y = x.reshape(batch, count, height // 4, 4, width // 4, 4).permute(0, 2, 4, 3, 5, 1)
    y = torch.roll(y.reshape(batch, -1, 16, count), (1, -2), (1, 2))
    return y.flatten(2).unflatten(-1, (4, -1)).movedim(1, 2)


def _statistics(x: Any) -> Any:
    return {
        "std": x.std(1, correction=0),
        "var_mean": torch.var_mean(x, dim=(0, 2), keepdim=True),
        "norm": x.norm(p=2, dim=-1),
        "logsumexp": x.logsumexp((1, 2)),
        "median": x.median(-1).values,
        "prod": x[..., :3].prod(-1),
        "any": (x > 2).any(1),
        "argmin": x.argmin(1),
    }


def _einsums(x: Any, y: Any) -> Any:
    scores = torch.einsum("bnd,bmd->bnm", x, y)
    return (
        torch.einsum("bnm,bmd->bdn", scores, y),
        torch.einsum("...d,...d->...", x, x),
        torch.tensordot(x, x[0], ([2], [1])),
    )


def _sampled(x: Any) -> Any:
    theta = torch.tensor([[[0.9, 0.2, 0.1], [-0.1, 1.1, 0.0]]]).expand(x.shape[0], -1, -1)
    grid = F.affine_grid(theta, [x.shape[0], x.shape[1], 5, 6], align_corners=False)
    return F.grid_sample(x, grid, padding_mode="border", align_corners=False), F.grid_sample(
        x, grid, "nearest", "reflection", True
    )


def _interpolated(x: Any) -> Any:
    return (
        F.interpolate(x, scale_factor=2, mode="nearest"),
        F.interpolate(x, size=(5, 7), mode="bilinear", align_corners=True),
        F.interpolate(x, size=(5, 7), mode="bicubic"),
        F.interpolate(x, size=(4, 3), mode="area"),
        F.interpolate(x, size=(9, 5), mode="nearest-exact"),
        F.interpolate(x, size=(4, 3), mode="bilinear", antialias=True),
    )


def _counted(x: Any) -> Any:
    return (
        F.one_hot(x, 7),
        torch.zeros(x.shape[0], 7).scatter_add(1, x, torch.ones(x.shape)),
        x.cumsum(1),
        x.bitwise_and(3) << 1,
    )


def _indexed(x: Any, places: Any) -> Any:
    rows = torch.arange(x.shape[0]).unsqueeze(1)
    y = torch.zeros_like(x).index_put((rows, places % x.shape[1]), x, accumulate=True)
    z = x.clone()
    z[:, places[0] % x.shape[1]] = 1.0
    return y, z, x.take_along_dim((places % x.shape[1]).unsqueeze(-1), 1), x.index_select(2, torch.tensor([2, 0, 2]))


def _typed(x: Any, mask: Any) -> Any:
    y = torch.where(mask, x, -x)
    return (
        y // 3,
        y % 3,
        torch.true_divide(y, 4),
        mask ^ (x > 2),
        mask.sum(1),
        y.float().to(torch.int32),
        (y * 0.5).round().int(),
        ~mask,
    )


def _looped(x: Any) -> Any:
    state = torch.zeros(x.shape[0], x.shape[2])
    found: list[Any] = []
    for step in range(5):
        state = 0.8 * state + 0.2 * x[:, step].tanh()
        found.append(state)
    return torch.stack(found, 1), state


def _sorted(x: Any) -> Any:
    values, order = x.sort(dim=1, descending=True, stable=True)
    return (
        values,
        order,
        x.topk(3, 1, largest=False),
        x.kthvalue(2, 1),
        torch.searchsorted(torch.tensor([-1.0, 0.0, 1.0]), x),
        torch.bucketize(x, torch.tensor([-0.5, 0.5])),
    )


def _padded(x: Any) -> Any:
    return (
        F.pad(x, (1, 2), "reflect"),
        F.pad(x, (2, -1), value=3.0),
        F.pad(x, (3, 1), "circular"),
        F.pad(x, (1, 0, 2, 1), "constant"),
        x.unfold(2, 4, 2),
        F.pad(x, (2, 2), "replicate"),
        x.diff(dim=2),
        x.flip(1, 2),
        x.tile(1, 2, 1),
        x.repeat_interleave(2, 1),
    )


def _distances(x: Any, y: Any) -> Any:
    return (
        torch.cdist(x, y),
        F.cosine_similarity(x, y, -1),
        F.normalize(x, dim=-1, p=1.0),
        F.kl_div(x.log_softmax(-1), y.softmax(-1), reduction="none"),
        torch.cross(x[..., :3], y[..., :3], dim=-1),
    )


def _triangles(x: Any) -> Any:
    scores = x @ x.transpose(1, 2)
    return (
        scores.tril(-1),
        scores.triu(1).diagonal(1, 1, 2),
        torch.tril_indices(4, 4),
        torch.eye(5)[:3],
        torch.meshgrid(torch.arange(3), torch.arange(4), indexing="ij"),
        scores.trace() if scores.dim() == 2 else scores.diagonal(dim1=1, dim2=2).sum(-1),
    )


def _functions(x: Any) -> Any:
    return torch.stack(
        [
            x.erf(),
            x.abs().log1p(),
            x.expm1(),
            x.atan2(x + 1),
            x.sinc(),
            torch.special.i0(x.clamp(-3, 3)),
            x.abs().lgamma(),
            torch.logaddexp(x, -x),
            x.hypot(x * 2),
            x.frac(),
            x.sgn(),
            torch.xlogy(x.abs(), x.abs() + 1),
            x.nan_to_num(),
            x.lerp(-x, 0.3),
            torch.addcmul(x, x, x, value=0.5),
            x.copysign(-x.abs()),
            x.fmod(0.7),
            x.remainder(-0.7),
            x.logit(0.3),
            torch.special.ndtri(x.sigmoid()),
            x.heaviside(x * 0),
            x.rad2deg(),
            x.float_power(2).float(),
        ],
        0,
    )


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
                _attention, nn.MultiheadAttention(8, 2, batch_first=True, add_bias_kv=True, add_zero_attn=True)
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
        case("pooled by mask", lambda: Written(_pooled), several(features(6), masks()), SEQUENCE * 2),
        case("last of mask", lambda: Written(_last_of), several(features(6), masks()), SEQUENCE * 2),
        case("condition", lambda: Written(_condition), features(6), SEQUENCE),
        case("windows", lambda: Written(_windows), image(8, 4), BATCH),
        case("statistics", lambda: Written(_statistics), features(6), SEQUENCE),
        case("einsums", lambda: Written(_einsums), several(features(6), features(6)), SEQUENCE * 2),
        case("sampled", lambda: Written(_sampled), image(8), BATCH),
        case("interpolated", lambda: Written(_interpolated), image(8), BATCH),
        case("counted", lambda: Written(_counted), integers(0, 7), SEQUENCE),
        case("indexed", lambda: Written(_indexed), several(features(6), integers(0, 1000)), SEQUENCE * 2),
        case("typed", lambda: Written(_typed), several(integers(-9, 9), masks()), SEQUENCE * 2),
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
        case("looped", lambda: Written(_looped), features(6), SEQUENCE),
        case("sorted", lambda: Written(_sorted), features(6), SEQUENCE),
        case("padded", lambda: Written(_padded), channels(4), SIGNAL),
        case("distances", lambda: Written(_distances), pair, SEQUENCE * 2),
        case("triangles", lambda: Written(_triangles), features(6), SEQUENCE),
        case("functions", lambda: Written(_functions), features(6), SEQUENCE),
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
