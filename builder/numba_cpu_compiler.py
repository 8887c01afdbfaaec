"""Turns the source of one CPU kernel into the bytes of an object file; runs in a worker process.

LLVM IR is made by `numba_cpu_translator`, or by numba itself where that refuses the source. The function
`k(params, worker, workers)` becomes the C function `void k(int64 *params, int64 worker, int64 workers)` without a trace
of Python in it: numba's calling convention is wrapped away, and what cannot fail has no error path.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

from mlirt.builder.numba_cpu_intrinsics.processor import code_processor
from mlirt.builder.numba_cpu_translator import Unsupported, translated
from mlirt.builder.numba_object_codegen import object_target, optimize
from mlirt.runtime.host_cpu import host_architecture


def compile_kernel(source: str, name: str) -> bytes:
    """The object file that defines `name`, given Python source that defines a function of that name."""
    return _machine().emit_object(_module(source, name))


def assembly(source: str, name: str) -> str:
    """The machine code of a kernel as text, to look at."""
    return _machine().emit_assembly(_module(source, name))


def llvm_ir(source: str, name: str) -> str:
    """The optimised LLVM IR of a kernel, from which its machine code is made."""
    return str(_module(source, name))


@cache
def _machine() -> Any:
    """What writes object code: small and position independent, unlike numba's own, so that constants are close by."""
    llvm: Any = import_module("llvmlite.binding")
    made_for = code_processor()
    if made_for.architecture != host_architecture():
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    if made_for.scalable_bits:
        # Vectors of so many bits are one register then: LLVM is told for a whole process.
        for end in ("min", "max"):
            llvm.set_option("mlirt", f"-aarch64-sve-vector-bits-{end}={made_for.scalable_bits}")
    return llvm.Target.from_triple(made_for.triple).create_target_machine(
        cpu=made_for.cpu, features=made_for.llvm_features, opt=3, reloc="pic", codemodel="small", jit=False
    )


def _module(source: str, name: str) -> Any:
    """The optimised LLVM module of a kernel; nothing but the kernel is visible from outside.

    numba numbers the functions that a process compiles, in their symbols too. Local symbols are numbered by their place
    in the module instead, so that the object file follows from the source alone, whatever was compiled before it; so
    are functions before they are inlined, as labels of blocks keep their names.
    """
    namespace: dict[str, Any] = {}
    exec(compile(source, f"<{name}>", "exec"), namespace)  # our own generated text
    with import_module("numba.core.compiler_lock").global_compiler_lock:
        module = translated_module(source, name, namespace) or _translated_by_numba(namespace[name], name)
    for number, value in enumerate(_inner(module, name)):
        value.linkage = "internal"  # before the optimiser looks, which then need not keep what it has inlined
        value.name = f"{name}.part.{number}"
    _made_for(module)
    optimize(module, _machine())
    for number, value in enumerate(_inner(module, name)):
        value.name = f"{name}.{number}"
    return module


def _made_for(module: Any) -> None:
    """Let a module, which numba has translated for the machine that this runs on, be for the machine of its code."""
    module.triple, module.data_layout = code_processor().triple, str(_machine().target_data)


def _inner(module: Any, name: str) -> list[Any]:
    """The functions and global variables that belong to the kernel alone."""
    values = (*module.functions, *module.global_variables)
    return [value for value in values if value.name != name and not value.is_declaration]


def _target() -> Any:
    target = object_target()
    target.refresh()
    return target


def _operators() -> Any:
    """numba's CPU target with what translation asks it for alone: operators on numbers, pointers and tuples.

    All that numba compiles of NumPy and Python takes as long to import as some kernels take to compile.
    """
    for module in ("builtins", "numbers", "tupleobj"):
        import_module(f"numba.cpython.{module}")
    target = object_target()
    target = target.subtarget(load_additional_registries=lambda: None)
    target.refresh()
    return target


@contextmanager
def _no_more_of_numba() -> Generator[None]:
    """Let numba's CPU target not load all that numba compiles, for which templates of attributes ask it."""
    target = import_module("numba.core.registry").cpu_target.target_context
    target.load_additional_registries = lambda: None
    try:
        yield
    finally:
        del target.load_additional_registries


def translated_module(source: str, name: str, namespace: Mapping[str, Any]) -> Any:
    """The LLVM module of a kernel, not optimised yet; None where numba has to translate it. numba's lock is held."""
    compiler: Any = import_module("numba.core.compiler")
    typing: Any = import_module("numba.core.registry").cpu_target.typing_context
    failures = (Unsupported, NotImplementedError, import_module("numba.core.errors").NumbaError)
    with _no_more_of_numba():
        target = compiler._make_subtarget(_operators(), _flags(compiler))
        typing.refresh()
    library = target.codegen().create_library(name)
    with target.push_code_library(library):
        try:
            library.add_ir_module(translated(source, name, namespace, target, typing, library))
        except failures:
            return None
        library.finalize()
    return library._final_module


def _translated_by_numba(function: Any, name: str) -> Any:
    """The LLVM module of a Python function and of the C function `name` that calls it, which is not optimised yet."""
    compiler: Any = import_module("numba.core.compiler")
    types: Any = import_module("numba.core.types")
    typing: Any = import_module("numba.core.registry").cpu_target.typing_context
    arguments = (types.CPointer(types.int64), types.int64, types.int64)
    target = _target()
    compiled = compiler.compile_extra(typing, target, function, arguments, types.void, _flags(compiler), {})
    library = compiled.library
    library.add_ir_module(_wrapper(target, name, arguments, compiled.fndesc))
    library.finalize()
    return library._final_module


def _flags(compiler: Any) -> Any:
    flags = compiler.Flags()
    flags.no_cpython_wrapper = True
    flags.no_cfunc_wrapper = True
    flags.no_compile = True  # else the function is finished, and an object of Python's made that calls it
    flags.no_rewrites = True  # they are for arrays, exceptions, printing and branches that types decide
    flags.error_model = "numpy"
    flags.boundscheck = False
    flags.nrt = False
    flags.fastmath = import_module("numba.core.cpu_options").FastMathOptions({"contract"})
    return flags


def _wrapper(target: Any, name: str, arguments: Any, description: Any) -> Any:
    """A module with the C function that calls the one that numba made."""
    ir: Any = import_module("llvmlite.ir")
    types: Any = import_module("numba.core.types")
    module = target.create_module(name)
    word = ir.IntType(64)
    outer = ir.Function(module, ir.FunctionType(ir.VoidType(), [word.as_pointer(), word, word]), name)
    builder = ir.IRBuilder(outer.append_basic_block())
    inner = target.declare_function(module, description)
    target.call_conv.call_function(builder, inner, types.void, arguments, outer.args)
    builder.ret_void()
    return module
