"""Turns the source of CUDA kernels into cubins, by numba-cuda, libNVVM and an assembler; no GPU is needed.

The front end runs once per kernel, for one architecture (`front_of`) whichever are asked for: so a cubin does not
depend on what it was made together with. An assembler (builder/assemblers/) makes a cubin for each from that PTX. For
sm_75 the PTX is rewritten (builder/older_ptx.py).
"""

from __future__ import annotations

import ast
import re
import zlib
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mlirt.builder.assemblers.choice import NVRTC, assemble
from mlirt.builder.assemblers.nvjitlink import link
from mlirt.builder.cubin import Cubin
from mlirt.builder.gpu_code import COMPUTE
from mlirt.builder.older_ptx import for_turing
from mlirt.builder.ptx_without_calls import without_calls
from mlirt.dialects.gpu_architectures import EARLY_START, TENSOR_MEMORY, WARPGROUPS, gpu_architecture, has_instruction
from mlirt.errors import CompileError

if TYPE_CHECKING:
    from mlirt.codegen.numba_cuda.kernel_text import KernelSource

_CLUSTERS_FRONT = "sm_90"  # of kernels of clusters, which run on Hopper and what came behind it
_OLDEST = "sm_75"
_EARLY_START = "griddepcontrol."


def front_of(source: KernelSource, architecture: str) -> str:
    """The architecture whose PTX the front end writes for a kernel and one that it is assembled for."""
    if not source.architecture:
        return gpu_architecture(architecture).front
    own = any(has_instruction(source.architecture, one) for one in (WARPGROUPS, TENSOR_MEMORY))
    return source.architecture if own else _CLUSTERS_FRONT


def compile_kernel(source: KernelSource, codes: Sequence[str], text: str, assembler: str = NVRTC) -> dict[str, Cubin]:
    """The machine code of one kernel by architecture, from its PTX; its symbol is the kernel's name.

    `assembler` is what `asked_assembler` says. Of `compute_80` it is the PTX itself for that architecture, compressed,
    which was assembled once to prove it.
    """
    return {
        code: _kept(source, code, text) if code.startswith(COMPUTE) else _cubin(source, code, text, assembler)
        for code in codes
    }


def _cubin(source: KernelSource, architecture: str, text: str, assembler: str) -> Cubin:
    try:
        return assemble(assembled_text(text, architecture), architecture, source.name, assembler)
    except CompileError:
        if architecture != _OLDEST:
            raise
    return link(assembled_text(ptx_text(source, architecture), architecture), architecture, source.name)


def _kept(source: KernelSource, code: str, text: str) -> Cubin:
    """PTX of an architecture in the oldest version that says it, else in that of the front end."""
    known = gpu_architecture(code.replace(COMPUTE, "sm_"))
    whole = re.sub(r"^\.target .*$", f".target {known.name}", assembled_text(text, known.name), flags=re.MULTILINE)
    older = re.sub(r"^\.version .*$", f".version {known.ptx}", whole, flags=re.MULTILINE)
    try:
        link(older, known.name, source.name)
        whole = older
    except CompileError:
        link(whole, known.name, source.name)
    return Cubin(zlib.compress(whole.encode(), 9), 0, 0)


def assembled_text(text: str, architecture: str) -> str:
    """The PTX of `front_of` as it is assembled for an architecture: with early starts or not, or as sm_75 has it."""
    if architecture == _OLDEST:
        text = for_turing(text)
    if _EARLY_START not in text:
        return text
    if not has_instruction(architecture, EARLY_START):
        return re.sub(rf"^\s*{re.escape(_EARLY_START)}.*\n", "", text, flags=re.MULTILINE)
    return re.sub(r"^\.target .*$", f".target {architecture}", text, flags=re.MULTILINE)


def ptx_text(source: KernelSource, architecture: str) -> str:
    """The PTX of one kernel, with its plain name as entry."""
    cuda: Any = import_module("numba.cuda")
    types: Any = import_module("numba.core.types")
    function = _function(source)
    signature = types.void(*[_type(argument) for argument in source.arguments])
    try:
        text, _ = cuda.compile(
            function,
            signature,
            cc=_capability(architecture),
            device=False,
            abi="numba",
            launch_bounds=(source.threads, source.resident),
        )
    except Exception as error:
        reason = " ".join(str(error).split())
        raise CompileError(f"kernel {source.name}: numba-cuda refuses the generated source: {reason[:500]}") from error
    text = _with_plain_names(text, source.name)
    for position, argument in enumerate(source.arguments):
        if argument == "tensor_map":
            text = _with_map(text, f"{source.name}_param_{position}", source.name)
    return _with_cluster(without_calls(without_fused_clamps(text)), source.cluster)


