"""A wheel has all packages, though the repository has links in their place; a checkout without links is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = """\
import sys
import numpy as np
import mlirt

assert mlirt.__file__.startswith(sys.argv[1]), mlirt.__file__
images = np.load("images.npy")
engine = mlirt.compile("small.onnx", target="cpu")
found = engine.run({"image": images})["scores"]
expected = mlirt.compile("small.onnx", target="reference").run({"image": images})["scores"]
assert np.abs(found - expected).max() < 1e-4
engine.save("small.plan")
assert np.array_equal(mlirt.load("small.plan").run({"image": images})["scores"], found)
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The files of the repository, as git has them."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is no checkout of git's")
    folder = tmp_path / "checkout"
    for name in listed.stdout.splitlines():
        source, target = ROOT / name, folder / name
        if name.startswith(("test/", "docs/")) or not (source.exists() or source.is_symlink()):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            target.symlink_to(os.readlink(source))
        else:
            shutil.copy(source, target)
    return folder


def pip(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, errors="replace", check=False)


def test_a_wheel_builds_and_runs_a_network(checkout: Path, tmp_path: Path) -> None:
    """In a folder of its own, in front of the packages that it needs: `make test-package` has empty environments."""
    built = pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path), str(checkout), cwd=tmp_path)
    assert built.returncode == 0, built.stderr[-2000:]
    (wheel,) = tmp_path.glob("mlirt-*.whl")
    installed = tmp_path / "installed"
    done = pip("install", "--no-deps", "--no-compile", "--target", str(installed), str(wheel), cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    links = [path.name for path in (ROOT / "src" / "mlirt").iterdir() if path.is_symlink()]
    assert {"builder", "runtime", "kernels", "tools"} <= {*links}
    for name in links:
        here = {path.relative_to(ROOT / name) for path in (ROOT / name).rglob("*.py")}
        there = {path.relative_to(installed / "mlirt" / name) for path in (installed / "mlirt" / name).rglob("*.py")}
        assert here == there, name
    model = [sys.executable, str(ROOT / "examples" / "small_network.py"), "small.onnx"]
    np.save(tmp_path / "images.npy", np.random.default_rng(0).uniform(-1, 1, (4, 3, 8, 8)).astype(np.float32))
    environment = {**os.environ, "PYTHONPATH": str(installed), "MLIRT_CACHE": str(tmp_path / "cache")}
    for command in (model, [sys.executable, "-c", SCRIPT, str(installed)]):
        ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr[-2000:]


def test_a_checkout_without_links_is_refused(checkout: Path, tmp_path: Path) -> None:
    """As git leaves one on a system without them: each link is a text file with where it leads to."""
    for path in (checkout / "src" / "mlirt").iterdir():
        if path.is_symlink():
            to = os.readlink(path)
            path.unlink()
            path.write_text(to, "utf-8")
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    command = [sys.executable, "-c", "import mlirt"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "ImportError: the packages of mlirt are symbolic links in its repository" in done.stderr
    assert "git config core.symlinks true" in done.stderr
    built = pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path), str(checkout), cwd=tmp_path)
    assert built.returncode != 0
    assert "builder, codegen, dialects" in built.stderr + built.stdout
    assert not list(tmp_path.glob("*.whl"))
