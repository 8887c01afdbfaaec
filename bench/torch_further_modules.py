"""Modules that nobody tuned for: seldom operators, masks of attention, odd sizes, states and slices."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false, reportUntypedBaseClass=false

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch_module_cases import BATCH, SEQUENCE, SIGNAL, ModuleCase, channels, features, image, several, tokens
from torch_written_modules import Written, integers, masks


def _ellipses(x: Any, y: Any) -> Any:
    scores = torch.einsum("b...i,b...j->bij", x, y)
    return scores, torch.einsum("bni,bnj,ij->bn", x, y, torch.ones(6, 6)), torch.einsum("bii->bi", scores)


def _unfolded(x: Any) -> Any:
    return x.unfold(2, 4, 3).mean(-1), F.unfold(x.unsqueeze(-1), (3, 1), stride=(2, 1), padding=(1, 0))


def _put(x: Any) -> Any:
    y, rows = x.clone(), torch.tensor([0, 2, 5])
    y[:, rows, 1:3] = 0.5
    y[:, -1] += x[:, 0]
    y[..., ::2] *= 2
    return y, torch.index_put(x, (torch.tensor([0]), torch.tensor([1])), torch.tensor(9.0))


def _reduced(x: Any, places: Any) -> Any:
    index = (places % 4).unsqueeze(-1).expand(-1, -1, 6)
    start = torch.ones(x.shape[0], 4, 6)
    return [
        start.scatter_reduce(1, index, x, kind, include_self=own)
        for kind in ("sum", "amax", "amin", "mean", "prod")
        for own in (True, False)
    ]


def _running(x: Any) -> Any:
    return x.cumsum(1), x.cumprod(2), x.cummax(1)[0], x.cummin(1)[0], x.logcumsumexp(1), x.flip(1).cumsum(1).flip(1)


def _rolled(x: Any) -> Any:
    return x.roll(2, 1), x.roll((1, -1), (1, 2)), x.roll(3), torch.rot90(x, 1, (1, 2)), x.fliplr()


def _masked(x: Any, mask: Any) -> Any:
    scores = (x @ x.mT).masked_fill(~mask[:, None], float("-inf")).softmax(-1)
    return scores.masked_fill(~mask[..., None], 0), (x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True).clamp(
        min=1
    )


def _attended(attention: Any, x: Any, mask: Any) -> Any:
    causal = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
    return attention(x, x, x, attn_mask=causal), attention(x, x, x, key_padding_mask=~mask, average_attn_weights=False)


def _encoded(encoder: Any, x: Any, mask: Any) -> Any:
    causal = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
    return encoder(x, src_key_padding_mask=~mask), encoder(x, mask=causal, is_causal=True)


def _sampled(x: Any) -> Any:
    rows = torch.linspace(-1.2, 1.2, 5)
    grid = torch.stack(torch.meshgrid(rows, rows.flip(0), indexing="xy"), -1).expand(x.shape[0], -1, -1, -1)
    return [
        F.grid_sample(x, grid, mode, padding, align_corners=corners)
        for mode, padding, corners in (
            ("bilinear", "zeros", False),
            ("bicubic", "border", True),
            ("nearest", "zeros", False),
            ("bilinear", "reflection", False),
        )
    ]


def _odd_pools(x: Any) -> Any:
    return (
        F.adaptive_avg_pool1d(x, 5),
        F.adaptive_max_pool1d(x, 3),
        F.avg_pool1d(x, 5, 3, 2, ceil_mode=True),
        F.max_pool1d(x, 3, 2, 1, 2),
        F.lp_pool1d(x.abs(), 3, 2, ceil_mode=True),
    )


class Projected(nn.Module):
    """An LSTM of two layers, both ways, with projections and states that are given."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, 8, 2, batch_first=True, bidirectional=True, proj_size=3)

    def forward(self, x: Any) -> Any:
        """[batch, length, 6]."""
        states = torch.ones(4, x.shape[0], 3) * 0.1, torch.ones(4, x.shape[0], 8) * -0.2
        out, (hidden, cell) = self.lstm(x, states)
        return out[:, -1], hidden.transpose(0, 1).flatten(1), cell


class Rotated(nn.Module):
    """Positions as complex numbers, written with their real and imaginary parts."""

    def forward(self, x: Any) -> Any:
        """[batch, length, 8]."""
        even, odd = x[..., 0::2], x[..., 1::2]
        angles = torch.arange(x.shape[1])[:, None] * (10.0 ** -torch.arange(4.0))
        rotated = torch.stack([even * angles.cos() - odd * angles.sin(), even * angles.sin() + odd * angles.cos()], -1)
        return rotated.flatten(-2)[:, :-1, [0, 3, -1]], x[:, 1::3, -5:-1], x[:, -2:].tile(1, 2, 1)


