"""Tile shapes of float32 products on a GPU: the machine code of each, and its times against PyTorch's.

    python bench/gpu_product_shapes.py [--sizes 4096x4096x4096,..] [--shapes "128x128x16 2x2 8x16 s3 r2 l8 t",..]
                                       [--flips nn,tn] [--no-device] [-o times.json]

A shape is rows x columns x depth of a tile, the warps below and beside each other, the rows and columns of a thread,
and after that the stages, the blocks that a processor has at once, the lines that are unrolled, whether operands are
transposed on their way, whether matrix units multiply (bf16x6), and the parts of a sum, such as c4. Without `--shapes`
those that tactics choose from are taken. With `--no-device` the main loop's machine code is counted: multiply-adds, or
products of matrix units, their share of all instructions, and those multiply-adds that wait for a bank of registers.
Else times are medians, in microseconds, PyTorch's those of the same product without TF32, and the file is one for
bench/fit_estimates.py.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest import mock

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]

from mlirt.builder.host import cuda_target  # noqa: E402
from mlirt.builder.machine_code.disassembler import disassemble  # noqa: E402
from mlirt.builder.machine_code.listing import Instruction, Listing, parse_listing  # noqa: E402
from mlirt.builder.numba_cuda import compile_kernels  # noqa: E402
from mlirt.builder.tactics.early_compiler import cuda_plan_code  # noqa: E402
from mlirt.builder.tactics.selection import CALLS  # noqa: E402
from mlirt.builder.tactics.sites import find_sites  # noqa: E402
from mlirt.builder.tactics.trial import Trial, feeds, trials  # noqa: E402
from mlirt.builder.tactics.tuning import device_timer  # noqa: E402
from mlirt.dialects.context import RtContext  # noqa: E402
from mlirt.dialects.registry import register_dialects  # noqa: E402
from mlirt.dialects.source_parser import parse_source  # noqa: E402
from mlirt.kernels.lib.cuda.tiles import problem  # noqa: E402
from mlirt.kernels.lib.cuda.tiles.shape import SINGLE, WarpTile  # noqa: E402

_SHAPE = re.compile(
    r"(\d+)x(\d+)x(\d+) (\d+)x(\d+) (\d+)x(\d+)(?: s(?P<s>\d+))?(?: r(?P<r>\d+))?(?: l(?P<l>\d+))?(?P<t> t)?"
    r"(?P<x> bf16x6)?(?: (?P<split>[pc])(?P<parts>\d+))?"
)
_REGISTER = re.compile(r"\bR(\d+)(\.reuse)?")


def shape_of(text: str) -> WarpTile:
    """A shape as it is written on the command line."""
    match = _SHAPE.fullmatch(text)
    if match is None:
        raise SystemExit(f"{text!r} is no shape")
    rows, columns, depth, below, beside, own_rows, own_columns = (int(match[number]) for number in range(1, 8))
    tile = WarpTile(rows, columns, depth, below, beside, int(match["r"] or 2), "float", int(match["s"] or 3))
    tile = replace(tile, parts=int(match["parts"] or 1), is_cluster=match["split"] == "c", is_split=bool(match["x"]))
    return replace(tile, piece=(own_rows, own_columns), lines=int(match["l"] or 4), transposes=bool(match["t"]))


def text_of(shape: WarpTile) -> str:
    """The same the other way round."""
    tile = f"{shape.rows}x{shape.columns}x{shape.depth} {shape.warp_rows}x{shape.warp_columns}"
    piece = f"{shape.piece[0]}x{shape.piece[1]} s{shape.stages} r{shape.resident} l{shape.lines}"
    split = f" {'c' if shape.is_cluster else 'p'}{shape.parts}" if shape.parts > 1 else ""
    return f"{tile} {piece}{' t' * shape.transposes}{' bf16x6' * shape.is_split}{split}"


@dataclass(frozen=True)
class Size:
    """A product of (batch, rows, columns, depth) whose left, or right, matrices may be given transposed."""

    numbers: tuple[int, int, int, int]
    flips: tuple[bool, bool]

    @staticmethod
    def of(text: str, flips: str) -> Size:
        """Such as `4096x4096x4096`, or `16x1024x1024x2048` with a batch, and `tn` with the left one transposed."""
        *batch, rows, columns, depth = map(int, text.split("x"))
        return Size((batch[0] if batch else 1, rows, columns, depth), (flips[0] == "t", flips[1] == "t"))

    def __str__(self) -> str:
        flips = "".join("nt"[one] for one in self.flips)
        return "x".join(map(str, self.numbers[self.numbers[0] == 1 :])) + f" {flips}"

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Of both factors as they are given."""
        batch, rows, columns, depth = self.numbers
        left, right = (rows, depth), (depth, columns)
        outer = () if batch == 1 else (batch,)
        return (
            (*outer, *(left[::-1] if self.flips[0] else left)),
            (*outer, *(right[::-1] if self.flips[1] else right)),
        )

    @property
    def text(self) -> str:
        """A network of the product alone."""
        batch, rows, columns, _ = self.numbers
        result = (*(() if batch == 1 else (batch,)), rows, columns)
        left, right, output = (
            f"tensor<{''.join(f'{size}x' for size in shape)}f32>" for shape in (*self.shapes, result)
        )
        flips = [str(flip).lower() for flip in self.flips]
        return f"""
        func.func @main(%x: {left} {{trt.name = "x"}}, %w: {right} {{trt.name = "w"}})
            -> ({output} {{trt.name = "y"}}) {{
          %y = fused.matmul %x, %w {{transpose_lhs = {flips[0]}, transpose_rhs = {flips[1]}}} : ({left}, {right})
              -> {output} {{
          ^bb0(%acc: f32):
            fused.yield %acc : f32
          }}
          func.return %y : {output}
        }}"""


