"""Assemblers of whole programs: registers that warpgroups give to others, and kernels that an assembler refuses."""

from __future__ import annotations

import re
import shutil
import sys
import warnings
from pathlib import Path

import pytest
from attentions import Attention
from gpu_kernels import lower_to_threads
from lowered_network import parse_module

from mlirt.builder import numba_cuda
from mlirt.builder.assemblers import nvjitlink, nvrtc, ptxas
from mlirt.builder.assemblers.choice import VARIABLE, asked_assembler, assemble, assembler_versions
from mlirt.builder.build_keys import model_key
from mlirt.builder.config.build_config import BuildConfig
from mlirt.builder.host import cuda_target
from mlirt.builder.machine_code.check import faults_of
from mlirt.builder.machine_code.disassembler import disassemble
from mlirt.builder.numba_cuda import compile_kernels, ptx_texts
from mlirt.builder.tactics.sites import find_sites
from mlirt.codegen.numba_cuda.kernel_source import sources_of
from mlirt.codegen.numba_cuda.kernel_text import KernelSource
from mlirt.dialects.target import FIXED_REGISTERS
from mlirt.errors import CompileError, InvalidInputError

WIDE = Attention(1, 2, 300, 300, 128, 128, packed=True)
_HEAD = ".version 8.3\n.target sm_90a\n.address_size 64\n"
_FAKE = """#!{python}
import sys
if "--version" in sys.argv:
    print("Cuda compilation tools, release 11.0, V11.0.1")
elif "--list-version" in sys.argv:
    print("7.8\\n8.0\\n")
else:
    sys.exit("ptxas fatal   : it is a bad day\\nfor kernels")
"""


def sources(case: Attention = WIDE, shape: str = "128x128s2o") -> dict[str, KernelSource]:
    text = case.text().replace("reduced =", f'fused.tactic = "cuda_groups:{shape}", reduced =')
    return sources_of(lower_to_threads(*parse_module(text)))


@pytest.fixture(scope="module")
def wide() -> tuple[str, str]:
    """The name and the PTX of attention with the next scores beside results of 128."""
    ((name, text),) = ptx_texts(sources(), "sm_90a").items()
    return name, text


@pytest.fixture
def fake(tmp_path: Path) -> str:
    """A ptxas that refuses every kernel."""
    path = tmp_path / "ptxas"
    path.write_text(_FAKE.format(python=sys.executable))
    path.chmod(0o755)
    return str(path)


def test_registers_are_given_in_a_whole_program(wide: tuple[str, str]) -> None:
    name, text = wide
    made = nvrtc.assemble(text, "sm_90a", name)
    (listing,) = disassemble([made.code])
    assert re.findall(r"USETMAXREG\S* .*(0x\w+) ;", listing) == ["0xe8", "0x28"]
    assert (made.registers, made.spilled_bytes) == (168, 0)
    assert max(int(number) for number in re.findall(r"\bR(\d+)\b", listing)) >= made.registers
    assert faults_of(made.code) == []


def test_a_linker_gives_none_away(wide: tuple[str, str]) -> None:
    name, text = wide
    made = nvjitlink.link(text, "sm_90a", name)
    assert made.spilled_bytes > 0
    assert "USETMAXREG" not in disassemble([made.code])[0]


def test_the_same_assembler_makes_the_same_code(wide: tuple[str, str]) -> None:
    name, text = wide
    assert nvrtc.assemble(text, "sm_90a", name) == nvrtc.assemble(text, "sm_90a", name)


def test_programs_have_the_entry_of_the_ptx() -> None:
    text = f"""{_HEAD}
    .extern .shared .align 1024 .b8 memory[];
.visible .entry some(
\t.param .align 64 .b8 some_param_0[128],
\t.param .f32 some_param_1,
\t.param .u64 some_param_2
)
.maxntid 384, 1, 1
.minnctapersm 1
.explicitcluster
.reqnctapercluster 2, 1, 1
{{
\t// a "comment"
\tmov.u32 %r1, memory;
\tret;
}}
"""
    assert nvrtc.program_of(text, "some").splitlines() == [
        "struct __align__(64) Parameter0 { char bytes[128]; };",
        "extern __shared__ __align__(1024) char memory[];",
        'extern "C" __global__ void __launch_bounds__(384, 1) __cluster_dims__(2) some('
        "const __grid_constant__ Parameter0 p0, float p1, unsigned long long p2) {",
        'asm volatile("" :: "l"(memory));',
        "asm volatile(",
        r'"{\n"',
        r'"\tmov.u32 %r1, memory;\n"',
        r'"\tret;\n"',
        r'"}\n"',
        '::: "memory");',
        "}",
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (_HEAD, "entry"),
        (".visible .entry k(\n\t.param .b128 k_param_0\n)\n.maxntid 32, 1, 1\n{\nret;\n}\n", r"parameter '\.param"),
        (".visible .entry k(\n\t.param .u32 other\n)\n.maxntid 32, 1, 1\n{\nret;\n}\n", r"parameter '\.param"),
        (".visible .entry k(\n\t.param .u32 k_param_0\n)\n.maxntid 8, 8, 1\n{\nret;\n}\n", r"directive '\.maxntid 8"),
        (".visible .entry k(\n\t.param .u32 k_param_0\n)\n{\nret;\n}\n", "number of threads"),
        (
            ".global .u32 g;\n.visible .entry k(\n\t.param .u32 k_param_0\n)\n.maxntid 32, 1, 1\n{\nret;\n}\n",
            r"declaration '\.global \.u32 g;'",
        ),
    ],
)
def test_other_texts_are_no_program(text: str, reason: str) -> None:
    with pytest.raises(CompileError, match=f"kernel k: the PTX is no single kernel .*: {reason}"):
        nvrtc.program_of(text, "k")


