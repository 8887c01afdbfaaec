"""Modules that are compiled from PyTorch: torch.nn's, and small ones of torchvision, timm and transformers.

A case is drawn for a batch and a length; both are dynamic where the module allows it.
"""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch_wrapped_modules import Named, Packed, Stepped, with_operators

Inputs = Callable[[int, int], tuple[Any, ...]]


@dataclass(frozen=True)
class ModuleCase:
    """How a module is made, its inputs for a batch and a length, and which axes of theirs those are.

    `axes` has for each input the axes by number: "batch", "length", or a multiple such as "8*length".
    """

    name: str
    make: Callable[[], Any]
    inputs: Inputs
    axes: tuple[Mapping[int, str], ...]


def features(width: int, dtype: Any = torch.float32) -> Inputs:
    """[batch, length, width]."""
    return lambda batch, length: (torch.randn(batch, length, width).to(dtype),)


def channels(count: int, *sizes: int) -> Inputs:
    """[batch, count, length, *sizes]."""
    return lambda batch, length: (torch.randn(batch, count, length, *sizes),)


def image(size: int = 64, count: int = 3) -> Inputs:
    """[batch, count, size, size]: pictures whose size is that of the network."""
    return lambda batch, length: (torch.randn(batch, count, size, size),)


def tokens(vocabulary: int = 100) -> Inputs:
    """[batch, length]."""
    return lambda batch, length: (torch.randint(0, vocabulary, (batch, length)),)


def several(*parts: Inputs) -> Inputs:
    """The inputs of several after each other."""
    return lambda batch, length: tuple(one for part in parts for one in part(batch, length))


BATCH = ({0: "batch"},)
SEQUENCE = ({0: "batch", 1: "length"},)
SIGNAL = ({0: "batch", 2: "length"},)


def torch_nn() -> list[ModuleCase]:
    """Layers of torch.nn, most of them with arguments that are not the usual ones."""
    case = ModuleCase
    return [
        case("Linear", lambda: nn.Linear(12, 7), features(12), SEQUENCE),
        case("Bilinear", lambda: nn.Bilinear(6, 5, 4), several(features(6), features(5)), SEQUENCE * 2),
        case("Conv1d", lambda: nn.Conv1d(6, 8, 3, padding="same", dilation=2), channels(6), SIGNAL),
        case("Conv2d", lambda: nn.Conv2d(6, 8, (3, 5), (1, 2), (1, 2), groups=2), channels(6, 9), SIGNAL),
        case("Conv2d reflect", lambda: nn.Conv2d(4, 6, 3, padding=1, padding_mode="reflect"), channels(4, 8), SIGNAL),
        case("Conv3d", lambda: nn.Conv3d(3, 4, 3, padding=1), channels(3, 6, 5), SIGNAL),
        case("ConvTranspose1d", lambda: nn.ConvTranspose1d(4, 6, 4, 2, 1), channels(4), SIGNAL),
        case("ConvTranspose2d", lambda: nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, groups=2), channels(4, 5), SIGNAL),
        case("MaxPool2d", lambda: nn.MaxPool2d(3, 2, 1, ceil_mode=True), channels(4, 11), SIGNAL),
        case("AvgPool2d", lambda: nn.AvgPool2d(3, 2, 1, count_include_pad=False), channels(4, 9), SIGNAL),
        case("LPPool1d", lambda: nn.LPPool1d(2, 3, 2), channels(4), SIGNAL),
        case("AdaptiveAvgPool2d", lambda: nn.AdaptiveAvgPool2d((1, 3)), channels(4, 8), SIGNAL),
        case("AdaptiveMaxPool2d", lambda: nn.AdaptiveMaxPool2d((3, 2)), image(8, 4), BATCH),
        case("BatchNorm2d", lambda: nn.BatchNorm2d(5), channels(5, 3), SIGNAL),
        case("GroupNorm", lambda: nn.GroupNorm(3, 6), channels(6, 4), SIGNAL),
        case(
            "LayerNorm",
            lambda: nn.LayerNorm((4, 6), elementwise_affine=False),
            several(lambda batch, length: (torch.randn(batch, length, 4, 6),)),
            SEQUENCE,
        ),
        case("RMSNorm", lambda: nn.RMSNorm(10), features(10), SEQUENCE),
        case("InstanceNorm2d", lambda: nn.InstanceNorm2d(4, affine=True), channels(4, 5), SIGNAL),
        case("LocalResponseNorm", lambda: nn.LocalResponseNorm(3), channels(6, 4), SIGNAL),
        case("LSTM", lambda: nn.LSTM(6, 5, 2, batch_first=True, bidirectional=True), features(6), SEQUENCE),
        case("GRU", lambda: nn.GRU(6, 5, batch_first=True), features(6), SEQUENCE),
        case("RNN", lambda: nn.RNN(6, 5, nonlinearity="relu", batch_first=True), features(6), SEQUENCE),
        case("LSTMCell", lambda: Stepped(nn.LSTMCell(6, 5)), lambda batch, length: (torch.randn(batch, 3, 6),), BATCH),
        case(
            "MultiheadAttention", lambda: Packed(nn.MultiheadAttention(8, 2, batch_first=True)), features(8), SEQUENCE
        ),
        case(
            "TransformerEncoder",
            lambda: nn.TransformerEncoder(
                nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, norm_first=True, activation="gelu"),
                2,
                enable_nested_tensor=False,
            ),
            features(16),
            SEQUENCE,
        ),
        case(
            "TransformerDecoderLayer",
            lambda: nn.TransformerDecoderLayer(16, 2, 24, batch_first=True),
            several(features(16), features(16)),
            SEQUENCE * 2,
        ),
        case("Embedding", lambda: nn.Embedding(100, 7, padding_idx=3), tokens(), SEQUENCE),
        case("EmbeddingBag", lambda: nn.EmbeddingBag(100, 6, mode="mean"), tokens(), SEQUENCE),
        case(
            "Activations",
            lambda: nn.Sequential(
                nn.PReLU(4),
                nn.GELU("tanh"),
                nn.Hardswish(),
                nn.Softplus(2.0, 1.0),
                nn.CELU(0.7),
                nn.Mish(),
                nn.Hardshrink(0.1),
                nn.LogSigmoid(),
                nn.Softsign(),
            ),
            channels(4),
            SIGNAL,
        ),
        case("GLU", lambda: nn.Sequential(nn.GLU(1), nn.LogSoftmax(2), nn.Softmin(1)), channels(6), SIGNAL),
        case("CosineSimilarity", lambda: nn.CosineSimilarity(2), several(features(5), features(5)), SEQUENCE * 2),
        case("PairwiseDistance", lambda: nn.PairwiseDistance(3.0), several(features(5), features(5)), SEQUENCE * 2),
        case("Upsample", lambda: nn.Upsample(scale_factor=(2.0, 1.5), mode="bilinear"), channels(3, 6), SIGNAL),
        case(
            "PixelShuffle",
            lambda: nn.Sequential(nn.PixelShuffle(2), nn.PixelUnshuffle(2), nn.ChannelShuffle(2)),
            channels(8, 4),
            SIGNAL,
        ),
        case(
            "Unfold and Fold", lambda: nn.Sequential(nn.Unfold(2, stride=2), nn.Fold(6, 2, stride=2)), image(6), BATCH
        ),
        case(
            "Pads",
            lambda: nn.Sequential(
                nn.ReflectionPad2d((1, 2, 0, 1)),
                nn.ReplicationPad2d(1),
                nn.ConstantPad2d((0, 1, 2, 0), 0.5),
                nn.CircularPad2d(1),
            ),
            channels(2, 5),
            SIGNAL,
        ),
        case(
            "SmoothL1Loss", lambda: nn.SmoothL1Loss(reduction="none"), several(features(5), features(5)), SEQUENCE * 2
        ),
        case("weight_norm", lambda: nn.utils.parametrizations.weight_norm(nn.Conv1d(4, 6, 3)), channels(4), SIGNAL),
    ]


