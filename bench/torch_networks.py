"""ResNet-50, MobileNetV2 and BERT base as plain PyTorch modules, the peers of the ONNX graphs with the same weights.

They are written as one writes them for speed in PyTorch: batch normalization folded into the convolutions, attention
by scaled_dot_product_attention, weights of linear layers as PyTorch keeps them.
"""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownParameterType=false, reportUntypedBaseClass=false, reportMissingParameterType=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from convolutional_networks import CLASSES, MOBILENET_STAGES
from torch import nn
from transformer_network import MASKED, BertSizes

Tensor = Any
Array = np.ndarray[Any, np.dtype[Any]]


def native_module(name: str, weights: Mapping[str, Array]) -> Any:
    """The module of a benchmark network with the weights of its ONNX graph; None for other networks."""
    made = {"resnet50": ResNet50, "mobilenet_v2": MobileNetV2, "bert_base": Bert}.get(name)
    if made is None:
        return None
    module = made()
    missing = module.load_state_dict(_state(module, weights), strict=False).missing_keys
    if any(not key.endswith("num_batches_tracked") for key in missing):
        raise KeyError(f"{name}: the graph has no weights for {missing}")
    return _folded(module.eval())


def _state(module: Any, weights: Mapping[str, Array]) -> dict[str, Any]:
    """Weights under the module's names; the graph keeps those of BERT's linear layers transposed."""
    state = {key: torch.from_numpy(np.array(weights[key])) for key in module.state_dict() if key in weights}
    for name, part in module.named_modules():
        if isinstance(part, nn.Linear) and isinstance(module, Bert):
            state[f"{name}.weight"] = state[f"{name}.weight"].t().contiguous()
    return state


def _folded(module: Any) -> Any:
    """The module with every normalization inside the convolution before it in the same sequence of children."""
    from torch.nn.utils.fusion import fuse_conv_bn_eval

    before: tuple[Any, str] | None = None
    for parent in list(module.modules()):
        before = None
        for key, part in list(parent.named_children()):
            if isinstance(part, nn.BatchNorm2d) and before is not None:
                convolution = getattr(*before)
                setattr(*before, fuse_conv_bn_eval(convolution, part))
                setattr(parent, key, nn.Identity())
            before = (parent, key) if isinstance(part, nn.Conv2d) else None
    return module


class Bottleneck(nn.Module):
    """The residual block of ResNet-50."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.downsample = None
        if stride > 1 or inputs != 4 * width:
            projection = nn.Conv2d(inputs, 4 * width, 1, stride, bias=False)
            self.downsample = nn.Sequential(projection, nn.BatchNorm2d(4 * width))

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        return F.relu(self.bn3(self.conv3(y)) + (x if self.downsample is None else self.downsample(x)))


class ResNet50(nn.Module):
    """Version 1.5."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        inputs = 64
        for stage, blocks in enumerate((3, 4, 6, 3)):
            width = 64 << stage
            parts = [
                Bottleneck(inputs if not n else 4 * width, width, 2 if stage and not n else 1) for n in range(blocks)
            ]
            setattr(self, f"layer{stage + 1}", nn.Sequential(*parts))
            inputs = 4 * width
        self.fc = nn.Linear(2048, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


class InvertedResidual(nn.Module):
    """The block of MobileNetV2."""

    def __init__(self, inputs: int, expansion: int, outputs: int, stride: int) -> None:
        super().__init__()
        hidden = inputs * expansion
        parts: list[Any] = [_conv_bn_relu6(inputs, hidden, 1)] if expansion > 1 else []
        parts += [_conv_bn_relu6(hidden, hidden, 3, stride, hidden)]
        self.conv = nn.Sequential(*parts, nn.Conv2d(hidden, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x) if self.residual else self.conv(x)


def _conv_bn_relu6(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> Any:
    convolution = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.ReLU6())


class MobileNetV2(nn.Module):
    """Width 1.0."""

    def __init__(self) -> None:
        super().__init__()
        parts: list[Any] = [_conv_bn_relu6(3, 32, 3, 2)]
        inputs = 32
        for expansion, outputs, blocks, stride in MOBILENET_STAGES:
            for block in range(blocks):
                parts.append(InvertedResidual(inputs, expansion, outputs, stride if block == 0 else 1))
                inputs = outputs
        self.features = nn.Sequential(*parts, _conv_bn_relu6(inputs, 1280, 1))
        self.classifier = nn.Sequential(nn.Identity(), nn.Linear(1280, CLASSES))

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(x).mean((2, 3)))


class BertLayer(nn.Module):
    """Attention and the network of two layers."""

    def __init__(self, sizes: BertSizes) -> None:
        super().__init__()
        width = sizes.width
        self.heads = sizes.heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, sizes.hidden), nn.Linear(sizes.hidden, width)
        self.attention_norm, self.norm = nn.LayerNorm(width, 1e-12), nn.LayerNorm(width, 1e-12)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        parts = (part(x).unflatten(2, (self.heads, -1)).transpose(1, 2) for part in (self.query, self.key, self.value))
        mixed = F.scaled_dot_product_attention(*parts, attn_mask=mask)
        x = self.attention_norm(self.out(mixed.transpose(1, 2).flatten(2)) + x)
        return self.norm(self.down(F.gelu(self.up(x))) + x)


class Bert(nn.Module):
    """The encoder of BERT base."""

    def __init__(self) -> None:
        super().__init__()
        sizes = BertSizes()
        self.words = nn.Embedding(sizes.vocabulary, sizes.width)
        self.positions, self.segments = nn.Embedding(sizes.positions, sizes.width), nn.Embedding(2, sizes.width)
        self.norm = nn.LayerNorm(sizes.width, 1e-12)
        self.layers = nn.ModuleList(BertLayer(sizes) for _ in range(sizes.layers))
        self.register_buffer("places", torch.arange(sizes.length)[None], persistent=False)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        x = self.norm(self.words(input_ids) + self.segments(token_type_ids) + self.positions(self.places))
        mask = ((1 - attention_mask[:, None, None]) * MASKED).to(x.dtype)
        for layer in self.layers:
            x = layer(x, mask)
        return x
