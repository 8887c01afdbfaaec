"""Each tactic under NVIDIA's compute-sanitizer, where it is installed: no bad access, race or missed barrier."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attending_network import attending_network
from small_network import network
from tactic_layers import PLAIN, WITHOUT_LAYER, one_of_each, registered

import mlirt
from mlirt.builder.tactics.early_compiler import EarlyCompiler, cuda_plan_code
from mlirt.builder.tactics.trial import feeds
from mlirt.runtime.engine import Engine
from mlirt.runtime.engine_interface import EngineLike

Array = np.ndarray[Any, np.dtype[Any]]

_RUN = """
import sys
import numpy as np
import mlirt
from mlirt.runtime.data_types import numpy_dtype
for path in sys.argv[1:]:
    engine = mlirt.load(path)
    with np.load(path + ".npz") as stored:  # in which types that are not NumPy's are bytes
        engine.run({one.name: stored[one.name].view(numpy_dtype(one.dtype)) for one in engine.inputs})
    print("ran", path, flush=True)
"""
_FOUND = 9  # what the sanitizer exits with
_TIMEOUT_SECONDS = 900  # seconds
_RNG = np.random.default_rng(0)


def test_every_tactic_has_a_layer() -> None:
    covered = {kind.tactic for kind in one_of_each(every_choice=False)}
    assert covered | WITHOUT_LAYER.keys() == registered()
    assert not covered & WITHOUT_LAYER.keys()


def test_tactics_have_kernels_of_their_own() -> None:
    """A layer is computed by the tactic that it stands for, not by another one."""
    kinds = one_of_each(every_choice=False)
    assert all(trial.sources for trial in kinds.values())
    assert len({tuple(trial.sources.values()) for trial in kinds.values()}) == len(kinds)


def engines_of_tactics() -> Iterator[tuple[Engine, dict[str, Array]]]:
    """An engine of one layer for each kind of tactic, and its inputs; needs no device."""
    kinds = one_of_each()
    with EarlyCompiler(PLAIN.arch) as compiler:
        compiler.take(source for trial in kinds.values() for source in trial.sources.values())
        cubins = compiler.finish()
    for kind, trial in kinds.items():
        missing = [source.name for source in trial.sources.values() if source not in cubins]
        assert not missing, f"{kind} does not compile: {missing}"
        code = {name: cubins[source] for name, source in trial.sources.items()}
        plan = trial.plan(1, cuda_plan_code(code, PLAIN.arch))
        names = [one.name for one in plan.manifest.inputs]
        yield Engine(plan, waits=True), dict(zip(names, feeds(plan, trial.shapes, {}), strict=True))


def _engines_of_networks() -> Iterator[tuple[EngineLike, dict[str, Array]]]:
    """Networks whose kernels start before those in front of them have ended."""
    image = _RNG.standard_normal((1, 3, 64, 64)).astype(np.float32)
    yield mlirt.compile(network(), "cuda", "fp16", heuristic=True), {"x": image}
    model, inputs = attending_network()
    for precision in ("fp32", "fp16"):
        yield mlirt.compile(model, "cuda", precision, heuristic=True), inputs


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Plans in files with their inputs beside them: building is not what is checked."""
    folder, paths = tmp_path_factory.mktemp("plans"), list[str]()
    for number, (engine, inputs) in enumerate((*engines_of_tactics(), *_engines_of_networks())):
        paths.append(str(folder / f"{number}.plan"))
        engine.save(paths[-1])
        stored = {name: array.view(f"V{array.dtype.itemsize}") for name, array in inputs.items()}
        np.savez(paths[-1] + ".npz", allow_pickle=False, **stored)
    return paths


def _sanitizer() -> str | None:
    toolkits = [str(path) for path in sorted(Path("/usr/local").glob("cuda*/bin/compute-sanitizer"))]
    return shutil.which("compute-sanitizer") or (toolkits[-1] if toolkits else None)


@pytest.mark.gpu
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
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert done.stdout.count("ran ") == len(plans)
    assert summary in done.stdout
