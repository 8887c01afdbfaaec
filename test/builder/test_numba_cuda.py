"""Kernels of every family become cubins for several architectures, without a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
from kernel_text import parse_kernel
from lowered_network import parse_module

from mlirt.builder import numba_cuda
from mlirt.builder.gpu_code import ARCHITECTURES
from mlirt.builder.machine_code.disassembler import disassemble
from mlirt.builder.numba_cuda import compile_kernels
from mlirt.builder.numba_cuda_compiler import ptx_text, without_fused_clamps
from mlirt.codegen.numba_cuda.cuda_expressions import CUDA_EXPRESSIONS as EXPRESSIONS
from mlirt.codegen.numba_cuda.kernel_source import emit_kernel, sources_of
from mlirt.codegen.numba_cuda.kernel_text import KernelSource
from mlirt.codegen.numba_cuda.vocabulary import VOCABULARY
from mlirt.errors import CompileError, UnsupportedError
from mlirt.passes.pipeline import run_passes

PRODUCT = """
func.func @main(%x: tensor<96x64x{t}>, %w: tensor<64x72x{t}>) -> tensor<96x72x{t}> {{
  %y = fused.matmul %x, %w {{fused.tactic = "{tactic}"}} :
    (tensor<96x64x{t}>, tensor<64x72x{t}>) -> tensor<96x72x{t}> {{
  ^bb0(%acc: f32):
    {narrow}
    fused.yield {out} : {t}
  }}
  func.return %y : tensor<96x72x{t}>
}}
"""
SOFTMAX = """
func.func @main(%x: tensor<3x700xf64>) -> tensor<3x700xf64> {
  %y = fused.softmax %x {axis = 1 : i64} : (tensor<3x700xf64>) -> tensor<3x700xf64>
  func.return %y : tensor<3x700xf64>
}
"""
MEANS = """
func.func @main(%x: tensor<8x192x35x35xf32>) -> tensor<8x192x35x35xf32> {
  %y = fused.window average %x {window = array<i64: 3, 3>, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>,
    pre_padding = #trt.dims<["1", "1"]>, post_padding = #trt.dims<["1", "1"]>, count_include_padding = true} :
    (tensor<8x192x35x35xf32>) -> tensor<8x192x35x35xf32> {
  ^bb0(%sum: f32):
    fused.yield %sum : f32
  }
  func.return %y : tensor<8x192x35x35xf32>
}
"""
NETWORKS = {
    "matmul f32": PRODUCT.format(tactic="cuda_tiles", t="f32", narrow="", out="%acc"),
    "matmul f16": PRODUCT.format(tactic="cuda_tiles", t="f16", narrow="%n = arith.truncf %acc : f32 to f16", out="%n"),
    "matmul bf16": PRODUCT.format(
        tactic="cuda_tiles", t="bf16", narrow="%n = arith.truncf %acc : f32 to bf16", out="%n"
    ),
    "softmax f64": SOFTMAX,
}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRT_CACHE", str(tmp_path))


def lowered(text: str) -> dict[str, KernelSource]:
    module, context = parse_module(text)
    run_passes(module, context, "convert-fused-to-kernel{target=cuda},map-parallel-to-threads")
    return sources_of(module)


def test_a_machine_without_the_compiler_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        """No package of any name."""

    monkeypatch.setattr(numba_cuda, "find_spec", absent)
    with pytest.raises(UnsupportedError, match=r"not installed: pip install 'mlirt\[cuda\]'"):
        compile_kernels(lowered(SOFTMAX))


@pytest.mark.parametrize("choice", ["64x64s3", "64x64s3c2", "128x128s4", "64x128s4t"])
def test_kernels_of_warpgroups_become_cubins_of_one_architecture(choice: str) -> None:
    narrow = "%n = arith.truncf %acc : f32 to f16"
    sources = lowered(PRODUCT.format(tactic=f"cuda_wgmma:{choice}", t="f16", narrow=narrow, out="%n"))
    ((kernel, cubins),) = compile_kernels(sources).items()
    assert list(cubins) == ["sm_90a"]
    assert cubins["sm_90a"].spilled_bytes == 0
    assert compile_kernels(sources)[kernel] == cubins


def test_an_integer_between_zero_and_another_is_two_instructions() -> None:
    text = "min.s32 \t%r2, %r1, 3;\n\tmax.s32 \t%r3, %r2, 0;\n\tmax.s32 \t%r5, %r4, 0;\n"
    found = without_fused_clamps(text)
    assert "max.s32 \t%r3" not in found
    assert "and.b32 %r3, %r2, n;" in found
    assert "max.s32 \t%r5, %r4, 0;" in found


def test_means_of_windows_at_borders_have_no_fused_clamps() -> None:
    for cubins in compile_kernels(lowered(MEANS)).values():
        (text,) = disassemble([cubins["sm_90a"].code])
        assert "VIMNMX" in text
        assert ".RELU" not in text


def test_early_starts_are_left_out_for_devices_without_them() -> None:
    module, context = parse_module(SOFTMAX)
    run_passes(module, context, "convert-fused-to-kernel{target=cuda},map-parallel-to-threads,start-launches-early")
    ((name, source),) = sources_of(module).items()
    assert "wait_dependency()" in source.text
    assert set(compile_kernels({name: source})[name]) == set(ARCHITECTURES)


@pytest.mark.parametrize("name", NETWORKS)
def test_kernels_become_cubins(name: str) -> None:
    sources = lowered(NETWORKS[name])
    made = compile_kernels(sources)
    assert set(made) == set(sources)
    for kernel, by_architecture in made.items():
        assert set(by_architecture) == {"sm_80", "sm_90a"}
        for cubin in by_architecture.values():
            assert cubin.code.startswith(b"\x7fELF")
            assert kernel.encode() in cubin.code
            assert cubin.registers > 0
            assert cubin.spilled_bytes == 0


def test_a_second_build_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = lowered(SOFTMAX)
    first = compile_kernels(sources)

    def forbidden(module: str) -> None:
        raise AssertionError(f"{module} was started")

    monkeypatch.setattr(numba_cuda, "CompilerProcess", forbidden)
    assert compile_kernels(sources) == first


def scalar_kernel(type_: str) -> str:
    """A kernel that applies every scalar op that takes and gives numbers of one type."""
    lines: list[str] = []
    value = "%v"
    for name in sorted(EXPRESSIONS):
        floating = name.startswith("math") or name.endswith("f")
        if floating != (type_[0] == "f") or name in _OTHER or name.rsplit(".", 1)[1] in ("absi", "ipowi", "fpowi"):
            continue
        operands = ", ".join([value, "%w", "%v"][: _ARITY.get(name, 2 if name.startswith("arith") else 1)])
        lines.append(f'%r{len(lines)} = "{name}"({operands}) {_PROPERTIES.get(name, "")} : '
                     f"({', '.join([type_] * (operands.count(',') + 1))}) -> {type_}")  # fmt: skip
        value = f"%r{len(lines) - 1}"
    body = "\n      ".join(lines)
    one = "strides [1]"
    return f"""
    kernel.func @scalars(%x: memref<?x{type_}>, %y: memref<?x{type_}>) attributes {{block_size = 32 : i64}} {{
      %t = kernel.thread_id : index
      %v = kernel.load %x [%t] {one} : memref<?x{type_}> -> {type_}
      %w = kernel.load %y [%t] {one} : memref<?x{type_}> -> {type_}
      {body}
      kernel.store {value}, %y [%t] {one} : {type_}, memref<?x{type_}>
      kernel.return
    }}"""


_ARITY = {"arith.negf": 1, "kernel.remf": 2, "math.atan2": 2, "math.copysign": 2, "math.powf": 2, "math.fma": 3}
_PROPERTIES = {
    name: '<{"fastmath" = #arith.fastmath<none>}>'
    for name in EXPRESSIONS
    if name.startswith("math") or name in ("arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.negf")
    or name.endswith(("numf", "mumf"))
}  # fmt: skip
_OTHER = {
    f"arith.{name}"
    for name in (
        *("constant", "select", "cmpi", "cmpf", "bitcast", "index_cast"),
        *("extf", "truncf", "extsi", "extui", "trunci", "sitofp", "uitofp", "fptosi", "fptoui"),
    )
}


@pytest.mark.parametrize("type_", ["f32", "f64", "i8", "i16", "i32", "i64"])
def test_every_scalar_op_compiles(type_: str) -> None:
    source = emit_kernel(parse_kernel(scalar_kernel(type_)))
    (cubin,) = compile_kernels({source.name: source}, architectures=("sm_80",))[source.name].values()
    assert cubin.registers > 0


CONVERSIONS = {
    (
        "f16",
        "f32",
    ): "%a = arith.maximumf %0, %0 : f16\n%b = arith.minimumf %a, %0 : f16\n%r = arith.extf %b : f16 to f32",
    ("f16", "f16"): "%a = arith.extf %0 : f16 to f32\n%b = math.exp %a : f32\n%r = arith.truncf %b : f32 to f16",
    ("bf16", "bf16"): "%a = arith.extf %0 : bf16 to f32\n%b = math.exp %a : f32\n%r = arith.truncf %b : f32 to bf16",
    ("f32", "i1"): "%a = arith.constant 0.0 : f32\n%r = arith.cmpf ogt, %0, %a : f32",
    ("i1", "f32"): "%a = arith.constant 1.0 : f32\n%b = arith.negf %a : f32\n%r = arith.select %0, %a, %b : f32",
    ("i1", "i1"): "%a = arith.constant true\n%r = arith.xori %0, %a : i1",
    ("ui8", "f32"): "%a = arith.bitcast %0 : ui8 to i8\n%r = arith.uitofp %a : i8 to f32",
    ("f32", "ui8"): "%a = arith.fptosi %0 : f32 to i32\n%b = arith.trunci %a : i32 to i8\n"
    "%r = arith.bitcast %b : i8 to ui8",
    ("i8", "i64"): "%r = arith.extsi %0 : i8 to i64",
    ("f64", "i32"): "%r = arith.fptosi %0 : f64 to i32",
}


@pytest.mark.parametrize("shape", [(8, 4096), (3, 5)], ids=["vectors", "elements"])
def test_every_element_type_is_read_and_written(shape: tuple[int, int]) -> None:
    sources: dict[str, KernelSource] = {}
    for (given, result), body in CONVERSIONS.items():
        x, y = (f"tensor<{shape[0]}x{shape[1]}x{element}>" for element in (given, result))
        sources |= lowered(f"""
        func.func @main(%x: {x}) -> {y} {{
          %y = fused.pointwise %x {{access = [#fused.access<["d0", "d1"]>]}} : ({x}) -> {y} {{
          ^bb0(%0: {given}):
            {body}
            fused.yield %r : {result}
          }}
          func.return %y : {y}
        }}""")
    made = compile_kernels(sources, architectures=("sm_80",))
    assert len(made) == len(CONVERSIONS)


@pytest.mark.parametrize(
    ("convert", "contracted"), [("arith.sitofp %0 : i8 to f32", 0), ("arith.extf %0 : f16 to f32", 1)]
)
def test_sums_of_products_of_integers_are_rounded_twice(convert: str, contracted: int) -> None:
    element = convert.split()[3]
    ((_, source),) = lowered(f"""
    func.func @main(%x: tensor<35x{element}>) -> tensor<35xf32> {{
      %y = fused.pointwise %x {{access = [#fused.access<["d0"]>]}} : (tensor<35x{element}>) -> tensor<35xf32> {{
      ^bb0(%0: {element}):
        %wide = {convert}
        %scale = arith.constant 0.1 : f32
        %scaled = arith.mulf %wide, %scale : f32
        %sum = arith.addf %scaled, %wide : f32
        fused.yield %sum : f32
      }}
      func.return %y : tensor<35xf32>
    }}""").items()
    assert ptx_text(source, "sm_80").count("fma.rn.f32") == contracted


def test_the_library_defines_every_word() -> None:
    from mlirt.builder.numba_cuda_intrinsics import WORDS

    assert set(WORDS) == set(VOCABULARY)


def test_what_numba_refuses_is_told_with_the_kernel() -> None:
    source = KernelSource("broken", "def broken(x):\n    x[0] = unknown(1)\n", ("float32*",), 32, 0)
    with pytest.raises(CompileError, match=r"kernel broken: numba-cuda refuses the generated source: .*unknown"):
        compile_kernels({"broken": source})


def test_an_unmapped_kernel_has_no_source() -> None:
    kernel = parse_kernel("kernel.func @k() { kernel.return }")
    with pytest.raises(CompileError, match="kernel @k is not mapped to blocks and threads"):
        emit_kernel(kernel)


def test_a_word_is_made_where_it_is_used() -> None:
    """`word(parameters)(operands)` is what it is with a word that is made before the function."""
    text = """from mlirt.builder.numba_cuda_intrinsics import *
WORDS
def total(output: "float32*"):
    lane = thread_id()
    output[lane] = output[lane] + ONE(output[lane]) + OTHER(output[lane])
"""
    before = text.replace("WORDS", 'near = shuffle("float32", 1)\nfar = shuffle("float32", 16)')
    before = before.replace("ONE", "near").replace("OTHER", "far")
    inside = (
        text.replace("WORDS", "").replace("ONE", 'shuffle("float32", 1)').replace("OTHER", 'shuffle("float32", 16)')
    )
    first, second = (ptx_text(KernelSource("total", one, ("float32*",), 32, 0), "sm_80") for one in (before, inside))
    assert "shfl.sync" in first
    assert first == second


def test_numbers_take_the_type_of_what_they_meet() -> None:
    """A plain number among indices of 32 bits leaves them so, in comparisons, choices and divisions."""
    text = """from mlirt.builder.numba_cuda_intrinsics import *

def numbers(output: "int32*", size: "int32"):
    thread = thread_id()
    i = div(thread, size)
    j = rem(thread + size, size)
    k = select(i < 3, 0, minimum(j, 7))
    output[thread] = ceil_div(k, 5)
"""
    made = ptx_text(KernelSource("numbers", text, ("int32*", "int32"), 64, 0, 1, "", 1), "sm_90a")
    assert "div.u32" in made or "rem.u32" in made
    assert not [line for line in made.splitlines() if "div.u64" in line or "rem.u64" in line or "min.s64" in line]
    assert "min.s32" in made
    assert "selp.b64" not in made
