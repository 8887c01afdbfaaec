"""What is handed out works where there is no compiler: wheel and sdist, in empty environments of each Python.

`make test-package` runs it in an environment that has the package `build`; `make test` skips it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    find_spec("build") is None, reason="the package build is not installed; `make test-package` installs it"
)
ROOT = Path(__file__).parents[2]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")

SCRIPT = """\
import pydoc, shutil, sys
import numpy as np
import mlirt

assert mlirt.__file__.startswith(sys.prefix), mlirt.__file__
assert not any(map(shutil.which, ("cc", "gcc", "clang", "c++"))), "the test is for machines without a compiler"
engine = mlirt.compile("small.onnx", target="cpu")
images = np.random.default_rng(0).uniform(-1, 1, (4, 3, 8, 8)).astype(np.float32)
found = engine.run({"image": images})["scores"]
expected = mlirt.compile("small.onnx", target="reference").run({"image": images})["scores"]
assert np.abs(found - expected).max() < 1e-4
engine.save("small.plan")
np.savez("expected.npz", image=images, scores=found)
text = pydoc.plain(pydoc.render_doc(mlirt))
assert 'engine = mlirt.compile("model.onnx")' in text
assert not [name for name in {*mlirt.__all__} - {"__version__"} if name not in text]
"""
RUN_ALONE = """\
import importlib.util
import numpy as np
import mlirt

assert not any(map(importlib.util.find_spec, ("xdsl", "onnx", "numba")))
known = np.load("expected.npz")
assert np.array_equal(mlirt.load("small.plan").run({"image": known["image"]})["scores"], known["scores"])
"""


def _python(version: str) -> str | None:
    """An interpreter of this version: on the PATH, or among those of pyenv and uv."""
    name = f"python{version}"
    homes = (Path.home() / ".pyenv" / "versions", Path.home() / ".local" / "share" / "uv" / "python")
    found = [str(path) for home in homes for path in sorted(home.glob(f"*{version}.*/bin/{name}"))]
    for path in (*found, shutil.which(name)):
        if path and subprocess.run([path, "-c", "import venv"], capture_output=True, check=False).returncode == 0:
            return path
    return None


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel, made of the sdist, and the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)], check=True, capture_output=True)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


class _Environment:
    """An empty environment whose programs see no others: no compiler, no checkout."""

    def __init__(self, python: str, folder: Path) -> None:
        subprocess.run([python, "-m", "venv", str(folder / "venv")], check=True, capture_output=True)
        self.folder, self.bin = folder, folder / "venv" / "bin"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
        self._environment = {**kept, "PATH": str(self.bin), "MLIRT_CACHE": str(folder / "cache")}

    def run(self, program: str, *arguments: str) -> str:
        done = subprocess.run(
            [str(self.bin / program), *arguments],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{program} {arguments}\n{done.stdout}{done.stderr}"
        return done.stdout

    def install(self, *what: str) -> None:
        self.run("python", "-m", "pip", "install", "--quiet", "--no-compile", *what)


def _scripts() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return list(project["scripts"])


@pytest.mark.parametrize("version", VERSIONS)
def test_wheel_and_sdist_work_without_a_compiler(version: str, packages: tuple[Path, Path], tmp_path: Path) -> None:
    python = _python(version)
    if python is None:
        pytest.skip(f"there is no Python {version} on this machine")
    place = _Environment(python, tmp_path)
    wheel, sdist = packages
    place.install(str(wheel))
    place.run("python", str(ROOT / "examples" / "small_network.py"), "small.onnx")
    place.run("python", "-c", SCRIPT)
    serving = {"rt-serve"}  # its packages come with mlirt[serve]
    for script in _scripts():
        if script not in serving:
            assert "usage: " in place.run(script, "--help"), script
    place.run("rt-exec", "--loadEngine=small.plan", "--shapes=image:1x3x8x8", "--duration=0", "--quiet")
    place.install("--force-reinstall", "--no-deps", str(sdist))
    place.run("python", "-c", SCRIPT)
    alone = _Environment(python, tmp_path / "alone")
    alone.install("--no-deps", str(wheel), "numpy", "llvmlite")
    for name in ("small.plan", "expected.npz"):
        shutil.copy(tmp_path / name, alone.folder)
    alone.run("python", "-c", RUN_ALONE)


def test_the_wheel_has_the_files_beside_the_code(packages: tuple[Path, Path], tmp_path: Path) -> None:
    shutil.unpack_archive(packages[0], tmp_path, "zip")
    for name in (
        "py.typed",
        "tools/report/page.css",
        "tools/report/graph.js",
        "dialects/devices/h200.toml",
        "runtime/c_library/sources/net.h",
        "runtime/c_library/sources/cpu/table.c",
        "runtime/c_library/sources/cuda/driver.h",
    ):
        assert (tmp_path / "mlirt" / name).is_file(), name
    assert not list(tmp_path.glob("test*"))