def trial_of(size: Size, shape: WarpTile) -> Trial | None:
    """The product with a shape, if it can be lowered so."""
    context = RtContext()
    register_dialects(context)
    module, _ = parse_source(context, size.text, "product.mlir")
    target = cuda_target()
    (site,) = find_sites(module, context, target, fewest=1)
    with mock.patch.object(problem, "SINGLE", (replace(shape, parts=1, is_cluster=False),)):
        made = trials(site.ops[0], [f"cuda_tiles:{shape.name}"], context, target, {})
    return made[0] if made else None


def bank_conflicts(code: Sequence[Instruction]) -> int:
    """Multiply-adds that read three registers of one bank: registers are in two banks of two ports each.

    What an instruction marks to be used again is not read by the next one in the same place.
    """
    kept: dict[int, str] = {}
    conflicts = 0
    for one in code:
        if one.name == "FFMA":
            found = [_REGISTER.fullmatch(part.strip("-|")) for part in one.parts[1:4]]
            registers = [match[1] if match else "" for match in found]
            read = {name for place, name in enumerate(registers) if name and kept.get(place) != name}
            conflicts += max(sum(int(name) % 2 == bank for name in read) for bank in (0, 1)) > 2
            kept = {place: match[1] for place, match in enumerate(found) if match and match[2]}
        elif one.name not in ("LDS", "LDGSTS"):  # these have collectors of their own
            kept = {}
    return conflicts


def main_loop(listing: Listing) -> Sequence[Instruction]:
    """The innermost loop that has most multiply-adds."""
    best: Sequence[Instruction] = ()
    for one in listing.instructions:
        starts = [listing.labels[place] for place in one.places if listing.labels.get(place, one.number) < one.number]
        for start in starts if one.name == "BRA" else ():
            code = listing.instructions[start : one.number + 1]
            if _products(code) > _products(best):
                best = code
    return best


