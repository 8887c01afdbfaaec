"""Plan files as docs/architecture.md says: loading one executes nothing of it, not even constructors.

tensorrt-features.md#21.7.
"""

from __future__ import annotations

import numpy as np
import pytest
from tiny_plan import SCALE, tiny_parts

import mlirt
from mlirt.runtime.llvm_binding import llvm
from mlirt.runtime.plan_file import plan_bytes

CONSTRUCTOR = """
declare i64 @write(i32, ptr, i64)
@text = private constant [8 x i8] c"executed"
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr @started, ptr null }]
define void @started() {
  %written = call i64 @write(i32 1, ptr @text, i64 8)
  ret void
}
"""
KERNEL_THAT_SPEAKS = """
declare i64 @write(i32, ptr, i64)
@text = private constant [8 x i8] c"executed"
define void @scale(ptr %p, i64 %tid, i64 %nt) {
  %written = call i64 @write(i32 1, ptr @text, i64 8)
  ret void
}
"""


def _object_code(source: str) -> bytes:
    """As the builder compiles kernels: constants lie near the code."""
    target = llvm().Target.from_triple(llvm().get_process_triple())
    machine = target.create_target_machine(reloc="pic", codemodel="small", jit=False)
    return machine.emit_object(llvm().parse_assembly(source))


@pytest.mark.parametrize(
    ("source", "after_run"),
    [(SCALE + CONSTRUCTOR, False), (KERNEL_THAT_SPEAKS, True)],
    ids=["constructor", "kernel"],
)
def test_only_run_executes(source: str, after_run: bool, capfd: pytest.CaptureFixture[str]) -> None:
    parts = tiny_parts()
    parts.sections["scale.o"] = _object_code(source)
    engine = mlirt.load(plan_bytes(parts.manifest, parts.sections, parts.weights))
    assert "executed" not in capfd.readouterr().out
    engine.run({"x": np.zeros((2, 4), np.float32)})
    assert ("executed" in capfd.readouterr().out) == after_run