class Normed(nn.Module):
    """Convolutions whose weights are normalised by both of PyTorch's ways."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.utils.parametrizations.weight_norm(nn.Conv1d(4, 6, 3, padding=1), dim=None)
        self.two = nn.utils.parametrizations.spectral_norm(nn.Conv1d(6, 4, 3, padding=1))

    def forward(self, x: Any) -> Any:
        """[batch, 4, length]."""
        return self.two(F.gelu(self.one(x)))


def _bags(weights: Any, x: Any) -> Any:
    return weights(x), F.embedding_bag(x, weights.weight * 2, mode="sum", per_sample_weights=x * 0.5)


def _typed(x: Any, y: Any) -> Any:
    return (
        x.half() + 1.0, x + y, (x > 0) * y, y / 3, y // 2 + x.int(), x.double().sum(1), y.float().mean(1),
        torch.where(x[..., 0] > 0, y[..., 0], 2), y[..., 0].bool() & (x[..., 0] < 1), x.pow(2) ** 0.5,
        2 ** y.clamp(0, 5),
    )  # fmt: skip


def _numbers(x: Any) -> Any:
    y = x.abs() + 0.5
    return (
        torch.atan2(x, y), torch.hypot(x, y), torch.logaddexp(x, y), torch.xlogy(y, y), torch.frac(x), x.expm1(),
        torch.special.erfinv(x.tanh() * 0.9), torch.lgamma(y), torch.digamma(y), torch.copysign(y, x), x.fmod(0.7),
        torch.remainder(x, -0.7), torch.heaviside(x, y), torch.sinc(x), torch.logit(x.sigmoid()),
        torch.nan_to_num(x / 0),
    )  # fmt: skip


def _split(x: Any) -> Any:
    left, right = x.tensor_split(2, 2)
    parts = x.split([1, 2, 3], 2)
    return torch.cat([right, left], 2), torch.stack(parts[2].unbind(2), 1), torch.hstack(parts), parts[1].squeeze(0).mT


def _statistics(x: Any) -> Any:
    return (
        x.var(1), x.std((1, 2), correction=0), torch.var_mean(x, 2), x.norm(p=1, dim=2), x.logsumexp((1, 2)),
        x.median(2), torch.linalg.vector_norm(x, 3, 1), x.aminmax(dim=1), x.count_nonzero(1),
        x.argsort(1), x.mode(2)[0], x.nanmean(1),
    )  # fmt: skip


def further() -> list[ModuleCase]:
    """Twenty modules."""
    case = ModuleCase
    two = several(features(6), features(6))
    return [
        case("einsum with ellipses", lambda: Written(_ellipses), two, SEQUENCE * 2),
        case("unfold", lambda: Written(_unfolded), channels(4), SIGNAL),
        case("index put", lambda: Written(_put), features(6), SEQUENCE),
        case("scatter reduce", lambda: Written(_reduced), several(features(6), integers(0, 99)), SEQUENCE * 2),
        case("running", lambda: Written(_running), features(5), SEQUENCE),
        case("roll", lambda: Written(_rolled), features(5), SEQUENCE),
        case("masked fill", lambda: Written(_masked), several(features(6), masks()), SEQUENCE * 2),
        case("bags", lambda: Written(_bags, nn.EmbeddingBag(100, 6, mode="max")), tokens(), SEQUENCE),
        case("odd pools", lambda: Written(_odd_pools), channels(4), SIGNAL),
        case("adaptive pools", lambda: nn.Sequential(nn.AdaptiveMaxPool2d((7, 5)), nn.AdaptiveAvgPool2d((3, 4))),
             channels(3, 11), SIGNAL),
        case("grid sample", lambda: Written(_sampled), image(9, 2), BATCH),
        case("pixel shuffle", lambda: nn.Sequential(nn.Conv2d(2, 18, 3, padding=1), nn.PixelShuffle(3)), channels(2, 5),
             SIGNAL),
        case("attention with masks", lambda: Written(_attended, nn.MultiheadAttention(8, 2, batch_first=True)),
             several(features(8), masks()), SEQUENCE * 2),
        case("nested encoder", lambda: Written(_encoded, nn.TransformerEncoder(
            nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)), several(features(8), masks()), SEQUENCE * 2),
        case("normed weights", lambda: Normed(), channels(4), SIGNAL),
        case("lstm with projections", lambda: Projected(), features(6), SEQUENCE),
        case("rotated", lambda: Rotated(), features(8), SEQUENCE),
        case("mixed types", lambda: Written(_typed), several(features(3), integers(-9, 9, 3)), SEQUENCE * 2),
        case("numbers", lambda: Written(_numbers), features(3), SEQUENCE),
        case("split", lambda: Written(_split), features(6), SEQUENCE),
        case("statistics of rows", lambda: Written(_statistics), features(5), SEQUENCE),
    ]  # fmt: skip
