"""The networks of the zoo: torchvision's, transformers', written ones and random ones, by name.

A network is a PyTorch module with seeded random weights and inputs, or an ONNX model with inputs. Sizes are small and
often odd; those that were found wrong once keep the sizes that they were found at.
"""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import onnx

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Made:
    """A module, whose inputs by name are in the order of its arguments, or a model."""

    inputs: dict[str, Array]
    module: Any = None
    model: onnx.ModelProto | None = None


@dataclass(frozen=True)
class Network:
    """An entry; `seed` follows from the name, so that a network is the same whichever others are run."""

    name: str
    family: str
    make: Callable[[int], Made]
    raw: bool = False
    """Whether normalisations keep their initial statistics, so that numbers may leave the range of half precision."""

    @property
    def seed(self) -> int:
        return zlib.crc32(self.name.encode()) & 0xFFFF

    def made(self) -> Made:
        """The network; torch's generator is seeded first, and weights are rounded to half precision."""
        if self.family == "random":
            return self.make(self.seed)
        import torch
        from gpu_zoo_modules import fill_zero_weights, round_weights, settle

        torch.manual_seed(self.seed)
        made = self.make(self.seed)
        fill_zero_weights(made.module)
        if not self.raw:
            settle(made.module, [torch.from_numpy(array) for array in made.inputs.values()])
        round_weights(made.module.eval())
        return made


# Batch and pixels of torchvision's networks; those in front were wrong once, at these sizes.
FOUND_WRONG: Mapping[str, tuple[int, int]] = {
    "convnext_tiny": (8, 224),
    "swin_t": (8, 224),
    "densenet121": (8, 224),
    "resnet18": (5, 224),
    "resnext50_32x4d": (5, 224),
    "wide_resnet50_2": (5, 224),
    "efficientnet_v2_s": (5, 224),
    "maxvit_t": (5, 224),
    "mobilenet_v3_large": (5, 224),
    "mnasnet1_0": (5, 224),
}
_CLASSIFIERS: Mapping[str, tuple[int, int]] = {
    "alexnet": (7, 95),
    "convnext_small": (3, 97),
    "densenet169": (2, 75),
    "efficientnet_b0": (4, 113),
    "efficientnet_b1": (1, 127),
    "googlenet": (6, 89),
    "inception_v3": (2, 139),
    "mnasnet0_5": (9, 83),
    "mnasnet1_3": (5, 111),
    "mobilenet_v2": (7, 101),
    "mobilenet_v3_large": (4, 125),
    "mobilenet_v3_small": (6, 111),
    "regnet_x_400mf": (5, 91),
    "regnet_y_400mf": (3, 105),
    "regnet_y_800mf": (8, 120),
    "resnet34": (3, 119),
    "resnet50": (9, 71),
    "resnet101": (1, 129),
    "resnext101_32x8d": (1, 67),
    "shufflenet_v2_x0_5": (9, 95),
    "shufflenet_v2_x1_0": (8, 128),
    "shufflenet_v2_x1_5": (2, 77),
    "squeezenet1_0": (5, 103),
    "squeezenet1_1": (9, 96),
    "swin_v2_t": (1, 128),
    "vgg11": (3, 65),
    "vgg13_bn": (2, 99),
    "vit_b_32": (9, 224),
}
_SEGMENTERS: Mapping[str, tuple[int, int]] = {
    "deeplabv3_mobilenet_v3_large": (2, 129),
    "fcn_resnet50": (2, 73),
    "lraspp_mobilenet_v3_large": (3, 97),
}
_VIDEO: Mapping[str, tuple[int, int]] = {"r3d_18": (1, 48), "mc3_18": (2, 40), "r2plus1d_18": (1, 56)}
_FRAMES = 6
_WRITTEN = (
    "sd_unet.b2",
    "llama_prefill",
    "llama_decode",
    "wavenet.b3",
    "lstm.b5",
    "gru.b2",
    "mixer.b3",
    "nerf",
    "unet3d.b1",
)
_RANDOM = 40


def pictures(seed: int, *shape: int) -> dict[str, Array]:
    """An input of noise, in half precision."""
    return {"x": np.random.default_rng(seed).standard_normal(shape).astype(np.float16).astype(np.float32)}


def _torchvision(name: str, batch: int, size: int) -> Callable[[int], Made]:
    def make(seed: int) -> Made:
        import torchvision
        from gpu_zoo_modules import OneOutput

        more: dict[str, Any] = {"weights": None}
        if name in _SEGMENTERS:
            more |= {"weights_backbone": None} | ({"aux_loss": False} if "lraspp" not in name else {})
        if name in ("googlenet", "inception_v3"):
            more |= {"aux_logits": False, "init_weights": True}
        module = torchvision.models.get_model(name, **more)
        frames = (_FRAMES,) if name in _VIDEO else ()
        return Made(pictures(seed, batch, 3, *frames, size, size), OneOutput(module))

    return make


def _written(name: str) -> Callable[[int], Made]:
    def make(seed: int) -> Made:
        from gpu_zoo_modules import WRITTEN

        module, inputs = WRITTEN[name](seed)
        return Made(inputs, module)

    return make


def _transformers(name: str) -> Callable[[int], Made]:
    def make(seed: int) -> Made:
        from gpu_zoo_transformers import MODELS, inputs_of, module_of

        return Made(inputs_of(MODELS[name], seed), module_of(MODELS[name]))

    return make


def _random(number: int) -> Callable[[int], Made]:
    def make(seed: int) -> Made:
        from random_networks import random_network

        network = random_network(number)
        return Made(network.inputs, model=network.model)

    return make


def networks(random: int = _RANDOM) -> Iterator[Network]:
    """All of them, those that were found wrong once in front; so many random ones."""
    from gpu_zoo_transformers import MODELS

    vision = {**_CLASSIFIERS, **_SEGMENTERS, **_VIDEO}
    yield from _entries("torchvision", FOUND_WRONG, _torchvision, raw=True)
    for name in _WRITTEN:
        yield Network(name, "written", _written(name))
    yield from _entries("torchvision", vision, _torchvision)
    for name in MODELS:
        yield Network(name, "transformers", _transformers(name))
    for number in range(random):
        yield Network(f"random{number}", "random", _random(number))


def find_network(name: str) -> Network:
    """The network of a name, random ones of any number."""
    number = name.removeprefix("random")
    if number.isdecimal():
        return Network(name, "random", _random(int(number)))
    return next(network for network in networks(0) if network.name == name)


def _entries(
    family: str,
    sizes: Mapping[str, tuple[int, int]],
    maker: Callable[[str, int, int], Callable[[int], Made]],
    raw: bool = False,
) -> Iterator[Network]:
    for name, (batch, size) in sizes.items():
        yield Network(f"{name}.b{batch}", family, maker(name, batch, size), raw)
