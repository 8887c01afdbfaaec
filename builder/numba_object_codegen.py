"""numba as a translator to LLVM IR alone: it neither optimises whole modules nor loads machine code.

numba is made to run what it compiles. It optimises each function as a whole when it is finished, as a subroutine and
again inside each caller, and loads its machine code into an execution engine, before anybody asks for that. A kernel is
wanted as an object file: only the whole of it has to be optimised, and nobody calls it here. `object_target` is numba's
CPU target with a code generator that leaves both away. It overrides five methods of `numba.core.codegen`; where a
version of numba lacks one, its own code generator stands in, which takes longer.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

_LIBRARY_STEPS = ("_optimize_functions", "_optimize_final_module", "_finalize_specific")
_GENERATOR_STEPS = ("_add_module", "set_env")


@cache
def object_target() -> Any:
    """numba's CPU target, whose libraries are LLVM modules that nobody has optimised as a whole yet."""
    target: Any = import_module("numba.core.registry").cpu_target.target_context
    generators: Any = import_module("numba.core.codegen")
    generator = getattr(generators, "JITCPUCodegen", None)
    library = getattr(generators, "JITCodeLibrary", None)
    known = all(hasattr(library, step) for step in _LIBRARY_STEPS) and all(
        hasattr(generator, step) for step in _GENERATOR_STEPS
    )
    return target.subtarget(_internal_codegen=_generator(generator, library)("mlirt")) if known else target


def optimize(module: Any, machine: Any) -> None:
    """Optimise a whole LLVM module in place, at the highest level, for a target machine of llvmlite.

    The first machine code is thrown away. LLVM reduces the strength of loops, and puts addresses where they are used,
    in the module that it writes machine code from; what is simplified after that needs fewer registers, which the
    accumulators of a tile take: the products of Winograd's way lose 2 to 5 % without it. A second run of all passes
    gains nothing beyond these two.
    """
    llvm: Any = import_module("llvmlite.binding")
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization, options.slp_vectorization = True, False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)  # LLVM ends the process where one is run twice
    machine.emit_object(module)
    simplify = llvm.create_new_module_pass_manager()
    simplify.add_instruction_combine_pass()
    simplify.add_simplify_cfg_pass()
    simplify.run(module, builder)


def _generator(generator: Any, library: Any) -> Any:
    """The class of code generators that hand modules on as they are."""

    def leave(*_: object) -> None:
        """In place of a step that prepares a module to be run."""

    steps = dict.fromkeys(_GENERATOR_STEPS, leave)
    libraries = type("ObjectCodeLibrary", (library,), dict.fromkeys(_LIBRARY_STEPS, leave))
    return type("ObjectCodegen", (generator,), {**steps, "_library_class": libraries})
