"""From kernels to the text that numba-cuda compiles."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import DenseArrayBase, IndexType, IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute
from xdsl.utils.hints import isa

from mlirt.codegen.launch_comments import launch_comments
from mlirt.codegen.numba_cuda.cuda_expressions import stored_name
from mlirt.codegen.numba_cuda.cuda_source import CudaSource
from mlirt.codegen.numba_cuda.kernel_text import KernelSource
from mlirt.codegen.numba_cuda.vocabulary import VOCABULARY
from mlirt.codegen.python_expressions import type_name
from mlirt.codegen.python_names import kernel_name
from mlirt.dialects.kernel.buffers import Memory
from mlirt.dialects.kernel.core import FuncOp, ParallelOp, ReduceOp
from mlirt.dialects.kernel.tensor_map import TensorMapType
from mlirt.dialects.tensor_types import is_float
from mlirt.errors import CompileError

_IMPORT = "from mlirt.builder.numba_cuda_intrinsics import *"


def emit_module(module: ModuleOp) -> str:
    """All kernels of a module as one Python file, each behind a comment that names its layers."""
    comments = launch_comments(module)
    texts = [
        comments.get(name, "") + source.text.removeprefix(_IMPORT).lstrip("\n")
        for name, source in sources_of(module).items()
    ]
    return "\n\n\n".join([_IMPORT, *texts])


def sources_of(module: ModuleOp) -> dict[str, KernelSource]:
    """The source of each kernel of a module by name."""
    return {op.sym_name.data: emit_kernel(op) for op in module.body.block.ops if isinstance(op, FuncOp)}


def emit_kernel(func: FuncOp) -> KernelSource:
    """The source of one mapped kernel; raises `CompileError` for one that is not mapped to threads."""
    name = kernel_name(func)
    if "block_size" not in func.attributes or any(isinstance(op, ParallelOp | ReduceOp) for op in func.walk()):
        raise CompileError(f"kernel @{name} is not mapped to blocks and threads: run map-parallel-to-threads first")
    if name in VOCABULARY:
        raise CompileError(f"kernel @{name} has the name of a word that generated source uses: give it another one")
    source = CudaSource(func, narrow=index_bits(func) == 32)
    arguments = tuple(argument_type(arg.type) for arg in func.body.block.args)
    names = [source.names.define(arg) for arg in func.body.block.args]
    for arg in func.body.block.args:
        if is_float(arg.type):
            source.names.leave_out(arg)
    threads = block_threads(func)
    parameters = ", ".join(f'{label}: "{type_}"' for label, type_ in zip(names, arguments, strict=True))
    cluster = cluster_size(func)
    with source.block_of(f"def {name}({parameters}):"):
        if source.narrow:
            for label, arg in zip(names, func.body.block.args, strict=True):
                if isinstance(arg.type, IndexType):
                    source.line(f"{label} = int32({label})")
        source.ops(func.body.block.ops)
    source.words_in_place()
    made = [f"{label} = {text}" for text, label in source.definitions.items()]
    about = f"# {threads} threads per block, {source.shared_bytes} bytes of shared memory"
    about += f", {cluster} blocks per cluster" if cluster > 1 else ""
    lines = [_IMPORT, "", *source.functions(), *made, about, *source.lines]
    text = "\n".join(lines) + "\n"
    return KernelSource(
        name, text, arguments, threads, source.shared_bytes, cluster, architecture(func), resident_blocks(func)
    )


def argument_type(type_: Attribute) -> str:
    """What the text calls the type of an argument."""
    if isinstance(type_, TensorMapType):
        return "tensor_map"
    return f"{stored_name(type_.get_element_type())}*" if isa(type_, Memory) else type_name(type_)


def block_threads(func: FuncOp) -> int:
    """How many threads a block of a mapped kernel has."""
    size = func.attributes["block_size"]
    if isinstance(size, DenseArrayBase):
        return prod(int(count) for count in size.iter_values())
    assert isinstance(size, IntegerAttr)
    return size.value.data


def cluster_size(func: FuncOp) -> int:
    """How many blocks form a cluster."""
    size = func.attributes.get("cluster")
    return size.value.data if isinstance(size, IntegerAttr) else 1


def architecture(func: FuncOp) -> str:
    """The one architecture that a kernel can run on; empty for any."""
    name = func.attributes.get("architecture")
    return name.data if isinstance(name, StringAttr) else ""


def resident_blocks(func: FuncOp) -> int:
    """How many blocks a processor has registers for at once, at least."""
    count = func.attributes.get("resident")
    return count.value.data if isinstance(count, IntegerAttr) else 1


def index_bits(func: FuncOp) -> int:
    """How wide the indices of a kernel are."""
    bits = func.attributes.get("index_bits")
    return bits.value.data if isinstance(bits, IntegerAttr) else 64
