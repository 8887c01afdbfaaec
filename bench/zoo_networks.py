"""Networks at the sizes that they are used at, with random weights, for `bench/zoo.py`: name to module and inputs."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false, reportUntypedBaseClass=false

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from gpu_zoo_modules import DiffusionUnet, Llama, NamedOutput, OneOutput, fill_zero_weights, settle
from torch import nn
from torch_wrapped_modules import with_operators

Made = tuple[Any, tuple[Any, ...]]
Maker = Callable[[int], Made]
_WORDS = 1000


class ImageDecoder(nn.Module):
    """What makes pictures of Stable Diffusion's latents: residual blocks, one attention of pixels, three doublings."""

    def __init__(self, widths: tuple[int, ...] = (512, 512, 256, 128)) -> None:
        super().__init__()
        first = widths[0]
        self.enter = nn.Conv2d(4, first, 3, 1, 1)
        self.query, self.key, self.value, self.out = (nn.Linear(first, first) for _ in range(4))
        self.norm = nn.GroupNorm(32, first)
        self.levels = nn.ModuleList(
            nn.ModuleList([_ImageBlock(before, after), _ImageBlock(after, after), nn.Conv2d(after, after, 3, 1, 1)])
            for before, after in zip((first, *widths), widths, strict=False)
        )
        self.last, self.leave = nn.GroupNorm(32, widths[-1]), nn.Conv2d(widths[-1], 3, 3, 1, 1)

    def forward(self, x: Any) -> Any:
        """Pictures of eight times the side."""
        x = self.enter(x)
        y = self.norm(x).flatten(2).transpose(1, 2)
        mixed = F.scaled_dot_product_attention(*(part(y)[:, None] for part in (self.query, self.key, self.value)))
        x = x + self.out(mixed[:, 0]).transpose(1, 2).reshape(x.shape)
        for number, (one, two, after) in enumerate(self.levels):  # pyright: ignore[reportGeneralTypeIssues]
            x = two(one(x))
            if number < len(self.levels) - 1:
                x = after(F.interpolate(x, scale_factor=2.0, mode="nearest"))
        return self.leave(F.silu(self.last(x)))


class _ImageBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(32, inputs), nn.Conv2d(inputs, outputs, 3, 1, 1)
        self.norm2, self.conv2 = nn.GroupNorm(32, outputs), nn.Conv2d(outputs, outputs, 3, 1, 1)
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: Any) -> Any:
        y = self.conv1(F.silu(self.norm1(x)))
        return self.skip(x) + self.conv2(F.silu(self.norm2(y)))


def _torchvision(name: str, *shape: int, **more: Any) -> Maker:
    def make(batch: int) -> Made:
        import torchvision

        module, x = OneOutput(torchvision.models.get_model(name, weights=None, **more)), torch.randn(batch, *shape)
        with torch.no_grad():
            settle(module, [x if batch > 1 else torch.randn(4, *shape)])
        return module, (x,)

    return make


def _text(*lengths: int) -> Callable[[int], tuple[Any, ...]]:
    return lambda batch: tuple(torch.randint(5, _WORDS, (batch, length)) for length in lengths)


def _noise(*shape: int) -> Callable[[int], tuple[Any, ...]]:
    return lambda batch: (torch.randn(batch, *shape),)


def _transformers(
    kind: str,
    config: str,
    inputs: Mapping[str, Callable[[int], tuple[Any, ...]]],
    **sizes: Any,
) -> Maker:
    """The class of a model, that of its configuration, its sizes, and its inputs by name."""

    def make(batch: int) -> Made:
        import transformers
        from gpu_zoo_transformers import class_of

        settings = getattr(transformers, config)(**sizes)
        settings.use_cache = False
        module = class_of(transformers, kind)(settings)
        return NamedOutput(module, list(inputs), "last_hidden_state"), tuple(one(batch)[0] for one in inputs.values())

    return make


def _diffusion(batch: int) -> Made:
    return DiffusionUnet(320, 768), (
        torch.randn(batch, 4, 64, 64),
        torch.randn(batch, 320),
        torch.randn(batch, 77, 768),
    )


def _detector_backbone() -> Any:
    import transformers

    return transformers.ResNetConfig(out_features=["stage4"])