def test_what_nvrtc_refuses_is_told_in_one_line() -> None:
    text = f"{_HEAD}.visible .entry k(\n\t.param .u32 k_param_0\n)\n.maxntid 32, 1, 1\n{{\n\tnonsense;\n}}\n"
    with pytest.raises(CompileError, match=r"kernel k: NVRTC refuses the PTX for sm_90a: .*") as refused:
        nvrtc.assemble(text, "sm_90a", "k")
    assert "\n" not in str(refused.value)


@pytest.mark.skipif(sys.platform == "win32", reason="a script with a first line is no program there")
def test_a_program_that_refuses_gives_way_with_a_warning(
    fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLIRT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(VARIABLE, fake)
    monkeypatch.setenv(numba_cuda.SWITCH, "0")
    reason = "ptxas refuses the PTX for sm_90a: ptxas fatal : it is a bad day for kernels; nvJitLink takes it"
    for _ in range(2):  # what another assembler made is not kept under the name of this one
        with pytest.warns(UserWarning, match=reason):
            ((_, cubins),) = compile_kernels(sources()).items()
        assert cubins["sm_90a"].spilled_bytes > 0
    monkeypatch.setenv(VARIABLE, "nvrtc")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ((_, cubins),) = compile_kernels(sources()).items()
    assert cubins["sm_90a"].spilled_bytes == 0


@pytest.mark.skipif(sys.platform == "win32", reason="a script with a first line is no program there")
def test_a_program_is_given_a_version_that_it_reads(fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = tmp_path / "seen"
    Path(fake).write_text(
        Path(fake).read_text().replace("else:", f"else:\n    open({str(seen)!r}, 'w').write(open(sys.argv[-1]).read())")
    )
    for given, wanted in (("9.5", "8.0"), ("7.0", "7.0")):
        with pytest.raises(CompileError, match="ptxas refuses"):
            ptxas.assemble(fake, f".version {given}\n.target sm_90a\n", "sm_90a", "k")
        assert seen.read_text().startswith(f".version {wanted}\n")


def test_other_kernels_are_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What gives no registers goes to nvJitLink, whatever is asked for."""
    narrow = sources(Attention(1, 2, 300, 300, 64, 64, packed=True), "64x128s2")
    assert all("set_registers(" not in source.text for source in narrow.values())
    ((name, text),) = ptx_texts(narrow, "sm_90a").items()
    assert assemble(text, "sm_90a", name, "/no/such/program") == nvjitlink.link(text, "sm_90a", name)


@pytest.mark.parametrize("asked", ["ptxas", "bin/ptxas", "/no/such/program", "NVRTC"])
def test_programs_are_not_looked_for(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, asked)
    with pytest.raises(InvalidInputError, match="expected nvrtc, nvjitlink or the full path of a ptxas"):
        asked_assembler()


@pytest.mark.skipif(sys.platform == "win32", reason="a script with a first line is no program there")
def test_what_is_no_ptxas_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = str(shutil.which("true") or shutil.which("false"))
    monkeypatch.setenv(VARIABLE, other)
    with pytest.raises(CompileError, match=f"{VARIABLE}={other} is no ptxas"):
        assembler_versions()


@pytest.mark.skipif(sys.platform == "win32", reason="a script with a first line is no program there")
def test_keys_name_the_assembler(fake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of kernels that give registers, and of models for GPUs; not those of their PTX, nor of other kernels."""
    keys, texts, others, models = set[str](), set[str](), set[str](), set[str | None]()
    ((name, source),) = sources().items()
    (other,) = sources(Attention(1, 2, 300, 300, 64, 64, packed=True), "64x128s2").values()
    monkeypatch.setenv(numba_cuda.SWITCH, "0")
    for asked in ("nvrtc", "nvjitlink", fake):
        monkeypatch.setenv(VARIABLE, asked)
        keys.add(numba_cuda.key_of_kernel(name, source, "sm_90a"))
        texts.add(numba_cuda.key_of_kernel(name, source, "ptx of sm_90a"))
        others.add(numba_cuda.key_of_kernel(name, other, "sm_90a"))
        models.add(model_key(b"a model", "cuda", BuildConfig(heuristic=True)))
    assert [len(keys), len(texts), len(others), len(models)] == [3, 1, 1, 3]
    assert None not in models


def test_shapes_that_need_more_registers_are_offered_where_these_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[str, set[str]] = {}
    for asked in ("nvrtc", "nvjitlink"):
        monkeypatch.setenv(VARIABLE, asked)
        module, context = parse_module(WIDE.text())
        (site,) = find_sites(module, context, cuda_target())
        found[asked] = {one.name for one in site.candidates}
        assert (FIXED_REGISTERS in cuda_target().special) == (asked == "nvjitlink")
    assert found["nvjitlink"] < found["nvrtc"]
    assert "cuda_groups:128x128s2o" in found["nvrtc"] - found["nvjitlink"]
