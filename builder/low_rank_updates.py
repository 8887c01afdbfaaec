"""`mlirt.lora_merged`: weights with low-rank updates (LoRA) added, for `refit`: an engine for each adapter."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from mlirt.errors import InvalidInputError

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_FACTOR = re.compile(r"(?:base_model\.model\.)?(?P<layer>.+)\.lora_(?P<embedding>embedding_)?(?P<factor>[AB])\b.*")
"""How PEFT calls factors: `base_model.model.encoder.0.query.lora_A.weight`, with the adapter's name behind `lora_A`."""


def lora_merged(
    weights: Mapping[str, Array],
    adapter: Mapping[str, Array],
    scale: float | Mapping[str, float] = 1.0,
    *,
    transposed: bool = False,
) -> dict[str, Array]:
    """The weights that an adapter changes, with scale * B A added; `mlirt.refit(engine, lora_merged(..))` takes them.

    weights: by name, such as `refittable_weights` or a state dictionary gives them: [out, in], or [out, in, ..] of a
        convolution.
    adapter: the factors under PEFT's names: `<layer>.lora_A.weight` [rank, in, ..] and `<layer>.lora_B.weight`
        [out, rank, ..] change `<layer>.weight`; `lora_embedding_A` [rank, rows] and `lora_embedding_B` [width, rank]
        an embedding.
    scale: alpha / rank, for all layers or by layer (1 for those that are not named).
    transposed: weights are stored [in, out], as in GPT-2 (PEFT's `fan_in_fan_out`).

    Raises `InvalidInputError` for a factor without its other one, for a layer that has no weight, and for other shapes.
    """
    found: dict[str, Array] = {}
    for layer, (factors, is_embedding) in _pairs(adapter).items():
        name = next((one for one in (f"{layer}.weight", layer) if one in weights), None)
        if name is None:
            raise InvalidInputError(f"the adapter changes {layer!r}, of which there is no weight {layer + '.weight'!r}")
        weight, (first, last) = np.asarray(weights[name]), factors
        if first.ndim < 2 or last.ndim < 2 or first.shape[0] != last.shape[1]:
            raise InvalidInputError(f"{layer}: the factors {list(first.shape)} and {list(last.shape)} have no rank")
        product = last.reshape(len(last), -1).astype(np.float32) @ first.reshape(len(first), -1).astype(np.float32)
        update = product.T if is_embedding or transposed else product
        if update.size != weight.size or update.shape[0] != weight.shape[0]:
            raise InvalidInputError(
                f"{layer}: the update is of shape {list(update.shape)}, its weight of {list(weight.shape)}"
            )
        factor = scale.get(layer, 1.0) if isinstance(scale, Mapping) else scale
        found[name] = (weight.astype(np.float32) + factor * update.reshape(weight.shape)).astype(weight.dtype)
    return found


def _pairs(adapter: Mapping[str, Array]) -> dict[str, tuple[tuple[Array, Array], bool]]:
    """The factors A and B of each layer, and whether it is an embedding."""
    halves: dict[str, dict[str, Array]] = {}
    embeddings: set[str] = set()
    for name, array in adapter.items():
        match = _FACTOR.fullmatch(name)
        if match is None:
            raise InvalidInputError(f"{name!r} is no factor of a low-rank update; expected <layer>.lora_A.weight, or B")
        halves.setdefault(match["layer"], {})[match["factor"]] = np.asarray(array)
        if match["embedding"]:
            embeddings.add(match["layer"])
    for layer, both in halves.items():
        if len(both) < 2:
            raise InvalidInputError(f"{layer}: the adapter has the factor {min(both)} alone")
    return {layer: ((both["A"], both["B"]), layer in embeddings) for layer, both in halves.items()}