def _detector(batch: int) -> Made:
    more = {"use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None}
    make = _transformers(
        "DetrModel",
        "DetrConfig",
        {"pixel_values": _noise(3, 800, 800), "pixel_mask": lambda batch: (torch.ones(batch, 800, 800).long(),)},
        backbone_config=_detector_backbone(),
        **more,
    )
    return make(batch)


_IMAGE = (3, 224, 224)
_LLAMA = {
    "hidden_size": 2048,
    "num_hidden_layers": 8,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "intermediate_size": 5632,
    "vocab_size": _WORDS,
}

NETWORKS: Mapping[str, Maker] = {
    "resnet50": _torchvision("resnet50", *_IMAGE),
    "mobilenet_v2": _torchvision("mobilenet_v2", *_IMAGE),
    "mobilenet_v3_large": _torchvision("mobilenet_v3_large", *_IMAGE),
    "vit_b_16": _torchvision("vit_b_16", *_IMAGE),
    "swin_t": _torchvision("swin_t", *_IMAGE),
    "swin_v2_t": _torchvision("swin_v2_t", 3, 256, 256),
    "maxvit_t": _torchvision("maxvit_t", *_IMAGE),
    "convnext_tiny": _torchvision("convnext_tiny", *_IMAGE),
    "regnet_y_800mf": _torchvision("regnet_y_800mf", *_IMAGE),
    "regnet_y_8gf": _torchvision("regnet_y_8gf", *_IMAGE),
    "resnext50_32x4d": _torchvision("resnext50_32x4d", *_IMAGE),
    "efficientnet_b0": _torchvision("efficientnet_b0", *_IMAGE),
    "efficientnet_v2_s": _torchvision("efficientnet_v2_s", 3, 384, 384),
    "densenet121": _torchvision("densenet121", *_IMAGE),
    "shufflenet_v2_x1_0": _torchvision("shufflenet_v2_x1_0", *_IMAGE),
    "inception_v3": _torchvision("inception_v3", 3, 299, 299, aux_logits=False, init_weights=False),
    "vgg16": _torchvision("vgg16", *_IMAGE),
    "deeplabv3_resnet50": _torchvision("deeplabv3_resnet50", 3, 520, 520, weights_backbone=None, aux_loss=False),
    "deeplabv3_mobilenet_v3_large": _torchvision(
        "deeplabv3_mobilenet_v3_large", 3, 512, 512, weights_backbone=None, aux_loss=False
    ),
    "r2plus1d_18": _torchvision("r2plus1d_18", 3, 16, 112, 112),
    "bert_base": _transformers("BertModel", "BertConfig", {"input_ids": _text(128)}),
    "gpt2": _transformers("GPT2Model", "GPT2Config", {"input_ids": _text(512)}),
    "t5_base": _transformers(
        "T5Model",
        "T5Config",
        {"input_ids": _text(256), "decoder_input_ids": _text(64)},
        d_model=768,
        d_ff=3072,
        num_layers=12,
        num_heads=12,
    ),
    "whisper_encoder": _transformers(
        "WhisperEncoder",
        "WhisperConfig",
        {"input_features": _noise(80, 3000)},
        d_model=512,
        encoder_layers=6,
        encoder_attention_heads=8,
    ),
    "wav2vec2_base": _transformers("Wav2Vec2Model", "Wav2Vec2Config", {"input_values": _noise(160000)}),
    "clip_vision": _transformers("CLIPVisionModel", "CLIPVisionConfig", {"pixel_values": _noise(*_IMAGE)}),
    "clip_text": _transformers("CLIPTextModel", "CLIPTextConfig", {"input_ids": _text(77)}, eos_token_id=2),
    "sam_encoder": _transformers("SamVisionModel", "SamVisionConfig", {"pixel_values": _noise(3, 1024, 1024)}),
    "segformer_b0": _transformers("SegformerModel", "SegformerConfig", {"pixel_values": _noise(3, 512, 512)}),
    "detr": _detector,
    "llama_prefill": _transformers("LlamaModel", "LlamaConfig", {"input_ids": _text(512)}, **_LLAMA),
    "llama_decode": lambda batch: (
        Llama(1, 1024, 2048, 16, 4, 8),
        (torch.randn(batch, 1, 2048), torch.randn(8, 2, batch, 4, 1024, 128)),
    ),
    "sd_unet": _diffusion,
    "sd_decoder": lambda batch: (ImageDecoder(), (torch.randn(batch, 4, 64, 64),)),
}
"""Makers by name, called with the batch. Texts have fewer words than the vocabularies, pictures are noise."""

DEFAULT = (
    "vit_b_16.1 vit_b_16.32 swin_t.8 swin_v2_t.8 convnext_tiny.8 regnet_y_800mf.8 regnet_y_8gf.8 resnext50_32x4d.8 "
    "efficientnet_b0.1 efficientnet_b0.32 efficientnet_v2_s.8 densenet121.8 shufflenet_v2_x1_0.32 inception_v3.8 "
    "mobilenet_v3_large.8 maxvit_t.8 deeplabv3_resnet50.1 deeplabv3_mobilenet_v3_large.1 r2plus1d_18.1 bert_base.8 "
    "gpt2.1 t5_base.4 whisper_encoder.1 wav2vec2_base.1 clip_vision.8 clip_text.8 sam_encoder.1 segformer_b0.4 detr.1 "
    "llama_prefill.1 llama_decode.1 sd_unet.2 sd_decoder.1"
).split()
"""Name and batch of what is measured unless something else is asked for."""


def network(name: str, batch: int) -> Made:
    """A module in float32 in eval mode, and inputs; the same for each name."""
    torch.manual_seed(zlib.crc32(name.encode()) & 0xFFFF)
    with_operators()
    module, inputs = NETWORKS[name](batch)
    fill_zero_weights(module)
    return module.eval(), inputs
