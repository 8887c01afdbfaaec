"""Kernels under NVIDIA's compute-sanitizer, where it is installed: no bad access, race or missed barrier."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attending_network import attending_network
from attentions import SMALL
from contractions import Problem, channels_last_text, product_text
from device_engine import engine_of
from lowered_network import parse_module
from small_network import network

import mlirt
from mlirt.builder.tactics.sites import find_sites
from mlirt.dialects.target import Target

pytestmark = pytest.mark.gpu

Array = np.ndarray[Any, np.dtype[Any]]

_RUN = """
import sys
import numpy as np
import mlirt
for path in sys.argv[1:]:
    with np.load(path + ".npz") as inputs:
        mlirt.load(path).run(dict(inputs))
    print("ran", path)
"""
_FOUND = 9  # what the sanitizer exits with
_RNG = np.random.default_rng(0)


# Of one tile and a part, of several, and of many: small products have kinds of tactics that large ones lack.
_SIZES = ((300, 200, 136), (512, 256, 512), (1568, 768, 384), (4096, 1024, 1024))


def one_of_each_kind() -> dict[str, tuple[int, int, int]]:
    """Of the tactics that are offered for products, one of each kind, with a product of [rows, depth, columns] that it
    is offered for. Names that differ in sizes alone are of one kind, such as `cuda_wgmma:64x64s12` and `..64x128s7`.
    """
    kinds: dict[str, tuple[str, tuple[int, int, int]]] = {}
    for sizes in _SIZES:
        module, context = parse_module(_product(*sizes))
        (site,) = find_sites(module, context, Target("cuda", arch="sm_90a"), fewest=1)
        for one in site.candidates:
            kinds.setdefault(re.sub(r"\d+", "0", one.name), (one.name, sizes))
    # A cluster that shares a sum is offered for sums much longer than a sanitizer has time for.
    return {"cuda_wgmma:64x64s3c4": _SIZES[0], **dict(kinds.values())}


def _product(rows: int, depth: int, columns: int) -> str:
    return product_text((rows, depth), (columns, depth), (rows, columns), "f16", (False, True))


def _half(*shape: int) -> Array:
    return _RNG.standard_normal(shape).astype(np.float16)


def _cases() -> Iterator[tuple[Any, dict[str, Array]]]:
    """Engines and their inputs."""
    for tactic, (rows, depth, columns) in one_of_each_kind().items():
        product = _product(rows, depth, columns)
        chosen = product.replace("{transpose_lhs", f'{{fused.tactic = "{tactic}", transpose_lhs')
        yield engine_of(chosen), {"x": _half(rows, depth), "w": _half(columns, depth), "b": _half(columns)}
    problem = Problem((2, 64, 15, 17), (72, 64, 3, 3), pre=(1,), post=(1,), residual=True)
    yield engine_of(channels_last_text(problem, "f16")), {"x": _half(*problem.input), "r": _half(*problem.output)}
    for tactic in ("cuda_groups", "cuda_flash"):
        attention = SMALL["tails"]
        yield engine_of(attention.text(), tactic), attention.inputs()
    yield mlirt.compile(network(), "cuda", "fp16", heuristic=True), {"x": _half(1, 3, 64, 64).astype(np.float32)}
    model, inputs = attending_network()
    for precision in ("fp32", "fp16"):
        yield mlirt.compile(model, "cuda", precision, heuristic=True), inputs


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Plans in files with their inputs beside them: building is not what is checked."""
    folder, paths = tmp_path_factory.mktemp("plans"), list[str]()
    for number, (engine, inputs) in enumerate(_cases()):
        paths.append(str(folder / f"{number}.plan"))
        engine.save(paths[-1])
        np.savez(paths[-1] + ".npz", allow_pickle=False, **inputs)
    return paths


def _sanitizer() -> str | None:
    toolkits = [str(path) for path in sorted(Path("/usr/local").glob("cuda*/bin/compute-sanitizer"))]
    return shutil.which("compute-sanitizer") or (toolkits[-1] if toolkits else None)


@pytest.mark.parametrize(
    ("tool", "summary"),
    [
        ("memcheck", "ERROR SUMMARY: 0 errors"),
        ("synccheck", "ERROR SUMMARY: 0 errors"),
        ("racecheck", "RACECHECK SUMMARY: 0 hazards displayed"),
    ],
)
def test_kernels_are_clean(tool: str, summary: str, plans: list[str]) -> None:
    sanitizer = _sanitizer()
    if sanitizer is None:
        pytest.skip("compute-sanitizer is not installed")
    command = [sanitizer, "--tool", tool, "--error-exitcode", str(_FOUND), sys.executable, "-c", _RUN, *plans]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert done.stdout.count("ran ") == len(plans)
    assert summary in done.stdout