def without_fused_clamps(text: str) -> str:
    """PTX in which the larger of zero and a minimum or maximum of integers is computed from the sign instead.

    ptxas 13 makes one instruction of both, VIMNMX.RELU. On an H200 a comparison two instructions behind it read the
    register's number from before; alone, with its result stored, it was right.
    """
    made = set(re.findall(r"\b(?:min|max)\.s32\s+(%r\d+),", text))

    def apart(match: re.Match[str]) -> str:
        result, value = match.groups()
        if value not in made:
            return match[0]
        return f"{{ .reg .b32 n; shr.s32 n, {value}, 31; not.b32 n, n; and.b32 {result}, {value}, n; }}"

    return re.sub(r"\bmax\.s32\s+(%r\d+), (%r\d+), 0;", apart, text)


def _with_map(text: str, parameter: str, name: str) -> str:
    """A parameter that holds a tensor map itself, where the source has an integer: that becomes its address."""
    declared = f".param .u64 {parameter}"
    if not re.search(rf"{re.escape(declared)}\b", text):
        raise CompileError(f"kernel {name}: the compiled text has no parameter {parameter}")
    text = re.sub(rf"{re.escape(declared)}\b", f".param .align 64 .b8 {parameter}[128]", text)
    address = rf"mov.b64 \1, {parameter};\n\tcvta.param.u64 \1, \1;"
    return re.sub(rf"ld\.param\.u64\s+(%rd\d+), \[{parameter}\];", address, text)


def _with_cluster(text: str, size: int) -> str:
    """An entry whose blocks start in clusters."""
    if size == 1:
        return text
    return text.replace("\n)\n", f"\n)\n.explicitcluster\n.reqnctapercluster {size}, 1, 1\n", 1)


def _function(source: KernelSource) -> Any:
    """The function that the source defines; numba finds its lines for messages."""
    import linecache

    path = f"<kernel {source.name}>"
    linecache.cache[path] = (len(source.text), None, source.text.splitlines(keepends=True), path)
    namespace: dict[str, Any] = {}
    tree = ast.fix_missing_locations(_WordsBefore().visit(ast.parse(source.text)))
    exec(compile(tree, path, "exec"), namespace)  # our own generated text
    return namespace[source.name]


class _WordsBefore(ast.NodeTransformer):
    """Makes words before the function: `word(parameters)(operands)` is `word_1(operands)`, with `word_1` made there."""

    def __init__(self) -> None:
        self.made: list[ast.stmt] = []

    def visit_Module(self, node: ast.Module) -> ast.Module:
        self.generic_visit(node)
        node.body[-1:] = [*self.made, node.body[-1]]
        return node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if isinstance(node.func, ast.Call):
            name = f"_word_{len(self.made)}"
            self.made.append(ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], node.func), node.func))
            node.func = ast.copy_location(ast.Name(name, ast.Load()), node.func)
        return node


def _type(name: str) -> Any:
    from mlirt.builder.numba_cuda_intrinsics.instructions import SCALARS
    from mlirt.builder.numba_cuda_intrinsics.untyped import types

    if name == "tensor_map":
        return types.uint64  # its address, see `_with_map`
    return types.CPointer(SCALARS[name[:-1]]) if name.endswith("*") else SCALARS[name]


def _with_plain_names(text: str, name: str) -> str:
    """The entry under the kernel's own name, without numba's environment object."""
    entry = re.search(r"\.visible \.entry (\w+)\(", text)
    if entry is None:
        raise CompileError(f"kernel {name}: the compiled text has no entry")
    return re.sub(r"\.common \.global .*NumbaEnv.*;\n", "", text.replace(entry[1], name))


def _capability(architecture: str) -> tuple[int, int] | tuple[int, int, str]:
    """`sm_90a` -> (9, 0, "a")."""
    match = re.fullmatch(r"sm_(\d+)(\d)([af]?)", architecture)
    if match is None:
        raise CompileError(f"{architecture!r} is no CUDA architecture: expected a name such as sm_80 or sm_90a")
    number = (int(match[1]), int(match[2]))
    return (*number, match[3]) if match[3] else number
