"""The CUDA runtime on a real device: hand-written kernels, linked offline for two architectures, no compiler."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_plan import tiny_parts

from mlirt.runtime.engine import Engine, load
from mlirt.runtime.plan_file import plan_bytes

HEAD = """
.version 7.0
.target sm_80
.address_size 64
"""
INDEX = """
 .reg .pred %p; .reg .u32 %r<4>; .reg .s64 %n; .reg .u64 %x, %y, %i, %o; .reg .f64 %fd; .reg .f32 %f, %a, %v;
 mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r3, %r0, %r1, %r2;
 cvt.u64.u32 %i, %r3;
"""
SCALE = f"""{HEAD}
.visible .entry scale(.param .u64 px, .param .u64 py, .param .s64 pn, .param .f64 pf, .param .f32 pa)
{{ {INDEX}
 ld.param.u64 %x, [px]; ld.param.u64 %y, [py]; ld.param.s64 %n, [pn]; ld.param.f64 %fd, [pf]; ld.param.f32 %a, [pa];
 cvt.rn.f32.f64 %f, %fd;
 setp.ge.s64 %p, %i, %n; @%p bra DONE;
 shl.b64 %o, %i, 2; add.u64 %x, %x, %o; add.u64 %y, %y, %o;
 ld.global.f32 %v, [%x]; mul.rn.f32 %v, %v, %f; add.rn.f32 %v, %v, %a; st.global.f32 [%y], %v;
DONE: ret;
}}
"""
# 64 KiB of shared memory per block: the element goes through its last word.
REVERSE = f"""{HEAD}
.extern .shared .align 16 .b8 room[];
.visible .entry reverse(.param .u64 px, .param .u64 py, .param .s32 pn)
{{ {INDEX}
 .reg .s32 %m; .reg .u64 %s;
 ld.param.u64 %x, [px]; ld.param.u64 %y, [py]; ld.param.s32 %m, [pn]; cvt.s64.s32 %n, %m;
 setp.ge.s64 %p, %i, %n; @%p bra DONE;
 shl.b64 %o, %i, 2; add.u64 %y, %y, %o;
 sub.s64 %n, %n, %i; sub.s64 %n, %n, 1; shl.b64 %o, %n, 2; add.u64 %x, %x, %o;
 ld.global.f32 %v, [%x];
 mov.u64 %s, room; st.shared.f32 [%s+65532], %v; ld.shared.f32 %v, [%s+65532];
 st.global.f32 [%y], %v;
DONE: ret;
}}
"""


@cache
def cubin(source: str, arch: str) -> bytes:
    linker: Any = import_module("cuda.bindings.nvjitlink")
    handle = linker.create(1, [f"-arch={arch}"])
    linker.add_data(handle, linker.InputType.PTX, source.encode(), len(source), "kernel")
    linker.complete(handle)
    code = bytearray(linker.get_linked_cubin_size(handle))
    linker.get_linked_cubin(handle, code)
    return bytes(code)


def cuda_plan_bytes(change: Callable[[dict[str, Any]], None] | None = None) -> bytes:
    parts = tiny_parts()
    manifest = parts.manifest
    manifest["target"] = {"kind": "cuda", "arch": "sm_90a"}
    manifest["main"] = None
    scale, reverse = manifest["kernels"]
    arches = ("sm_80", "sm_90a")
    scale |= {"args": ["ptr", "ptr", "i64", "f64", "f32"], "object": {arch: f"scale.{arch}" for arch in arches}}
    reverse |= {"args": ["ptr", "ptr", "i32"], "object": {arch: f"reverse.{arch}" for arch in arches}}
    scale["block"], reverse["block"], reverse["shared_bytes"] = [128, 1, 1], [1, 1, 1], 65536
    blocks = {"scale": ["//", ["+", ["*", "n", 4], 127], 128], "reverse": ["*", "n", 4]}
    for launch in manifest["launches"]:
        launch["grid"] = [blocks[manifest["kernels"][launch["kernel"]]["name"]], 1, 1]
    manifest["launches"][2]["grid"] = [1, 1, 1]
    if change:
        change(manifest)
    sections = {f"scale.{arch}": cubin(SCALE, arch) for arch in arches}
    sections |= {f"reverse.{arch}": cubin(REVERSE, arch) for arch in arches}
    return plan_bytes(manifest, sections, parts.weights)


@pytest.fixture
def engine() -> Engine:
    return load(cuda_plan_bytes())


def random(n: int) -> np.ndarray:
    return np.random.default_rng(n).standard_normal((n, 4), np.float32)


@pytest.mark.gpu
def test_results_for_several_shapes(engine: Engine) -> None:
    for n in (3, 1, 1000, 3, 0, 7, 8, 9, 1000, 3):
        got = engine.run({"x": random(n)})
        np.testing.assert_array_equal(got["y"], (random(n) * 2 + 1).reshape(-1)[::-1].reshape(n, 4))
        np.testing.assert_array_equal(got["z"], np.arange(8, dtype=np.float32) + 0.5)


@pytest.mark.gpu
def test_contexts_and_times(engine: Engine) -> None:
    contexts = [engine.create_execution_context() for _ in range(3)]
    for context in contexts:
        outputs, times = context.run_timed({"x": random(5)})
        np.testing.assert_array_equal(outputs["y"], engine.run({"x": random(5)})["y"])
        assert 0 < times.end_compute - times.start_compute < 1000
        assert times.start_h2d <= times.end_h2d <= times.start_compute <= times.end_compute <= times.end_d2h
        resident = context.run_resident({"x": random(5)}).execute()
        assert 0 < resident.end_compute - resident.start_compute < 1000


@pytest.mark.gpu
def test_profile(engine: Engine) -> None:
    profile = engine.profile({"x": random(4)})
    assert [layer for layer, _ in profile] == ["double", "turn", "weigh"]
    assert all(0 < ms < 1000 for _, ms in profile)


@pytest.mark.gpu
def test_zero_borders_return_after_another_shape() -> None:
    def with_halo(manifest: dict[str, Any]) -> None:
        size = ["+", ["*", "n", 16], 64]
        manifest["buffers"].append({"kind": "arena", "bytes": size, "first": 0, "last": 3, "halo": "h"})
        manifest["launches"][0]["args"][1] = {"buffer": 5}
        manifest["launches"][1]["args"][0] = {"buffer": 5}
        shape = [["+", ["*", "n", 4], 16]]
        manifest["outputs"].append({"name": "all", "dtype": "float32", "shape": shape, "buffer": 5})

    engine = load(cuda_plan_bytes(with_halo))
    for n in (2, 50, 2, 50):
        got = engine.run({"x": random(n)})["all"]
        assert got[: 4 * n].any()
        assert not got[4 * n :].any()


@pytest.mark.gpu
def test_save_and_load(engine: Engine, tmp_path: Path) -> None:
    engine.save(tmp_path / "a.plan")
    again = load(tmp_path / "a.plan")
    np.testing.assert_array_equal(again.run({"x": random(6)})["y"], engine.run({"x": random(6)})["y"])


def test_the_plan_is_made_without_a_device() -> None:
    assert cuda_plan_bytes()[:6] == b"\x89mlirt"
