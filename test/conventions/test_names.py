"""The file name is the name: `fuse-pointwise` = `fuse_pointwise.py` = `FusePointwisePass`, and it has a test."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from mlirt.passes import registry

ROOT = Path(__file__).parents[2]
_BASES = ("ModulePass", "RulePass")
PASSES = [(path.parent.name, path) for path in registry.pass_paths()]
IDS = [registry.name_of(path) for _, path in PASSES]


@pytest.mark.parametrize(("package", "path"), PASSES, ids=IDS)
def test_pass_answers_to_the_name_of_its_file(package: str, path: Path) -> None:
    assert registry.load(registry.name_of(path)).name == registry.name_of(path)


@pytest.mark.parametrize(("package", "path"), PASSES, ids=IDS)
def test_pass_has_a_test(package: str, path: Path) -> None:
    beside = ROOT / "test" / "passes" / package
    names = (f"{path.stem}.mlir", f"test_{path.stem}.py")
    assert any((beside / name).is_file() for name in names), f"expected {beside.relative_to(ROOT)}/{' or '.join(names)}"


@pytest.mark.parametrize(("package", "path"), PASSES, ids=IDS)
def test_pass_is_described_with_before_and_after(package: str, path: Path) -> None:
    text = registry.description(path)
    assert len(text.splitlines()[0]) > 20, "the first line of the docstring says what the pass does"
    assert re.search(r"\bBefore\b.*\bAfter\b", text, re.DOTALL), "the docstring shows the IR before and after"


def test_every_pass_class_is_found_by_its_name() -> None:
    found = {registry.class_name(registry.name_of(path)) for _, path in PASSES}
    defined = {
        node.name
        for folder in ("passes", "kernels")
        for file in (ROOT / folder).rglob("*.py")
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and any(ast.unparse(base).endswith(_BASES) for base in node.bases)
    }
    assert defined - {"RulePass"} == found


def test_names_of_passes_are_unique() -> None:
    assert len(IDS) == len(set(IDS))


def test_passes_never_import_passes() -> None:
    modules = {f"mlirt.passes.{package}.{path.stem}" for package, path in PASSES}
    for file in (ROOT / "passes").rglob("*.py"):
        assert modules.isdisjoint(_imported(file)), f"{file} imports a pass: they meet in passes/phases.py"


def test_subpackages_never_import_subpackages() -> None:
    packages = {package.name for package in registry.packages()}
    for package in packages:
        for file in (ROOT / "passes" / package).rglob("*.py"):
            others = [
                name
                for name in _imported(file)
                if any(name.startswith(f"mlirt.passes.{other}") for other in packages - {package})
            ]
            assert not others, f"{file} imports {others}: packages meet in passes/phases.py"


def _imported(file: Path) -> set[str]:
    imported: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return imported


def test_phases_name_passes_that_exist() -> None:
    from mlirt.passes.phases import PHASES

    missing = {step.pass_name for phase in PHASES for step in phase.steps if not registry.exists(step.pass_name)}
    assert not missing
