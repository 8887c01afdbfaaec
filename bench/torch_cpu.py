"""Modules on one core: an engine, eager PyTorch and torch.compile's default back end by turns in one process.

    taskset -c 0 python bench/torch_cpu.py
    taskset -c 0 python bench/torch_cpu.py --only 'mlp|gru' --rounds 40

Each round runs the three sides one after the other, in another order than the round before, and each side as often as
takes about `--slice` seconds of the processor: on one core that is what a call takes where nobody else runs. The table
has the medians over the rounds; the ratio is the time of the faster of PyTorch's two over the engine's, round by round,
in the median.
torch.compile needs a C++ compiler. The exit status is 1 where results differ.
"""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false, reportUntypedBaseClass=false

from __future__ import annotations

import argparse
import math
import re
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch_closeness import difference
from torch_wrapped_modules import Named, with_operators

import mlirt

Network = tuple[Callable[[], Any], tuple[Any, ...]]


class Residual(nn.Module):
    """A sum of a module's result and its input."""

    def __init__(self, *parts: Any) -> None:
        super().__init__()
        self.parts = nn.Sequential(*parts)

    def forward(self, x: Any) -> Any:
        """The sum."""
        return x + self.parts(x)


def _convolution(inputs: int, outputs: int, stride: int = 1) -> Any:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)
    )


def _convolutional() -> Any:
    blocks = [Residual(_convolution(64, 64), _convolution(64, 64)) for _ in range(3)]
    return nn.Sequential(_convolution(3, 64, 2), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def _separable() -> Any:
    block = [
        Residual(nn.Conv2d(64, 64, 3, 1, 1, groups=64), nn.BatchNorm2d(64), nn.Hardswish(), nn.Conv2d(64, 64, 1))
        for _ in range(4)
    ]
    return nn.Sequential(nn.Conv2d(3, 64, 4, 4), *block, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def _temporal() -> Any:
    block = [Residual(nn.Conv1d(64, 64, 3, padding=2**k, dilation=2**k), nn.GELU()) for k in range(4)]
    return nn.Sequential(nn.Conv1d(8, 64, 1), *block, nn.Conv1d(64, 4, 1))


def _autoencoder() -> Any:
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, 2, 1), nn.LeakyReLU(0.1), nn.Conv2d(32, 64, 3, 2, 1), nn.LeakyReLU(0.1),
        nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.LeakyReLU(0.1), nn.ConvTranspose2d(32, 1, 4, 2, 1), nn.Sigmoid(),
    )  # fmt: skip


def _encoder() -> Any:
    layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True, activation="gelu", norm_first=True)
    return nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)


def _of_transformers(kind: str) -> Any:
    with_operators()
    import transformers as t

    small = {"vocab_size": 1000, "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4}
    if kind == "bert":
        return Named(t.BertModel(t.BertConfig(**small, intermediate_size=1024)), "last_hidden_state")
    more = {"num_key_value_heads": 2, "intermediate_size": 768, "use_cache": False}
    return Named(t.LlamaModel(t.LlamaConfig(**small, **more)), "last_hidden_state", use_cache=False)


class Last(nn.Module):
    """The first result of a recurrent module."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Any) -> Any:
        """[batch, length, width]."""
        return self.module(x)[0]


NETWORKS: dict[str, Network] = {
    "perceptron, batch 64": (
        lambda: nn.Sequential(*[part for _ in range(4) for part in (nn.Linear(512, 512), nn.GELU())]),
        (torch.randn(64, 512),),
    ),
    "LSTM of 2 layers, 64 steps": (lambda: Last(nn.LSTM(64, 128, 2, batch_first=True)), (torch.randn(1, 64, 64),)),
    "GRU, both ways, batch 4": (
        lambda: Last(nn.GRU(64, 96, batch_first=True, bidirectional=True)),
        (torch.randn(4, 48, 64),),
    ),
    "encoder of 4 layers, 64 steps": (_encoder, (torch.randn(1, 64, 256),)),
    "bert of 4 layers, 64 tokens": (lambda: _of_transformers("bert"), (torch.randint(0, 1000, (1, 64)),)),
    "llama of 4 layers, 64 tokens": (lambda: _of_transformers("llama"), (torch.randint(0, 1000, (1, 64)),)),
    "residual convolutions, 64 x 64": (_convolutional, (torch.randn(1, 3, 64, 64),)),
    "separable convolutions, 96 x 96": (_separable, (torch.randn(1, 3, 96, 96),)),
    "dilated convolutions, 512 steps": (_temporal, (torch.randn(2, 8, 512),)),
    "autoencoder, 64 x 64": (_autoencoder, (torch.randn(2, 1, 64, 64),)),
}


def _seconds(run: Callable[[], Any], least: float) -> float:
    """Of one call, the mean over as many as take `least`."""
    start, count = time.process_time(), 0
    while True:
        run()
        count += 1
        taken = time.process_time() - start
        if taken >= least:
            return taken / count


def _timed(sides: dict[str, Callable[[], Any]], rounds: int, least: float) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {name: [] for name in sides}
    names = list(sides)
    for number in range(rounds):
        for name in names[number % 3 :] + names[: number % 3]:
            found[name].append(_seconds(sides[name], least))
    return found


def _row(name: str, network: Network, rounds: int, least: float) -> float | None:
    """Print a network's times; the ratio, or None where results differ."""
    torch.manual_seed(0)
    make, inputs = network
    module = make().eval()
    engine: Any = mlirt.compile(module, inputs, target="cpu")
    compiled = torch.compile(module)
    wanted, found = module(*inputs), engine(*inputs)
    compiled(*inputs)
    text = difference(found, wanted)
    if text:
        print(f"{name}: {text}", flush=True)
        return None
    sides = {
        "engine": lambda: engine(*inputs),
        "eager": lambda: module(*inputs),
        "compiled": lambda: compiled(*inputs),
    }
    _timed(sides, 1, least)
    times = _timed(sides, rounds, least)
    faster = min(("eager", "compiled"), key=lambda side: statistics.median(times[side]))
    ratio = statistics.median(a / b for a, b in zip(times[faster], times["engine"], strict=True))
    medians = " | ".join(f"{statistics.median(times[side]) * 1e3:.3g}" for side in ("engine", "eager", "compiled"))
    print(f"| {name} | {medians} | {ratio:.2f} |", flush=True)
    return ratio


def main() -> int:
    """The command."""
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--only", default="", help="a pattern of the networks' names")
    flags.add_argument("--rounds", type=int, default=21)
    flags.add_argument("--slice", type=float, default=0.05, help="seconds of a side in each round")
    given = flags.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    print("| network | engine, ms | eager, ms | torch.compile, ms | ratio to the faster |\n|---|---|---|---|---|")
    with torch.no_grad():
        ratios = [
            _row(name, network, given.rounds, given.slice)
            for name, network in NETWORKS.items()
            if re.search(given.only, name)
        ]
    right = [ratio for ratio in ratios if ratio is not None]
    if right:
        mean = math.exp(statistics.fmean(math.log(ratio) for ratio in right))
        print(f"geometric mean of {len(right)}: {mean:.2f}, least {min(right):.2f}")
    return 0 if len(right) == len(ratios) else 1


if __name__ == "__main__":
    sys.exit(main())