def vision() -> list[ModuleCase]:
    """Networks of torchvision, in small."""
    with_operators()
    import torchvision.models as models
    from torchvision.models.swin_transformer import SwinTransformer

    def case(name: str, make: Callable[[], Any], size: int = 64) -> ModuleCase:
        return ModuleCase(name, make, image(size), BATCH)

    return [
        case("resnet18", lambda: models.resnet18()),
        case("mobilenet_v3_small", lambda: models.mobilenet_v3_small()),
        case("squeezenet1_1", lambda: models.squeezenet1_1()),
        case("shufflenet_v2_x0_5", lambda: models.shufflenet_v2_x0_5()),
        case("mnasnet0_5", lambda: models.mnasnet0_5()),
        case("regnet_y_400mf", lambda: models.regnet_y_400mf()),
        case("vision transformer", lambda: models.VisionTransformer(32, 8, 2, 4, 32, 64), 32),
        case("swin transformer", lambda: SwinTransformer([4, 4], 24, [2, 2], [2, 4], [4, 4]), 32),
    ]


def timm_models() -> list[ModuleCase]:
    """Networks of timm."""
    with_operators()
    import timm
    from timm.models.convmixer import ConvMixer

    def case(name: str, size: int = 64, **options: Any) -> ModuleCase:
        return ModuleCase(name, lambda: timm.create_model(name, **options), image(size), BATCH)

    return [
        case("lcnet_035"),
        case("tinynet_e"),
        case("resnet10t"),
        case("edgenext_xx_small"),
        case("test_efficientnet"),
        case("test_vit", 160),
        case("test_convnext"),
        ModuleCase("convmixer", lambda: ConvMixer(32, 4), image(32), BATCH),
    ]


def language() -> list[ModuleCase]:
    """Networks of transformers, with few layers."""
    with_operators()
    import transformers as t

    small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    usual = {**small, "vocab_size": 100, "max_position_embeddings": 64}
    grouped = {**usual, "num_key_value_heads": 2, "use_cache": False}

    def case(name: str, make: Callable[[], Any], output: str = "last_hidden_state", **fixed: Any) -> ModuleCase:
        return ModuleCase(name, lambda: Named(make(), output, **fixed), tokens(), SEQUENCE)

    return [
        case("bert", lambda: t.BertModel(t.BertConfig(**usual))),
        case(
            "distilbert",
            lambda: t.DistilBertModel(
                t.DistilBertConfig(
                    vocab_size=100, dim=32, n_layers=2, n_heads=4, hidden_dim=64, max_position_embeddings=64
                )
            ),
        ),
        case(
            "gpt2",
            lambda: t.GPT2Model(
                t.GPT2Config(vocab_size=100, n_embd=32, n_layer=2, n_head=4, n_positions=64, use_cache=False)
            ),
        ),
        case("llama", lambda: t.LlamaModel(t.LlamaConfig(**grouped)), use_cache=False),
        case("qwen2", lambda: t.Qwen2Model(t.Qwen2Config(**grouped)), use_cache=False),
        case(
            "t5 encoder",
            lambda: t.T5EncoderModel(
                t.T5Config(vocab_size=100, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4)
            ),
        ),
    ]


GROUPS: dict[str, Callable[[], list[ModuleCase]]] = {
    "nn": torch_nn,
    "torchvision": vision,
    "timm": timm_models,
    "transformers": language,
}
