"""dir(mlirt) lists what there is, checkers are told that the package has types, and the citation names this version."""

from __future__ import annotations

import pydoc
import subprocess
import sys
from pathlib import Path

import mlirt
import mlirt.tensorrt

ROOT = Path(__file__).parents[1]


def test_completion_lists_our_names_and_tensorrt_s() -> None:
    listed = dir(mlirt)
    assert {"compile", "load", "Engine", "OverloadError", "Builder", "tensorrt", "__version__"} <= set(listed)
    assert set(mlirt.__all__) | set(mlirt.tensorrt.__all__) <= set(listed)
    assert not {"Any", "import_module", "TYPE_CHECKING"} & set(listed)
    assert [name for name in listed if not hasattr(mlirt, name)] == []


def test_help_shows_an_example_and_every_public_name() -> None:
    text = pydoc.plain(pydoc.render_doc(mlirt))
    assert 'engine = mlirt.compile("model.onnx")' in text
    assert [name for name in {*mlirt.__all__} - {"__version__"} if name not in text] == []


def test_listing_names_imports_nothing_heavy() -> None:
    script = "import sys, mlirt; dir(mlirt); print([m for m in ('numpy', 'onnx', 'numba', 'xdsl') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_checkers_are_told_that_there_are_types() -> None:
    assert (ROOT / "src" / "mlirt" / "py.typed").is_file()
    assert '"mlirt" = ["py.typed"]' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_the_citation_names_this_version() -> None:
    assert f"version: {mlirt.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
