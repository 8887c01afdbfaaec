"""Modules of the zoo that are written here, and wrappers that give every module positional inputs and one output."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUntypedBaseClass=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.parametrize import remove_parametrizations

Tensor = Any
Array = np.ndarray[Any, np.dtype[Any]]


class OneOutput(nn.Module):
    """A module whose result may be a dictionary: its entry `out`, or a tuple: its first item."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> Tensor:
        found = self.module(x)
        if isinstance(found, dict):
            return found["out"]
        return found[0] if isinstance(found, tuple) else found


class NamedOutput(nn.Module):
    """A module whose inputs have names, and of whose outputs one is wanted."""

    def __init__(self, module: Any, names: list[str], output: str) -> None:
        super().__init__()
        self.module, self.names, self.output = module, names, output

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.module(**dict(zip(self.names, inputs, strict=True)))[self.output]


def settle(module: Any, inputs: list[Tensor]) -> None:
    """Give batch normalisations the statistics of these inputs, as training does, so that numbers keep their range."""
    parts = [part for part in module.modules() if isinstance(part, nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d)]
    if not parts:
        return
    module.eval()
    for part in parts:
        part.momentum = 1.0
        part.train()
    with torch.no_grad():
        module(*inputs)
    module.eval()


def fill_zero_weights(module: Any) -> None:
    """Draw the matrices that a definition sets to zero before training: behind a zero head every answer is right."""
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() > 1 and not parameter.any():
                nn.init.normal_(parameter, std=0.02)


def round_weights(module: Any) -> None:
    """Round parameters and buffers to half precision, so that no precision changes the network.

    What is computed from parameters, such as a normalised weight, becomes a parameter: modules are kept in files.
    """
    for part in module.modules():
        for name in list(getattr(part, "parametrizations", {})):
            remove_parametrizations(part, name)
            part._load_state_dict_pre_hooks.clear()  # of a parametrisation, which no file can hold
    with torch.no_grad():
        for tensor in [*module.parameters(), *module.buffers()]:
            if tensor.is_floating_point():
                tensor.copy_(tensor.half().float())


class ResidualBlock(nn.Module):
    """Two normalised convolutions with an addend that comes from the time step."""

    def __init__(self, inputs: int, outputs: int, time: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(8, inputs), nn.Conv2d(inputs, outputs, 3, 1, 1)
        self.time = nn.Linear(time, outputs)
        self.norm2, self.conv2 = nn.GroupNorm(8, outputs), nn.Conv2d(outputs, outputs, 3, 1, 1)
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        y = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(time))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(y)))


