"""Functions of tensors with operators and options that networks of packages seldom have."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false, reportUntypedBaseClass=false

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F


def attention(module: Any, x: Any, mask: Any) -> Any:
    """A module of attention with a padding mask, and its weights of each head."""
    return module(x, x, x, key_padding_mask=~mask, average_attn_weights=False)


def pooled(x: Any, mask: Any) -> Any:
    """The mean and the largest of what a mask leaves."""
    weights = mask.unsqueeze(-1).to(x.dtype)
    return (x * weights).sum(1) / weights.sum(1).clamp(min=1e-6), x.masked_fill(~mask.unsqueeze(-1), -1e9).amax(1)


def last_of(x: Any, mask: Any) -> Any:
    """The last element of each row that a mask has, by indices and by gather."""
    last = mask.long().cumsum(1).argmax(1)
    return x[torch.arange(x.shape[0]), last], x.gather(1, last.view(-1, 1, 1).expand(-1, 1, x.shape[2]))


def condition(x: Any) -> Any:
    """One of two functions, which the data choose."""
    return torch.cond(x.sum() > 0, lambda x: x * 2 + 1, lambda x: x - 1, (x,))


def windows(x: Any) -> Any:
    """The windows of an image, shifted, with channels by heads."""
    batch, count, height, width = x.shape
    y = x.reshape(batch, count, height // 4, 4, width // 4, 4).permute(0, 2, 4, 3, 5, 1)
    y = torch.roll(y.reshape(batch, -1, 16, count), (1, -2), (1, 2))
    return y.flatten(2).unflatten(-1, (4, -1)).movedim(1, 2)


def statistics(x: Any) -> Any:
    """Reductions of many kinds, by name."""
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


def einsums(x: Any, y: Any) -> Any:
    """Products in Einstein's notation."""
    scores = torch.einsum("bnd,bmd->bnm", x, y)
    return (
        torch.einsum("bnm,bmd->bdn", scores, y),
        torch.einsum("...d,...d->...", x, x),
        torch.tensordot(x, x[0], ([2], [1])),
    )


def sampled(x: Any) -> Any:
    """Images at the places of an affine grid."""
    theta = torch.tensor([[[0.9, 0.2, 0.1], [-0.1, 1.1, 0.0]]]).expand(x.shape[0], -1, -1)
    grid = F.affine_grid(theta, [x.shape[0], x.shape[1], 5, 6], align_corners=False)
    return F.grid_sample(x, grid, padding_mode="border", align_corners=False), F.grid_sample(
        x, grid, "nearest", "reflection", True
    )


def interpolated(x: Any) -> Any:
    """Images at other sizes, by several kinds of interpolation."""
    return (
        F.interpolate(x, scale_factor=2, mode="nearest"),
        F.interpolate(x, size=(5, 7), mode="bilinear", align_corners=True),
        F.interpolate(x, size=(5, 7), mode="bicubic"),
        F.interpolate(x, size=(4, 3), mode="area"),
        F.interpolate(x, size=(9, 5), mode="nearest-exact"),
        F.interpolate(x, size=(4, 3), mode="bilinear", antialias=True),
    )


def counted(x: Any) -> Any:
    """Counts and lookups of integers."""
    return (
        F.one_hot(x, 7),
        torch.zeros(x.shape[0], 7).scatter_add(1, x, torch.ones(x.shape)),
        x.cumsum(1),
        x.bitwise_and(3) << 1,
    )


def indexed(x: Any, places: Any) -> Any:
    """Elements at places that a tensor holds."""
    rows = torch.arange(x.shape[0]).unsqueeze(1)
    y = torch.zeros_like(x).index_put((rows, places % x.shape[1]), x, accumulate=True)
    z = x.clone()
    z[:, places[0] % x.shape[1]] = 1.0
    return y, z, x.take_along_dim((places % x.shape[1]).unsqueeze(-1), 1), x.index_select(2, torch.tensor([2, 0, 2]))


def typed(x: Any, mask: Any) -> Any:
    """Integers of several types, and masks."""
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


def looped(x: Any) -> Any:
    """A loop over the sequence with a state."""
    state = torch.zeros(x.shape[0], x.shape[2])
    found: list[Any] = []
    for step in range(5):
        state = 0.8 * state + 0.2 * x[:, step].tanh()
        found.append(state)
    return torch.stack(found, 1), state


def in_order(x: Any) -> Any:
    """What sorting and its like give."""
    values, order = x.sort(dim=1, descending=True, stable=True)
    return (
        values,
        order,
        x.topk(3, 1, largest=False),
        x.kthvalue(2, 1),
        torch.searchsorted(torch.tensor([-1.0, 0.0, 1.0]), x),
        torch.bucketize(x, torch.tensor([-0.5, 0.5])),
    )


def padded(x: Any) -> Any:
    """Edges of several kinds."""
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


def distances(x: Any, y: Any) -> Any:
    """Distances and similarities between two sequences."""
    return (
        torch.cdist(x, y),
        F.cosine_similarity(x, y, -1),
        F.normalize(x, dim=-1, p=1.0),
        F.kl_div(x.log_softmax(-1), y.softmax(-1), reduction="none"),
        torch.cross(x[..., :3], y[..., :3], dim=-1),
    )


def triangles(x: Any) -> Any:
    """Triangles of matrices."""
    scores = x @ x.transpose(1, 2)
    return (
        scores.tril(-1),
        scores.triu(1).diagonal(1, 1, 2),
        torch.tril_indices(4, 4),
        torch.eye(5)[:3],
        torch.meshgrid(torch.arange(3), torch.arange(4), indexing="ij"),
        scores.trace() if scores.dim() == 2 else scores.diagonal(dim1=1, dim2=2).sum(-1),
    )


def functions(x: Any) -> Any:
    """Functions of single numbers."""
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
