"""How many files an op of the kernel dialect lives in: its definition, and a word for each target that needs one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, cast

import pytest

from mlirt.builder import numba_cpu_intrinsics, numba_cuda_intrinsics
from mlirt.codegen.numba_cpu.kernel_source import KernelSource
from mlirt.codegen.numba_cuda.cuda_source import CudaSource
from mlirt.dialects import kernel
from mlirt.dialects.kernel import Kernel
from mlirt.dialects.kernel.instruction import Instruction, spec_of

ROOT = Path(__file__).parents[3]
LIBRARIES = {"cpu": numba_cpu_intrinsics, "cuda": numba_cuda_intrinsics}
SOURCES = {"cpu": KernelSource, "cuda": CudaSource}
# Ops that are not defined as instructions.
_REGION = "it has a region, which its text and its meaning walk through"
_STRUCTURE = "it has no meaning of its own: the op around it reads it"
_LIBRARY = "the host calls a library or the user's function: no text of a kernel has it"
OTHERS = {
    "kernel.func": "it is the kernel itself, with a syntax of functions",
    "kernel.return": _STRUCTURE,
    "kernel.yield": _STRUCTURE,
    "kernel.parallel": _REGION,
    "kernel.reduce": _REGION,
    "kernel.each_warpgroup": _REGION,
    "kernel.map_fragment": _REGION,
    "kernel.tile_for_each": _REGION,
    "kernel.tile_map": _REGION,
    "kernel.load": "its strides are numbers or values, and lanes make a vector of it",
    "kernel.store": "its strides are numbers or values, and lanes make a vector of it",
    "kernel.remf": "it is arithmetic: a row of scalar_ops.py has its meaning and text, as those of arith and math",
    "kernel.library_convolution": _LIBRARY,
    "kernel.library_product": _LIBRARY,
    "kernel.plugin": _LIBRARY,
}
# Instructions whose text is a method of a source.
BY_HAND = {
    "kernel.shared": "where it lies follows from the other memory of the kernel",
    "kernel.reuse_shared": "where it lies follows from the other memory of the kernel",
    "kernel.fragment": "booleans become bytes on their way into a fragment",
    "kernel.fragment_element": "it is a subscript and no call",
    "kernel.fragment_part": "it is a slice and no call",
    "kernel.tile_load_transposed": "a limit that is not given is a number",
}


def instructions() -> list[type[Instruction]]:
    return [op for op in Kernel.operations if issubclass(op, Instruction)]


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    for entry in iter_modules(package.__path__):
        yield import_module(f"{package.__name__}.{entry.name}")


def _words_of(module: ModuleType) -> set[str]:
    """The words that a file of a library has: intrinsics, makers, and those of its tables."""
    found: set[str] = set()
    body: dict[str, Any] = vars(module)
    for name, value in body.items():
        if type(value).__name__ == "_Intrinsic":
            found.add(name)
        elif isinstance(value, dict) and name.isupper() and name != "MAKERS":
            found |= {str(word) for word in cast("dict[str, Any]", value)}
        elif name in numba_cuda_intrinsics.MAKERS and value.__module__ == module.__name__:
            found.add(name)
    return found


def _homes(op: type[Instruction]) -> dict[str, set[str]]:
    """The files that know of an instruction: its definition, its methods in sources, and its words."""
    spec = spec_of(op)
    homes = {"definition": {op.__module__}, "text": set[str](), "words": set[str]()}
    for target, source in SOURCES.items():
        method: Any = getattr(source, spec.name.replace(".", "_"), None)
        if method is not None:
            homes["text"].add(method.__module__)
        text = spec.text(target)
        for module in _modules(LIBRARIES[target]) if text is not None else ():
            if _words_of(module).intersection(text.vocabulary if text is not None else ()):
                homes["words"].add(module.__name__)
    return homes


def _interpreter_rules() -> set[str]:
    return {name for module in _modules(kernel) for name in getattr(module, "RULES", {})}


def test_every_op_is_an_instruction_or_says_why_not() -> None:
    defined = {op.name for op in instructions()}
    assert {op.name for op in Kernel.operations} - defined == OTHERS.keys()
    assert all(reason.strip() for reason in OTHERS.values())


@pytest.mark.parametrize("op", instructions(), ids=lambda op: op.name)
def test_an_instruction_lives_in_its_definition_and_its_word(op: type[Instruction]) -> None:
    homes = _homes(op)
    targets = [target for target in SOURCES if spec_of(op).text(target) is not None]
    assert len(homes["definition"]) == 1
    assert len(homes["words"]) == len(targets), f"{op.name} has words in {homes['words']}"
    assert bool(homes["text"]) == (op.name in BY_HAND), f"{op.name} has text in {homes['text']}"
    assert targets or homes["text"], f"{op.name} has no text"
    assert spec_of(op).meaning is not None


def test_the_interpreter_has_rules_for_other_ops_alone() -> None:
    defined = {op.name for op in instructions()}
    assert not defined & _interpreter_rules()
    assert {name for name in _interpreter_rules() if name.startswith("kernel.")} <= OTHERS.keys()


def test_most_ops_live_in_one_or_two_files() -> None:
    counts = [sum(map(len, _homes(op).values())) for op in instructions()]
    assert max(counts) == 2
    assert len(counts) >= 60


def _imports(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    return named | {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}


@pytest.mark.parametrize("target", LIBRARIES)
def test_a_library_of_words_imports_neither_dialects_nor_the_other_library(target: str) -> None:
    (other,) = LIBRARIES.keys() - {target}
    refused = ("xdsl", "mlirt.dialects", "mlirt.passes", "mlirt.codegen", LIBRARIES[other].__name__)
    for path in (ROOT / "builder" / f"numba_{target}_intrinsics").glob("*.py"):
        wrong = [name for name in _imports(path) if name.startswith(refused)]
        assert not wrong, f"{path.name} imports {wrong}"


def test_definitions_import_no_library_of_words() -> None:
    for op in instructions():
        path = ROOT / op.__module__.removeprefix("mlirt.").replace(".", "/")
        assert not [name for name in _imports(path.with_suffix(".py")) if "intrinsics" in name]
