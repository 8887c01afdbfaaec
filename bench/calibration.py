"""How long calibrating ResNet-50 takes, in how much memory, and what an engine in int8 weighs against one in float32.

    python bench/calibration.py [--target cpu] [--images 500] [--batch 4]

The pictures are made up while it runs; each is different.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from convolutional_networks import resnet50

import mlirt


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--method", default="entropy")
    parser.add_argument("--engines", action="store_true", help="build both engines too, and compare their sizes")
    arguments = parser.parse_args()
    model = resnet50(arguments.batch)
    watch = Watch()
    found = mlirt.calibrate(
        model, pictures(arguments.images, arguments.batch), arguments.method, target=arguments.target, progress=watch
    )
    seconds = watch.seconds()
    print(
        f"calibrated {len(found.scales)} tensors on {watch.batches * arguments.batch} images in {seconds:.1f} s "
        f"({watch.first:.1f} s until the first batch was counted, {time.process_time():.0f} s of all cores in this "
        f"process); largest memory {watch.peak} MiB, {watch.settled} MiB after the first batch"
    )
    if arguments.engines:
        compare(model, found, arguments.target)


class Watch:
    """When the first batch was done, and the memory then and at the end."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self.batches = 0
        self.first = 0.0
        self.settled = 0

    def __call__(self, text: str, done: int, total: int) -> None:
        if text == "calibrating":
            self.batches = done
            if done == 1:
                self.first, self.settled = self.seconds(), self.peak

    def seconds(self) -> float:
        return time.perf_counter() - self._start

    @property
    def peak(self) -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def pictures(count: int, batch: int) -> Iterator[np.ndarray[Any, np.dtype[np.float32]]]:
    rng = np.random.default_rng(0)
    for _ in range(count // batch):
        yield rng.standard_normal((batch, 3, 224, 224), np.float32)


def compare(model: onnx.ModelProto, found: mlirt.Calibration, target: str) -> None:
    sizes: dict[str, int] = {}
    outputs: dict[str, Any] = {}
    batch = model.graph.input[0].type.tensor_type.shape.dim[0].dim_value
    feeds = {model.graph.input[0].name: next(pictures(batch, batch))}
    for precision in ("fp32", "int8"):
        options: dict[str, Any] = {"calibration": found} if precision == "int8" else {}
        engine = mlirt.compile(model, target, precision, heuristic=True, **options)
        with tempfile.TemporaryDirectory() as folder:
            engine.save(Path(folder) / "plan")
            sizes[precision] = (Path(folder) / "plan").stat().st_size
        (outputs[precision],) = engine.run(feeds).values()
    error = np.sqrt(np.square(outputs["int8"] - outputs["fp32"]).sum() / np.square(outputs["fp32"]).sum())
    print(f"engine: {sizes['int8'] / sizes['fp32']:.3f} of the bytes of fp32; outputs differ by {error:.2%}")


if __name__ == "__main__":
    main()
