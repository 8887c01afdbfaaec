"""How long an experiment with a pass takes a new user: from two files in a folder of their own to a measured gain.

    python bench/research.py [MODEL.onnx ..] [--seconds S] [--folder FOLDER]

The two files are a pass for a pattern of three layers (hard swish as exporters spell it out) and its test. With nothing
in the package changed, the tools write the test's CHECK lines and run it by lit, print the remarks of each model, and
tell by rt-lab whether results are equal and what is gained. Without models ten are generated, half of which have the
pattern. Seconds are wall time. The exit code is 1 where a step fails, where the pass has more than 25 lines, or where
all takes more than 30 minutes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import onnx
from graph_writer import GraphWriter, floats
from request_networks import NETWORKS

MAX_LINES, MAX_SECONDS = 25, 1800.0
_BIN = Path(sys.executable).parent

PASS = '''\
"""Hard swish as exporters spell it out: x * clip(x + 3, 0, 6) / 6."""

from dataclasses import dataclass

from mlirt.dialects.trt.activation import ActivationOp
from mlirt.passes.rules import Rule, RulePass, binary, layer, near, number, op, value

x = value("x")
gate = op(ActivationOp, binary("sum", x, number(3)), kind="clip", alpha=0, beta=near(6))
swish = layer(ActivationOp, x, kind="hard_swish", alpha=1 / 6, beta=0.5)


@dataclass(frozen=True)
class SpelledHardSwishPass(RulePass):
    """Make one activation of a hard swish that is spelled out."""

    name = "spelled-hard-swish"
    rules = (Rule(binary("div", binary("prod", x, gate), number(6)), swish),)
'''
TEST = """\
// RUN: rt-opt %s %plugins -p spelled-hard-swish | filecheck %s

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %three = trt.constant {value = dense<3.0> : tensor<1xf32>} : tensor<1xf32>
  %six = trt.constant {value = dense<6.0> : tensor<1xf32>} : tensor<1xf32>
  %a = trt.elementwise sum %x, %three : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  %b = trt.activation clip %a {alpha = 0.0, beta = 6.0} : (tensor<4xf32>) -> tensor<4xf32>
  %c = trt.elementwise prod %b, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y = trt.elementwise div %c, %six : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
"""
_OTHERS = ("images_10", "products_64", "perceptron_64", "chain_30", "transformer_4")


def main() -> int:
    """Run the steps, print their seconds."""
    options = _arguments()
    with tempfile.TemporaryDirectory() as made:
        folder = options.folder or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        models = [path.resolve() for path in options.models] or _generated(folder)
        return _experiment(folder, models, options.seconds)


def _experiment(folder: Path, models: Sequence[Path], seconds: float) -> int:
    tests = folder / "tests"
    tests.mkdir(exist_ok=True)
    (tests / "swish.py").write_text(PASS, encoding="utf-8")
    (tests / "swish.mlir").write_text(TEST, encoding="utf-8")
    (tests / "lit.cfg.py").write_text("from mlirt.tools.lit_config import configure\nconfigure()\n", "utf-8")
    plugin = ["--load-pass-plugin=tests/swish.py", "--pipeline-edit=after=cleanup:spelled-hard-swish"]
    paths = [str(path) for path in models]
    steps: dict[str, list[list[str]]] = {
        "CHECK lines": [["rt-update-checks", "tests/swish.mlir"]],
        "test": [["lit", "tests"]],
        "remarks": [
            ["rt-opt", path, "--to=cleanup", *plugin, "--remarks=spelled-hard-swish", "-o", "/dev/null"]
            for path in paths
        ],
        "gain": [["rt-lab", "tests/swish.py", *paths, f"--seconds={seconds}", "--json=gain.json"]],
    }
    total = 0.0
    failed: list[str] = []
    for name, commands in steps.items():
        start = time.perf_counter()
        for command in commands:
            done = subprocess.run([_BIN / command[0], *command[1:]], cwd=folder, check=False)
            failed += [" ".join(command)] * bool(done.returncode)
        took = time.perf_counter() - start
        total += took
        print(f"{took:8.1f} s  {name} ({len(commands)} commands)", flush=True)
    lines = len(PASS.splitlines())
    print(f"{total:8.1f} s  in all, {len(models)} models; the pass has {lines} lines, verdicts: {_verdicts(folder)}")
    for command in failed:
        print(f"failed: {command}")
    return int(bool(failed) or lines > MAX_LINES or total > MAX_SECONDS)


def _verdicts(folder: Path) -> str:
    try:
        record = json.loads((folder / "gain.json").read_text("utf-8"))
    except (OSError, ValueError):
        return "none"
    found = [str(one.get("verdict")) for one in record.get("models", [])]
    return ", ".join(f"{found.count(verdict)} {verdict}" for verdict in dict.fromkeys(found))


def _generated(folder: Path) -> list[Path]:
    """Five networks with the pattern and five without it."""
    made = {f"swish_{k}": network_of_swishes(k) for k in range(5)} | {name: NETWORKS[name]() for name in _OTHERS}
    for name, model in made.items():
        (folder / f"{name}.onnx").write_bytes(model.SerializeToString())
    return [folder / f"{name}.onnx" for name in made]


def network_of_swishes(number: int) -> onnx.ModelProto:
    """Convolutions with hard swishes that are spelled out, of different sizes."""
    writer = GraphWriter(number)
    channels, size = 8 * (number + 1), 20 - 3 * number
    three, six, zero = (writer.scalar(name, value) for name, value in (("three", 3.0), ("six", 6.0), ("zero", 0.0)))
    value = "x"
    for layer in range(2 + number):
        weight = writer.normal(f"weight_{layer}", (channels, channels, 3, 3), 0.1)
        value = writer.node("Conv", [value, weight], pads=[1, 1, 1, 1])
        gate = writer.node("Clip", [writer.node("Add", [value, three]), zero, six])
        value = writer.node("Div", [writer.node("Mul", [value, gate]), six])
    shape = (1, channels, size, size)
    return writer.model(f"swish_{number}", [floats("x", *shape)], [floats(value, *shape)])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path, help="ONNX models (default: ten are generated)")
    parser.add_argument("--seconds", type=float, default=10.0, metavar="S", help="how long rt-lab measures a model")
    parser.add_argument("--folder", type=Path, help="where the files are left (default: nowhere)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
