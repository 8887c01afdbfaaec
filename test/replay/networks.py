"""The networks of `record.json`: small ones that together have most kinds of kernels."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import onnx

_HERE = Path(__file__).parent
sys.path += [str(_HERE.parent / "support"), str(_HERE.parents[1] / "bench")]

from family_models import FAMILIES  # noqa: E402  (found only by the path above)
from growth_networks import chain, dynamic_images, transformer  # noqa: E402


def _family(name: str) -> Callable[[], onnx.ModelProto]:
    return lambda: FAMILIES[name]()[0]


NETWORKS: dict[str, Callable[[], onnx.ModelProto]] = {
    "chain": lambda: chain(6),
    "images": lambda: dynamic_images(5),
    "transformer": lambda: transformer(1),
    **{name: _family(name) for name in ("attention", "resize", "rnn", "topk", "window")},
}