class ImageAttention(nn.Module):
    """Attention of pixels to pixels and then to a text."""

    def __init__(self, width: int, text: int, heads: int) -> None:
        super().__init__()
        self.heads, self.norm = heads, nn.GroupNorm(8, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.queries = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(2))
        self.keys = nn.ModuleList(nn.Linear(n, 2 * width, bias=False) for n in (width, text))
        self.outs = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.up, self.down = nn.Linear(width, 8 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor, text: Tensor) -> Tensor:
        batch, width, high, wide = x.shape
        y = self.norm(x).flatten(2).transpose(1, 2)
        for k, norm in enumerate(list(self.norms)[:2]):
            z = norm(y)
            query = self.queries[k](z).unflatten(2, (self.heads, -1)).transpose(1, 2)
            key, value = (
                self.keys[k](z if k == 0 else text).unflatten(2, (2, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
            )
            weights = torch.softmax(query @ key.transpose(2, 3) * query.shape[-1] ** -0.5, -1)
            y = y + self.outs[k]((weights @ value).transpose(1, 2).flatten(2))
        gate, up = self.up(self.norms[2](y)).chunk(2, -1)
        y = y + self.down(F.gelu(gate) * up)
        return x + y.transpose(1, 2).reshape(batch, width, high, wide)


class DiffusionUnet(nn.Module):
    """A U-shaped network like Stable Diffusion's, three levels."""

    def __init__(self, width: int = 64, text: int = 96) -> None:
        super().__init__()
        time, sizes = 4 * width, [width, 2 * width, 4 * width]
        self.time = nn.Sequential(nn.Linear(width, time), nn.SiLU(), nn.Linear(time, time))
        self.enter, self.leave = nn.Conv2d(4, width, 3, 1, 1), nn.Conv2d(width, 4, 3, 1, 1)
        inputs = [width, *sizes]
        self.down = nn.ModuleList(ResidualBlock(inputs[k], n, time) for k, n in enumerate(sizes))
        self.attend = nn.ModuleList(ImageAttention(n, text, n // 32) for n in sizes)
        self.shrink = nn.ModuleList(nn.Conv2d(n, n, 3, 2, 1) for n in sizes[:-1])
        self.middle = ResidualBlock(sizes[-1], sizes[-1], time)
        self.up = nn.ModuleList(ResidualBlock(2 * n, inputs[k], time) for k, n in enumerate(sizes))
        self.norm = nn.GroupNorm(8, width)

    def forward(self, x: Tensor, time: Tensor, text: Tensor) -> Tensor:
        step, kept = self.time(time), []
        y = self.enter(x)
        for k, block in enumerate(self.down):
            y = self.attend[k](block(y, step), text)
            kept.append(y)
            y = self.shrink[k](y) if k < len(self.shrink) else y
        y = self.middle(y, step)
        for k in range(len(self.up) - 1, -1, -1):
            y = self.up[k](torch.cat([y, kept[k]], 1), step)
            y = F.interpolate(y, scale_factor=2.0, mode="nearest") if k > 0 else y
        return self.leave(F.silu(self.norm(y)))


class RootMeanSquareNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(1 + 0.1 * torch.randn(width))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * self.weight


class LlamaLayer(nn.Module):
    """Attention with shared keys, rotated by position, over what is cached and what is new."""

    def __init__(self, width: int, heads: int, shared: int) -> None:
        super().__init__()
        self.heads, self.shared, self.size = heads, shared, width // heads
        self.norm1, self.norm2 = RootMeanSquareNorm(width), RootMeanSquareNorm(width)
        self.query, self.out = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.key, self.value = (nn.Linear(width, shared * self.size, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, 3 * width, bias=False) for _ in range(2))
        self.down = nn.Linear(3 * width, width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor, past: Tensor | None) -> Tensor:
        y = self.norm1(x)
        query = _rotated(self.query(y).unflatten(2, (self.heads, -1)).transpose(1, 2), cos, sin)
        key = _rotated(self.key(y).unflatten(2, (self.shared, -1)).transpose(1, 2), cos, sin)
        value = self.value(y).unflatten(2, (self.shared, -1)).transpose(1, 2)
        if past is not None:
            key, value = torch.cat([past[0], key], 2), torch.cat([past[1], value], 2)
        key, value = (part.repeat_interleave(self.heads // self.shared, 1) for part in (key, value))
        weights = torch.softmax(query @ key.transpose(2, 3) * self.size**-0.5 + mask, -1)
        x = x + self.out((weights @ value).transpose(1, 2).flatten(2))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def _rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat([-second, first], -1) * sin


class Llama(nn.Module):
    """Layers of a language model; with `past` it reads one word behind so many that are cached."""

    def __init__(
        self, length: int, past: int = 0, width: int = 256, heads: int = 8, shared: int = 2, layers: int = 3
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(LlamaLayer(width, heads, shared) for _ in range(layers))
        self.norm = RootMeanSquareNorm(width)
        places, size = torch.arange(past, past + length)[:, None], width // heads
        angles = places / 10000 ** (torch.arange(0, size, 2) / size)
        self.register_buffer("cos", torch.cat([angles, angles], 1).cos())
        self.register_buffer("sin", torch.cat([angles, angles], 1).sin())
        hidden = torch.arange(past + length)[None] > places
        self.register_buffer("mask", torch.where(hidden, -1e4, 0.0))

    def forward(self, x: Tensor, past: Tensor | None = None) -> Tensor:
        for k, layer in enumerate(self.layers):
            x = layer(x, self.cos, self.sin, self.mask, None if past is None else past[k])
        return self.norm(x)


class WaveNet(nn.Module):
    """Gated convolutions along time whose taps lie ever further apart."""

    def __init__(self, width: int = 60, layers: int = 7) -> None:
        super().__init__()
        self.enter, self.leave = nn.Conv1d(1, width, 1), nn.Conv1d(width, 17, 1)
        self.gates = nn.ModuleList(nn.Conv1d(width, 2 * width, 3, 1, 1 << k, 1 << k) for k in range(layers))
        self.outs = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        x = self.enter(x)
        total = torch.zeros_like(x)
        for gate, out in zip(self.gates, self.outs, strict=True):
            a, b = gate(x).chunk(2, 1)
            y = out(torch.tanh(a) * torch.sigmoid(b))
            x, total = x + y, total + y
        return self.leave(F.relu(total))


class Recurrent(nn.Module):
    """Recurrent layers in both directions, then a linear layer."""

    def __init__(self, kind: Any, inputs: int, hidden: int) -> None:
        super().__init__()
        self.cells = kind(inputs, hidden, 2, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, 31)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.cells(x)[0])


class Mixer(nn.Module):
    """Products along patches in turns with products along channels."""

    def __init__(self, patches: int = 49, width: int = 136, layers: int = 4) -> None:
        super().__init__()
        self.enter = nn.Conv2d(3, width, 14, 14)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * layers))
        sizes = [patches if k % 2 == 0 else width for k in range(2 * layers)]
        self.parts = nn.ModuleList(nn.Sequential(nn.Linear(n, 3 * n), nn.GELU(), nn.Linear(3 * n, n)) for n in sizes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.enter(x).flatten(2).transpose(1, 2)
        for k, (norm, part) in enumerate(zip(self.norms, self.parts, strict=True)):
            y = norm(x)
            x = x + (part(y.transpose(1, 2)).transpose(1, 2) if k % 2 == 0 else part(y))
        return x.mean(1)


class RadianceField(nn.Module):
    """Eight linear layers behind sines of positions."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scales", 2.0 ** torch.arange(6))
        widths = [39] + [250] * 7
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, [*widths[1:], 4], strict=True))

    def forward(self, x: Tensor) -> Tensor:
        angles = (x[:, None] * self.scales[:, None]).flatten(1)
        x = torch.cat([x, angles.sin(), angles.cos()], 1)
        for place, layer in enumerate(self.layers):
            x = layer(F.relu(x) if place else x)
        return x


class VolumeUnet(nn.Module):
    """Convolutions in three dimensions, down and up again."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Conv3d(1, 24, 3, 1, 1), nn.Conv3d(24, 56, 3, 2, 1)
        self.up, self.out = nn.ConvTranspose3d(56, 24, 2, 2), nn.Conv3d(48, 3, 3, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.one(x))
        return self.out(torch.cat([x, F.relu(self.up(F.relu(self.two(x))))], 1))


def _noise(seed: int, **shapes: tuple[int, ...]) -> dict[str, Array]:
    random = np.random.default_rng(seed)
    return {name: random.standard_normal(shape).astype(np.float16).astype(np.float32) for name, shape in shapes.items()}


WRITTEN: Mapping[str, Callable[[int], tuple[Any, dict[str, Array]]]] = {
    "sd_unet.b2": lambda seed: (DiffusionUnet(), _noise(seed, x=(2, 4, 64, 64), time=(2, 64), text=(2, 77, 96))),
    "llama_prefill": lambda seed: (Llama(200), _noise(seed, x=(1, 200, 256))),
    "llama_decode": lambda seed: (Llama(1, 300), _noise(seed, x=(3, 1, 256), past=(3, 2, 3, 2, 300, 32))),
    "wavenet.b3": lambda seed: (WaveNet(), _noise(seed, x=(3, 1, 333))),
    "lstm.b5": lambda seed: (Recurrent(nn.LSTM, 40, 72), _noise(seed, x=(5, 23, 40))),
    "gru.b2": lambda seed: (Recurrent(nn.GRU, 33, 50), _noise(seed, x=(2, 17, 33))),
    "mixer.b3": lambda seed: (Mixer(), _noise(seed, x=(3, 3, 98, 98))),
    "nerf": lambda seed: (RadianceField(), _noise(seed, x=(1023, 3))),
    "unet3d.b1": lambda seed: (VolumeUnet(), _noise(seed, x=(1, 1, 12, 20, 28))),
}
"""A module and its inputs in the order of its arguments, from a seed."""
