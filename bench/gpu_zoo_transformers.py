"""The zoo's networks from transformers: small configurations of many model classes, attention written out."""

# transformers and PyTorch are not among the packages that are checked here: what comes from them has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Inputs = Callable[[np.random.Generator], dict[str, Array]]
_WORDS = 512


@dataclass(frozen=True)
class Model:
    """The class of a model, that of its configuration, its sizes, its inputs, and the output that is compared."""

    kind: str
    config: str
    sizes: Mapping[str, Any]
    inputs: Inputs
    output: str = "last_hidden_state"


def _text(batch: int, length: int, masked: bool = False) -> Inputs:
    """Words, and perhaps a mask in which every second text is shorter."""

    def make(random: np.random.Generator) -> dict[str, Array]:
        found = {"input_ids": random.integers(5, _WORDS, (batch, length))}
        if masked:
            mask = np.ones((batch, length), np.int64)
            mask[1::2, length * 3 // 4 :] = 0
            found["attention_mask"] = mask
        return found

    return make


def _noise(name: str, *shape: int) -> Inputs:
    return lambda random: {name: random.standard_normal(shape).astype(np.float16).astype(np.float32)}


def _image(batch: int, size: int) -> Inputs:
    return _noise("pixel_values", batch, 3, size, size)


def _encoder(width: int = 192, heads: int = 6, layers: int = 3, **more: Any) -> dict[str, Any]:
    sizes = {"hidden_size": width, "num_attention_heads": heads, "num_hidden_layers": layers}
    return {**sizes, "intermediate_size": 3 * width, **more}


def _language(width: int = 192, heads: int = 6, shared: int = 2, layers: int = 3, **more: Any) -> dict[str, Any]:
    return _encoder(width, heads, layers, num_key_value_heads=shared, vocab_size=_WORDS, **more)


_GPT2 = {"n_embd": 192, "n_head": 6, "n_layer": 3, "vocab_size": _WORDS}
_PICTURE = {"image_size": 96, "patch_size": 16}
_AUDIO = _encoder(128, 4, 2, conv_dim=(64, 64), conv_kernel=(10, 3), conv_stride=(5, 2), num_feat_extract_layers=2)

MODELS: dict[str, Model] = {
    "bert.b5": Model("BertModel", "BertConfig", _encoder(vocab_size=_WORDS), _text(5, 67, True)),
    "roberta.b2": Model("RobertaModel", "RobertaConfig", _encoder(vocab_size=_WORDS), _text(2, 33)),
    "distilbert.b7": Model(
        "DistilBertModel",
        "DistilBertConfig",
        {"dim": 144, "n_heads": 4, "n_layers": 3, "hidden_dim": 400, "vocab_size": _WORDS},
        _text(7, 21, True),
    ),
    "albert.b3": Model("AlbertModel", "AlbertConfig", _encoder(vocab_size=_WORDS, embedding_size=64), _text(3, 45)),
    "electra.b4": Model("ElectraModel", "ElectraConfig", _encoder(vocab_size=_WORDS), _text(4, 50, True)),
    "mpnet.b2": Model("MPNetModel", "MPNetConfig", _encoder(vocab_size=_WORDS), _text(2, 40)),
    "deberta_v2.b2": Model(
        "DebertaV2Model",
        "DebertaV2Config",
        _encoder(vocab_size=_WORDS, relative_attention=True, pos_att_type=["p2c", "c2p"], max_relative_positions=32),
        _text(2, 31),
    ),
    "modernbert.b3": Model(
        "ModernBertModel", "ModernBertConfig", _encoder(vocab_size=_WORDS, pad_token_id=0), _text(3, 48)
    ),
    "esm.b2": Model("EsmModel", "EsmConfig", _encoder(vocab_size=_WORDS, pad_token_id=1), _text(2, 37)),
    "t5_encoder.b3": Model(
        "T5EncoderModel",
        "T5Config",
        {"d_model": 160, "d_kv": 40, "d_ff": 320, "num_heads": 4, "num_layers": 3, "vocab_size": _WORDS},
        _text(3, 51),
    ),
    "gpt2.b3": Model("GPT2Model", "GPT2Config", _GPT2, _text(3, 61)),
    "gpt_neox.b2": Model("GPTNeoXModel", "GPTNeoXConfig", _encoder(vocab_size=_WORDS), _text(2, 43)),
    "gptj.b1": Model("GPTJModel", "GPTJConfig", {**_GPT2, "rotary_dim": 16}, _text(1, 58)),
    "opt.b4": Model(
        "OPTModel",
        "OPTConfig",
        {**_encoder(vocab_size=_WORDS), "ffn_dim": 400, "word_embed_proj_dim": 192},
        _text(4, 29),
    ),
    "bloom.b2": Model(
        "BloomModel", "BloomConfig", {"hidden_size": 192, "n_head": 6, "n_layer": 3, "vocab_size": _WORDS}, _text(2, 39)
    ),
    "llama.b2": Model("LlamaModel", "LlamaConfig", _language(), _text(2, 77)),
    "mistral.b5": Model("MistralModel", "MistralConfig", _language(head_dim=40), _text(5, 19)),
    "qwen2.b3": Model("Qwen2Model", "Qwen2Config", _language(), _text(3, 35)),
    "qwen3.b1": Model("Qwen3Model", "Qwen3Config", _language(head_dim=64), _text(1, 129)),
    "gemma.b2": Model("GemmaModel", "GemmaConfig", _language(shared=1, head_dim=48), _text(2, 26)),
    "gemma2.b2": Model("Gemma2Model", "Gemma2Config", _language(head_dim=32, sliding_window=16), _text(2, 41)),
    "phi.b3": Model("PhiModel", "PhiConfig", _language(), _text(3, 23)),
    "phi3.b2": Model("Phi3Model", "Phi3Config", _language(pad_token_id=0), _text(2, 55)),
    "falcon.b2": Model(
        "FalconModel",
        "FalconConfig",
        {"hidden_size": 192, "num_attention_heads": 6, "num_hidden_layers": 3, "vocab_size": _WORDS},
        _text(2, 44),
    ),
    "stablelm.b1": Model("StableLmModel", "StableLmConfig", _language(), _text(1, 90)),
    "olmo2.b2": Model("Olmo2Model", "Olmo2Config", _language(), _text(2, 38)),
    "cohere.b2": Model("CohereModel", "CohereConfig", _language(), _text(2, 30)),
    "granite.b2": Model("GraniteModel", "GraniteConfig", _language(), _text(2, 46)),
    "mixtral.b2": Model(
        "MixtralModel",
        "MixtralConfig",
        _language(num_local_experts=4, num_experts_per_tok=2, experts_implementation="batched_mm"),
        _text(2, 24),
    ),
    "mamba.b2": Model(
        "MambaModel", "MambaConfig", {"hidden_size": 96, "num_hidden_layers": 2, "vocab_size": _WORDS}, _text(2, 12)
    ),
    "fnet.b2": Model("FNetModel", "FNetConfig", _encoder(128, vocab_size=_WORDS), _text(2, 32)),
    "vit.b6": Model("ViTModel", "ViTConfig", _encoder(**_PICTURE), _image(6, 96)),
    "deit.b3": Model("DeiTModel", "DeiTConfig", _encoder(**_PICTURE), _image(3, 96)),
    "beit.b2": Model("BeitModel", "BeitConfig", _encoder(**_PICTURE, use_relative_position_bias=True), _image(2, 96)),
    "dinov2.b5": Model("Dinov2Model", "Dinov2Config", _encoder(image_size=98, patch_size=14), _image(5, 98)),
    "swin_hf.b2": Model(
        "SwinModel",
        "SwinConfig",
        {"image_size": 112, "embed_dim": 48, "depths": [2, 2], "num_heads": [3, 6]},
        _image(2, 112),
    ),
    "convnextv2.b3": Model(
        "ConvNextV2Model",
        "ConvNextV2Config",
        {"hidden_sizes": [40, 80, 160, 320], "depths": [1, 1, 2, 1]},
        _image(3, 97),
    ),
    "segformer.b2": Model("SegformerModel", "SegformerConfig", {"depths": [1, 1, 1, 1]}, _image(2, 96)),
    "poolformer.b2": Model("PoolFormerModel", "PoolFormerConfig", {"depths": [1, 1, 2, 1]}, _image(2, 96)),
    "mobilevit.b3": Model("MobileViTModel", "MobileViTConfig", {}, _image(3, 96)),
    "mobilenet_v1.b5": Model("MobileNetV1Model", "MobileNetV1Config", {}, _image(5, 97)),
    "levit.b2": Model("LevitModel", "LevitConfig", {"image_size": 112}, _image(2, 112)),
    "detr_backbone.b1": Model(
        "ResNetModel",
        "ResNetConfig",
        {"embedding_size": 32, "hidden_sizes": [64, 128, 192, 256], "depths": [1, 2, 1, 1]},
        _image(1, 133),
    ),
    "clip_vision.b4": Model("CLIPVisionModel", "CLIPVisionConfig", _encoder(**_PICTURE), _image(4, 96)),
    "clip_text.b3": Model("CLIPTextModel", "CLIPTextConfig", _encoder(vocab_size=_WORDS, eos_token_id=2), _text(3, 27)),
    "siglip_vision.b2": Model("SiglipVisionModel", "SiglipVisionConfig", _encoder(**_PICTURE), _image(2, 96)),
    "whisper_encoder.b2": Model(
        "WhisperEncoder",
        "WhisperConfig",
        {
            "d_model": 160,
            "encoder_attention_heads": 5,
            "encoder_layers": 2,
            "encoder_ffn_dim": 320,
            "max_source_positions": 100,
        },
        _noise("input_features", 2, 80, 200),
    ),
    "wav2vec2.b2": Model("Wav2Vec2Model", "Wav2Vec2Config", _AUDIO, _noise("input_values", 2, 1500)),
    "hubert.b1": Model("HubertModel", "HubertConfig", _AUDIO, _noise("input_values", 1, 2100)),
    "patchtst.b3": Model(
        "PatchTSTModel",
        "PatchTSTConfig",
        {
            "num_input_channels": 3,
            "context_length": 64,
            "patch_length": 8,
            "stride": 4,
            "d_model": 96,
            "num_attention_heads": 4,
        },
        _noise("past_values", 3, 64, 3),
    ),
}


def inputs_of(model: Model, seed: int) -> dict[str, Array]:
    """The inputs by the names that the model gives them."""
    return model.inputs(np.random.default_rng(seed))


def module_of(model: Model) -> Any:
    """The model with random weights as a module of positional inputs and one output."""
    import transformers
    from gpu_zoo_modules import NamedOutput

    config = getattr(transformers, model.config)(**model.sizes)
    config._attn_implementation = "eager"  # pyright: ignore[reportPrivateUsage]
    if hasattr(config, "use_cache"):
        config.use_cache = False
    return NamedOutput(class_of(transformers, model.kind)(config), list(inputs_of(model, 0)), model.output)


def class_of(transformers: Any, name: str) -> Any:
    """A class of transformers by its name, Whisper's encoder too, which the package does not list."""
    if hasattr(transformers, name):
        return getattr(transformers, name)
    from transformers.models.whisper import modeling_whisper

    return getattr(modeling_whisper, name)
