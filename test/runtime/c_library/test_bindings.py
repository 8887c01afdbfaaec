"""Programs in Rust and Go as the page has them, with a library of the page's network."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from onnx import helper
from onnx_models import model_of, numbers

import mlirt

_PAGE = Path(__file__).parents[3] / "docs" / "c-library.md"
_SAYS = """\
error: input 'image': expected shape (n, 3, 8, 8), got (2, 3, 8, 9): dimension 3 must be 8, not 9
20 scores
"""


def listing(name: str) -> str:
    """A file that the page shows."""
    found = re.search(rf"<!-- file: {re.escape(name)} -->\n```\w+\n(.*?)```", _PAGE.read_text("utf-8"), re.DOTALL)
    assert found is not None, f"{_PAGE.name} has no {name}"
    return found[1]


def needs(*commands: str) -> None:
    """Skip where a tool is missing."""
    for command in ("cc", *commands):
        if shutil.which(command) is None:
            pytest.skip(f"{command} is not on the PATH")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the folder `small` has the library of a network that gives ten scores for an image."""
    nodes = [
        helper.make_node("Conv", ["image", "w"], ["c"], pads=[1] * 4),
        helper.make_node("GlobalAveragePool", ["c"], ["g"]),
        helper.make_node("Flatten", ["g"], ["scores"]),
    ]
    model = model_of(nodes, {"image": ("float32", ("n", 3, 8, 8))}, ["scores"], {"w": numbers(10, 3, 3, 3)})
    mlirt.export_c(mlirt.compile(model, target="cpu"), tmp_path / "small")
    return tmp_path


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_rust_reads_the_header_by_bindgen(folder: Path) -> None:
    needs("rustc", "bindgen")
    included = run(folder, "cc", "-print-file-name=include").strip()
    (folder / "net.rs").write_text(run(folder, "bindgen", "small/net.h", "--", f"-I{included}"), "utf-8")
    (folder / "classify.rs").write_text(listing("classify.rs"), "utf-8")
    linking = ["-L", "small", "-l", "net", "-C", "link-arg=-Wl,-rpath,$ORIGIN/small"]
    run(folder, "rustc", "--edition=2021", "classify.rs", *linking)
    assert run(folder, "./classify") == _SAYS


def test_go_calls_the_library_by_cgo(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("go")
    monkeypatch.setenv("GOCACHE", os.environ.get("GOCACHE", str(folder / "cache")))
    (folder / "classify.go").write_text(listing("classify.go"), "utf-8")
    run(folder, "go", "build", "-o", "classify", "classify.go")
    assert run(folder, "./classify") == _SAYS
