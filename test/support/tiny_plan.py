"""Tiny plans made without the compiler: kernels in LLVM IR, manifests by hand."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from mlirt.builder.spmd_main import main_object
from mlirt.runtime.contract_checks import contract_record, contracts_section
from mlirt.runtime.llvm_binding import llvm

SCALE = """
; params: x, y, count, factor (bits of a double), addend (bits of a double); y = factor * x + addend, split over threads
define void @scale(ptr %p, i64 %tid, i64 %nt) {
entry:
  %x = load ptr, ptr %p
  %p1 = getelementptr i64, ptr %p, i64 1
  %y = load ptr, ptr %p1
  %p2 = getelementptr i64, ptr %p, i64 2
  %n = load i64, ptr %p2
  %p3 = getelementptr i64, ptr %p, i64 3
  %f = load double, ptr %p3
  %p4 = getelementptr i64, ptr %p, i64 4
  %a = load double, ptr %p4
  %factor = fptrunc double %f to float
  %addend = fptrunc double %a to float
  %lo = mul i64 %n, %tid
  %first = sdiv i64 %lo, %nt
  %next = add i64 %tid, 1
  %hi = mul i64 %n, %next
  %last = sdiv i64 %hi, %nt
  br label %head
head:
  %i = phi i64 [ %first, %entry ], [ %following, %body ]
  %more = icmp slt i64 %i, %last
  br i1 %more, label %body, label %done
body:
  %from = getelementptr float, ptr %x, i64 %i
  %v = load float, ptr %from, align 4
  %m = fmul float %v, %factor
  %r = fadd float %m, %addend
  %to = getelementptr float, ptr %y, i64 %i
  store float %r, ptr %to, align 4
  %following = add i64 %i, 1
  br label %head
done:
  ret void
}
"""
REVERSE = """
; params: x, y, count; y[i] = cos(x[count-1-i]): needs all of x, so a missing barrier shows;
; refers to libm and to symbols of an error path
declare float @cosf(float)
declare void @NRT_decref(ptr)
declare void @PyErr_Clear()
declare i32 @numba_gil_ensure(ptr)
define void @reverse(ptr %p, i64 %tid, i64 %nt) {
entry:
  %x = load ptr, ptr %p
  %p1 = getelementptr i64, ptr %p, i64 1
  %y = load ptr, ptr %p1
  %p2 = getelementptr i64, ptr %p, i64 2
  %n = load i64, ptr %p2
  %lo = mul i64 %n, %tid
  %first = sdiv i64 %lo, %nt
  %next = add i64 %tid, 1
  %hi = mul i64 %n, %next
  %last = sdiv i64 %hi, %nt
  %broken = icmp slt i64 %n, 0
  br i1 %broken, label %error, label %head
error:
  call void @NRT_decref(ptr null)
  call void @PyErr_Clear()
  call i32 @numba_gil_ensure(ptr null)
  ret void
head:
  %i = phi i64 [ %first, %entry ], [ %following, %body ]
  %more = icmp slt i64 %i, %last
  br i1 %more, label %body, label %done
body:
  %down = sub i64 %n, %i
  %mirror = sub i64 %down, 1
  %from = getelementptr float, ptr %x, i64 %mirror
  %v = load float, ptr %from, align 4
  %c = call float @cosf(float %v)
  %to = getelementptr float, ptr %y, i64 %i
  store float %c, ptr %to, align 4
  %following = add i64 %i, 1
  br label %head
done:
  ret void
}
"""


def compile_ir(source: str, code_model: str = "jitdefault") -> bytes:
    target = llvm().Target.from_default_triple()
    machine = target.create_target_machine(opt=2, reloc="pic", codemodel=code_model, jit=False)
    module = llvm().parse_assembly(source)
    module.triple = llvm().get_process_triple()
    return machine.emit_object(module)


@dataclass
class Parts:
    """The arguments of write_plan, open to changes by a test."""

    manifest: dict[str, Any]
    sections: dict[str, bytes]
    weights: dict[str, np.ndarray]


@cache
def compiled_sections() -> dict[str, bytes]:
    """The object code of the main function and of both kernels."""
    main = main_object(llvm().get_process_triple())
    return {"main": main, "scale.o": compile_ir(SCALE), "reverse.o": compile_ir(REVERSE)}


def tiny_parts() -> Parts:
    """x[n, 4] -> 2x+1 (arena) -> cos of the reverse (output y); w is an 8-float weight, scaled to the output z."""
    count: list[object] = ["*", "n", 4]
    size = ["*", count, 4]
    manifest: dict[str, Any] = {
        "format": 2,
        "mlirt": "0.1.0",
        "name": "tiny",
        "target": {"kind": "cpu", "triple": llvm().get_process_triple(), "features": [], "vector_bits": 128},
        "symbols": [{"name": "n", "input": 0, "axis": 0}],
        "inputs": [{"name": "x", "dtype": "float32", "shape": ["n", 4], "buffer": 0}],
        "outputs": [
            {"name": "y", "dtype": "float32", "shape": ["n", 4], "buffer": 2},
            {"name": "z", "dtype": "float32", "shape": [8], "buffer": 4},
        ],
        "buffers": [
            {"kind": "input", "bytes": size},
            {"kind": "arena", "bytes": size, "first": 0, "last": 1},
            {"kind": "output", "bytes": size},
            {"kind": "weight", "bytes": 32, "weight": "w"},
            {"kind": "arena", "bytes": 32, "first": 2, "last": 3},
        ],
        "kernels": [
            {"name": "scale", "symbol": "scale", "object": "scale.o", "args": ["ptr", "ptr", "i64", "f64", "f64"]},
            {"name": "reverse", "symbol": "reverse", "object": "reverse.o", "args": ["ptr", "ptr", "i64"]},
        ],
        "launches": [
            {
                "kernel": 0,
                "layer": "double",
                "args": [{"buffer": 0}, {"buffer": 1}, {"int": count}, {"float": 2.0}, {"float": 1.0}],
            },
            {"kernel": 1, "layer": "turn", "args": [{"buffer": 1}, {"buffer": 2}, {"int": count}]},
            {
                "kernel": 0,
                "layer": "weigh",
                "args": [
                    {"buffer": 3, "offset": 0, "bytes": 32},
                    {"buffer": 4},
                    {"int": 8},
                    {"float": 1.0},
                    {"float": 0.5},
                ],
            },
        ],
        "main": "main",
        "layers": [{"name": "double", "family": "pointwise"}],
    }
    return Parts(manifest, dict(compiled_sections()), {"w": np.arange(8, dtype=np.float32)})


def with_contracts(parts: Parts) -> Parts:
    """Both kernels touch as many elements through both pointers as their third argument says."""
    numbers = [["arg", 2], ["const", -1], ["+", 0, 1], ["const", 0]]
    extents = [[0, None, 4, 3, 2, 2], [1, None, 4, 3, 2, 2]]
    touched: dict[str, object] = {"signed": [], "numbers": numbers, "unproved": [], "extents": extents}
    kernels = {one["symbol"]: [contract_record(one) | touched] for one in parts.manifest["kernels"]}
    parts.sections["extents"] = contracts_section(kernels, [])
    return parts
