"""No two packages import each other, and a build for one target imports nothing that is for the other alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from mlirt.kernels.lib.tactics.registry import TARGETS, families, tactics_of

ROOT = Path(__file__).parents[2]
_MUTUAL: Mapping[tuple[str, str], str] = {
    ("mlirt.builder.calibration", "mlirt.builder.compile"): "the report of a calibration builds engines to compare",
}
"""Imports that close a circle, with the reason for each."""
_FOR_BOTH = {
    "mlirt.runtime.host_cpu": "the machine that builds",
    "mlirt.dialects.cpu_device": "what files of devices, of both kinds, are read into",
    "mlirt.runtime.cpu_job": "the interface of all devices has what CPUs alone have",
    "mlirt.runtime.cpu_table": "where arrays of the caller are put into the table of a run",
}
"""Modules whose names tell a target, and that a build for the other one imports too."""


@cache
def _graph() -> dict[str, set[str]]:
    """What each package imports; modules beside packages count for themselves, imports for checkers alone do not."""
    import grimp

    graph = grimp.build_graph("mlirt", cache_dir=None, exclude_type_checking_imports=True)
    packages = {name.rpartition(".")[0] for name in graph.modules}
    around = {name.rpartition(".")[0] for name in packages}

    def node(module: str) -> str:
        package = module if module in packages else module.rpartition(".")[0]
        return module if package in around else package

    found: dict[str, set[str]] = {}
    for module in graph.modules:
        imported = {node(other) for other in graph.find_modules_directly_imported_by(module)}
        found.setdefault(node(module), set()).update(imported - {node(module), "mlirt"})
    return found


def _circles(graph: Mapping[str, set[str]]) -> Iterator[list[str]]:
    """Packages that reach each other (Tarjan's strongly connected components)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    waiting: list[str] = []

    def visit(name: str) -> Iterator[list[str]]:
        number[name] = lowest[name] = len(number)
        waiting.append(name)
        for other in sorted(graph.get(name, ())):
            if other not in number:
                yield from visit(other)
                lowest[name] = min(lowest[name], lowest[other])
            elif other in waiting:
                lowest[name] = min(lowest[name], number[other])
        if lowest[name] == number[name]:
            place = waiting.index(name)
            if len(waiting) - place > 1:
                yield waiting[place:]
            del waiting[place:]

    for name in sorted(graph):
        if name not in number:
            yield from visit(name)


def test_packages_do_not_import_each_other() -> None:
    graph = {name: {other for other in imported if (name, other) not in _MUTUAL} for name, imported in _graph().items()}
    assert len(graph) > 200
    assert not list(_circles(graph))


@pytest.mark.parametrize("exception", _MUTUAL, ids=":".join)
def test_every_exception_is_needed(exception: tuple[str, str]) -> None:
    """The import is there, and closes a circle."""
    assert exception[1] in _graph()[exception[0]]
    assert any(set(exception) <= set(circle) for circle in _circles(_graph()))


def test_circles_are_found() -> None:
    assert list(_circles({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set()})) == [["a", "b", "c"]]
    assert list(_circles({"a": {"b", "c"}, "b": {"c"}})) == []


_BUILD = """
import sys, warnings
import numpy as np
import mlirt
from onnx import helper, numpy_helper
warnings.simplefilter("ignore")
nodes = [helper.make_node("Conv", ["x", "w"], ["a"]), helper.make_node("Softmax", ["a"], ["b"]),
         helper.make_node("MatMul", ["b", "v"], ["y"])]
kinds = [helper.make_tensor_value_info("x", 1, ["n", 3, 8, 8]), helper.make_tensor_value_info("y", 1, None)]
weights = [numpy_helper.from_array(np.ones(shape, np.float32), name)
           for name, shape in (("w", (4, 3, 1, 1)), ("v", (8, 8)))]
graph = helper.make_graph(nodes, "network", kinds[:1], kinds[1:], weights)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
engine = mlirt.compile(model, sys.argv[1], heuristic=True)
print(engine.target, *sys.modules)
"""


@pytest.mark.parametrize(("target", "other"), [("cpu", "cuda"), ("cuda", "cpu")])
def test_a_build_imports_nothing_of_the_other_target(target: str, other: str) -> None:
    done = subprocess.run([sys.executable, "-c", _BUILD, target], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    engine, *modules = done.stdout.split()
    assert engine == target
    assert any(f"{target}_" in name for name in modules), "the names of modules tell targets"
    assert any(name.startswith("mlirt.kernels.") and f".{target}." in name for name in modules)
    words = (f"numba_{other}", f".{other}_", f".{other}.")
    found = [name for name in modules if name.startswith(("mlirt", "numba_cuda")) and _is_for(name, words)]
    assert sorted(set(found) - set(_FOR_BOTH)) == []


def _is_for(name: str, words: tuple[str, ...]) -> bool:
    return any(word in f".{name}." for word in words)


@pytest.mark.parametrize("family", families())
def test_the_folder_of_a_tactic_tells_its_target(family: str) -> None:
    """So that it is found without being imported."""
    for name, tactic in tactics_of(family).items():
        told = {kind for kind in TARGETS if name.startswith(f"{kind}_")}
        assert tactic.TARGETS == (told or set(TARGETS)), name
        assert (ROOT / "kernels" / family / name.replace("_", "/", len(told))).with_suffix(".py").is_file()
    for kind in TARGETS:
        for_kind = {name for name, tactic in tactics_of(family).items() if kind in tactic.TARGETS}
        assert set(tactics_of(family, kind=kind)) == for_kind
