"""The networks of the benchmark as ONNX files, with seeded random weights: no download, the same bits everywhere.

    python bench/networks.py OUT_DIR [--only resnet50,mobilenet_v2,bert_base] [--batch 1,8,32,128]

Without --batch the first dimension is open (`batch`), to be fixed when the network is built.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from convolutional_networks import mobilenet_v2, resnet50
from transformer_network import BertSizes, bert_base

Array = np.ndarray[Any, np.dtype[Any]]

NETWORKS: dict[str, Callable[[int | str], onnx.ModelProto]] = {
    "resnet50": resnet50,
    "mobilenet_v2": mobilenet_v2,
    "bert_base": bert_base,
}


def inputs(name: str, batch: int, seed: int = 0) -> dict[str, Array]:
    """Plausible inputs by name; of the sentences every second one is shorter than the others."""
    random = np.random.default_rng(seed)
    if name != "bert_base":
        return {"input": random.standard_normal((batch, 3, 224, 224)).astype(np.float32)}
    length = BertSizes.length
    mask = np.ones((batch, length), np.int64)
    mask[1::2, length * 3 // 4 :] = 0
    ids = random.integers(1000, BertSizes.vocabulary, (batch, length))
    return {"input_ids": ids * mask, "attention_mask": mask, "token_type_ids": np.zeros((batch, length), np.int64)}


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default=",".join(NETWORKS), help="names (default: %(default)s)")
    parser.add_argument("--batch", default="", help="batch sizes, one file for each")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.only.split(","):
        for batch in _batches(arguments.batch):
            suffix = f"_b{batch}" if isinstance(batch, int) else ""
            path = arguments.folder / f"{name}{suffix}.onnx"
            path.write_bytes(NETWORKS[name](batch).SerializeToString())
            print(f"{path}  {path.stat().st_size / 2**20:.1f} MiB")


def _batches(text: str) -> list[int | str]:
    return [int(part) for part in text.split(",")] if text else ["batch"]


if __name__ == "__main__":
    main()
