"""Read a photographed page: PP-OCR's recogniser, built for this machine and run on each line of the picture.

The network and the picture ship inside published packages. One engine serves lines of every width.
Run it with `make demo`, or `python examples/recognise_text.py [--target cpu] [--image page.png]`.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from packaged_files import PAGE, RECOGNISER, fetch
from PIL import Image, ImageFilter

import mlirt

if TYPE_CHECKING:
    Array = np.ndarray[Any, np.dtype[Any]]

LINE_HEIGHT = 48
BLANK = 0
OUTPUT = Path("build/demo")


def text_lines(page: Image.Image) -> list[Image.Image]:
    """Cut a page into its lines: rows with much ink, measured against the local paper colour."""
    grey = page.convert("L")
    paper = np.asarray(grey.filter(ImageFilter.BoxBlur(12)), np.float32)
    ink = (paper - np.asarray(grey, np.float32) > 20).sum(axis=1)
    inked = [*(ink > 0.12 * ink.max()), False]
    lines: list[Image.Image] = []
    start: int | None = None
    for row, dark in enumerate(inked):
        if dark and start is None:
            start = row
        elif not dark and start is not None:
            if row - start >= 7:
                lines.append(page.crop((0, max(0, start - 3), page.width, row + 3)))
            start = None
    return lines


def network_input(line: Image.Image) -> Array:
    """A line as the network wants it: `[1, 3, 48, width]` float32 between -1 and 1."""
    width = round(LINE_HEIGHT * line.width / line.height)
    pixels = np.asarray(line.convert("RGB").resize((width, LINE_HEIGHT), Image.Resampling.BICUBIC), np.float32)
    return np.ascontiguousarray((pixels / 127.5 - 1).transpose(2, 0, 1)[None])


def decode(scores: Array, alphabet: list[str]) -> str:
    """Greedy decoding of `[steps, characters]` scores: repeats and blanks drop out."""
    best = scores.argmax(axis=1)
    kept = [int(k) for k, before in zip(best, [BLANK, *best[:-1]], strict=True) if k not in (BLANK, before)]
    return "".join(alphabet[k - 1] if k <= len(alphabet) else " " for k in kept)


def alphabet_of(model: Path) -> list[str]:
    """The characters that the recogniser knows, from the model's metadata."""
    import onnx

    properties = {entry.key: entry.value for entry in onnx.load_model_from_string(model.read_bytes()).metadata_props}
    return properties["character"].split("\n")


def main() -> int:
    """Build, run and report; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="auto", choices=["auto", "cpu", "cuda", "reference"])
    parser.add_argument("--image", type=Path, help="a picture of printed text (default: a packaged one)")
    parser.add_argument("--cache", type=Path, default=Path(".cache/demo"), help="where fetched files are kept")
    arguments = parser.parse_args()

    model = fetch(RECOGNISER, arguments.cache)
    page = Image.open(arguments.image or fetch(PAGE, arguments.cache))
    OUTPUT.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    try:
        engine = mlirt.compile(model, target=arguments.target, dump_phases=OUTPUT / "phases")
    except mlirt.MlirtError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"built {model.name} in {time.perf_counter() - started:.1f} s")

    alphabet = alphabet_of(model)
    for number, line in enumerate(text_lines(page), start=1):
        feed = {"x": network_input(line)}
        engine.run(feed)
        started = time.perf_counter()
        (scores,) = engine.run(feed).values()
        milliseconds = (time.perf_counter() - started) * 1e3
        print(f"line {number}, {feed['x'].shape[-1]:4d} pixels, {milliseconds:6.2f} ms: {decode(scores[0], alphabet)}")

    if arguments.target != "reference":
        engine.save(OUTPUT / "recogniser.plan")
        print(f"plan file: {OUTPUT / 'recogniser.plan'}")
    print(f"the IR after each phase: {OUTPUT / 'phases'}/")
    return 0


if __name__ == "__main__":
    sys.exit(main())