def _products(code: Sequence[Instruction]) -> tuple[int, int]:
    """Products of matrix units, and multiply-adds."""
    names = [one.name.partition(".")[0] for one in code]
    return names.count("HMMA"), names.count("FFMA")


def about_code(cubin: bytes) -> str:
    """Counts of a kernel's main loop."""
    code = main_loop(parse_listing(disassemble([cubin])[0]))
    registers = max((int(name) for one in code for name, _ in _REGISTER.findall(one.operands)), default=0) + 1
    units, multiply_adds = _products(code)
    count = units or multiply_adds
    share = count / max(len(code), 1)
    return f"{count} of {len(code)} = {share:.3f}, {bank_conflicts(code)} conflicts, {registers} registers"


def times_of_torch(size: Size) -> float:
    """Microseconds of PyTorch's product without TF32: the median of 20 runs after 3."""
    torch: Any = import_module("torch")
    given: list[Any] = [torch.randn(shape, device="cuda") for shape in size.shapes]
    left, right = (one.mT if flip else one for one, flip in zip(given, size.flips, strict=True))
    found: list[float] = []
    for _ in range(23):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        torch.matmul(left, right)
        end.record()
        end.synchronize()
        found.append(1e3 * start.elapsed_time(end))
    return sorted(found[3:])[10]


def times_of_shapes(made: dict[tuple[Size, WarpTile], Trial], code: dict[str, dict[str, Any]]) -> dict[Any, float]:
    """Microseconds of the trials on the device."""
    timer, found = device_timer(), dict[Any, float]()
    assert timer is not None
    for key, trial in made.items():
        count = 2 if _products_of(key[0]) > 1e10 else CALLS
        plan = trial.plan(count, cuda_plan_code({n: code[n] for n in trial.sources}, cuda_target().arch))
        (time,) = timer.times([plan], [trial.shapes], [feeds(plan, trial.shapes, {})])
        found[key] = time / count
    return found


def _products_of(size: Size) -> float:
    batch, rows, columns, depth = size.numbers
    return float(batch) * rows * columns * depth


def main() -> None:
    """Compile, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="4096x4096x4096")
    parser.add_argument("--shapes", default=",".join(map(text_of, SINGLE)))
    parser.add_argument("--flips", default="nn")
    parser.add_argument("--no-device", action="store_true")
    parser.add_argument("-o", dest="output", type=Path)
    options = parser.parse_args()
    shapes = [shape_of(text.strip()) for text in options.shapes.split(",")]
    sizes = [Size.of(text, flips) for text in options.sizes.split(",") for flips in options.flips.split(",")]
    made = {(size, shape): trial_of(size, shape) for size in sizes for shape in shapes}
    right = {key: trial for key, trial in made.items() if trial is not None}
    sources = {name: source for trial in right.values() for name, source in trial.sources.items()}
    code: dict[str, Any] = dict(compile_kernels(sources, architectures=[cuda_target().arch]))
    times = {} if options.no_device else times_of_shapes(right, code)
    rows: list[dict[str, Any]] = []
    for size in sizes:
        peer = 0.0 if options.no_device else times_of_torch(size)
        print(f"{size}: PyTorch {peer:.1f} us" if peer else str(size))
        for shape in shapes:
            trial, time = right.get((size, shape)), times.get((size, shape))
            if trial is None:
                continue
            name = next(iter(trial.sources))
            (cubin,) = [one.code for one in code[name].values()]
            measured = (
                f"{time:9.1f} us {2e-6 * _products_of(size) / time:6.2f} TFLOP/s {peer / time:5.2f}" if time else ""
            )
            print(f"  {text_of(shape):34} {measured or about_code(cubin)}", flush=True)
        best = {f"cuda_tiles:{shape.name}": round(times[size, shape], 2) for shape in shapes if (size, shape) in times}
        rows.append({"network": size.text, "microseconds": best})
    if options.output is not None:
        options.output.write_text(json.dumps(rows, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
