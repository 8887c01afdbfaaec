"""The networks of MLPerf Inference: their models, their samples, and how far an answer may be from the right one.

Weights are random and seeded: what a network takes does not depend on them. Samples are random, too; the sentences of
BERT have lengths as SQuAD's questions have them, 180 tokens in the mean, padded to 384; those of `.._lengths` are not
padded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import onnx
from convolutional_networks import mobilenet_v2, resnet50
from detection_network import SMALL, retinanet
from diffusion_network import SMALL_DIFFUSION, DiffusionSizes, diffusion
from transformer_network import BASE_QUESTIONS, LARGE_QUESTIONS, BertSizes, bert_questions
from volume_network import unet3d

from mlperf.closeness import Closeness, of_boxes, of_numbers

Array = np.ndarray[Any, np.dtype[Any]]
Arrays = dict[str, Array]


@dataclass(frozen=True)
class Workload:
    """A network, what is asked of it, and the bound on its 99th percentile in the Server scenario, in seconds.

    `model(batch)` has inputs whose first dimension is `batch`, a number or a name. `sample(index)` gives the inputs of
    one sample, without that dimension. `closeness(found, right)`: how far answers of a sample are from the right ones.
    """

    name: str
    model: Callable[[int | str], onnx.ModelProto]
    sample: Callable[[int], Arrays]
    closeness: Closeness
    server_seconds: float
    kinds: tuple[str, ...]
    """The operators that become integers in int8: those with weights, and what lies between them."""
    lengths: tuple[int, int, int] | None = None
    """Where samples have lengths of their own: the least, the usual and the most. Inputs and outputs are
    [batch, length, ..], and zeros behind a sample's end change nothing in front of it.
    """
    half: Callable[[int | str], onnx.ModelProto] | None = None
    """The model whose weights are halves, where float32 would be too large; what goes in and out is the same."""


_CONVOLUTIONS = ("Conv", "Gemm", "Add", "MaxPool", "GlobalAveragePool")


def _normal(shape: tuple[int, ...], index: int) -> Arrays:
    return {"input": np.random.default_rng(index).standard_normal(shape, np.float32)}


def _picture(pixels: int) -> Callable[[int], Arrays]:
    return partial(_normal, (3, pixels, pixels))


def _volume(window: int) -> Callable[[int], Arrays]:
    return partial(_normal, (1, window, window, window))


def _question(sizes: BertSizes, index: int, is_padded: bool = True) -> Arrays:
    """Tokens of a question and of a text, then padding."""
    random = np.random.default_rng(index)
    length = min(max(int(170 * sizes.length / 384 * np.exp(0.35 * random.standard_normal())), 8), sizes.length)
    tokens = np.zeros(sizes.length, np.int64)
    tokens[:length] = random.integers(1, sizes.vocabulary, length)
    places = np.arange(sizes.length)
    mask, text = places < length, (places >= min(12, length // 2)) & (places < length)
    arrays = {
        "input_ids": tokens,
        "attention_mask": mask.astype(np.int64),
        "token_type_ids": text.astype(np.int64),
    }
    return arrays if is_padded else {name: array[:length] for name, array in arrays.items()}


def _questions(name: str, sizes: BertSizes, seconds: float) -> list[Workload]:
    """BERT whose questions are padded to `sizes.length`, and with questions of their own lengths."""
    padded = Workload(
        name,
        partial(bert_questions, sizes=sizes),
        partial(_question, sizes),
        of_numbers,
        seconds,
        ("MatMul",),
    )
    return [
        padded,
        replace(
            padded,
            name=f"{name}_lengths",
            model=partial(bert_questions, sizes=replace(sizes, open_length="length")),
            sample=partial(_question, sizes, is_padded=False),
            lengths=(8, sizes.length // 2, sizes.length),
        ),
    ]


def _prompt(sizes: DiffusionSizes, index: int) -> Arrays:
    """Tokens of two texts, and noise."""
    random = np.random.default_rng(index)
    tokens = random.integers(0, sizes.vocabulary, (2, sizes.tokens))
    return {"tokens": tokens, "noise": random.standard_normal((4, sizes.side, sizes.side), np.float32)}


def _diffusion(name: str, sizes: DiffusionSizes) -> Workload:
    return Workload(
        name,
        partial(diffusion, sizes=sizes),
        partial(_prompt, sizes),
        of_numbers,
        20.0,
        ("Conv", "MatMul"),
        half=partial(diffusion, sizes=sizes, is_half=True),
    )


_TINY_BERT = BertSizes(layers=2, width=64, heads=4, hidden=128, length=32, vocabulary=500, positions=32)

WORKLOADS: Mapping[str, Workload] = {
    one.name: one
    for one in (
        Workload("resnet50", resnet50, _picture(224), of_numbers, 0.015, _CONVOLUTIONS),
        Workload("mobilenet_v2", mobilenet_v2, _picture(224), of_numbers, 0.015, _CONVOLUTIONS),
        Workload("retinanet", retinanet, _picture(800), of_boxes, 0.1, _CONVOLUTIONS),
        *_questions("bert_base", BASE_QUESTIONS, 0.13),
        *_questions("bert_large", LARGE_QUESTIONS, 0.13),
        Workload("unet3d", unet3d, _volume(128), of_numbers, 60.0, ("Conv", "ConvTranspose")),
        _diffusion("diffusion", DiffusionSizes()),
        # Of the same forms, for tests.
        Workload(
            "tiny_detector",
            partial(retinanet, sizes=SMALL),
            _picture(SMALL.pixels),
            of_boxes,
            0.1,
            _CONVOLUTIONS,
        ),
        *_questions("tiny_bert", _TINY_BERT, 0.1),
        _diffusion("tiny_diffusion", SMALL_DIFFUSION),
        Workload(
            "tiny_unet",
            partial(unet3d, window=16, channels=(8, 16, 32)),
            _volume(16),
            of_numbers,
            0.1,
            ("Conv", "ConvTranspose"),
        ),
    )
}
