"""Kernels of every kind for all architectures of GPUs: assembled, checked by their machine code, interpreted."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from architecture_networks import NETWORKS, lowered_for, on_threads
from lowered_network import parse_module

from mlirt.builder.condition_setter import setter_cubins
from mlirt.builder.cubin import Cubin, is_cubin
from mlirt.builder.machine_code.check import faults_of_all
from mlirt.builder.numba_cuda_compiler import compile_kernel, front_of, ptx_text
from mlirt.codegen.numba_cuda.kernel_text import KernelSource
from mlirt.dialects.device_files import gpu_device
from mlirt.dialects.gpu_architectures import CLUSTERS, TENSOR_MEMORY, WARPGROUPS, architecture_names, gpu_architecture
from mlirt.dialects.interpreter import interpret

ARCHITECTURES = architecture_names()


@cache
def _ptx(text: str, shape: tuple[int, ...], front: str, source: KernelSource) -> str:
    return ptx_text(source, front)


def compiled(source: KernelSource, architecture: str) -> Cubin:
    """The code of a kernel; the front end runs once for all that share its text."""
    front = front_of(source, architecture)
    plain = replace(source, architecture="")
    text = _ptx(source.text, (source.threads, source.cluster, source.resident), front, plain)
    return compile_kernel(source, [architecture], text)[architecture]


@pytest.mark.parametrize("name", NETWORKS)
def test_kernels_assemble_for_every_architecture(name: str) -> None:
    codes = list[bytes]()
    for architecture in ARCHITECTURES:
        known = gpu_architecture(architecture)
        sources = lowered_for(architecture, NETWORKS[name])
        assert sources
        for source in sources.values():
            assert source.architecture in ("", architecture)
            assert source.shared_bytes <= gpu_device(known.device).shared_bytes
            assert source.cluster == 1 or CLUSTERS in known.instructions
            assert "warpgroup_mma" not in source.text or WARPGROUPS in known.instructions
            assert "tensor_mma" not in source.text or TENSOR_MEMORY in known.instructions
            codes.append(compiled(source, architecture).code)
    assert all(is_cubin(code) for code in codes)
    assert [fault for faults in faults_of_all(codes) for fault in faults] == []


def test_graphs_decide_on_every_architecture() -> None:
    """The kernel behind branches and loops."""
    made = setter_cubins([*ARCHITECTURES, "compute_80"])
    assert tuple(made) == ARCHITECTURES
    assert all(is_cubin(code) for code in made.values())


@pytest.mark.parametrize("name", ["product in half precision", "product in single precision", "product of int8"])
def test_without_asynchronous_copies_tiles_come_through_registers(name: str) -> None:
    (older,), (newer,) = (lowered_for(arch, NETWORKS[name]).values() for arch in ("sm_75", "sm_80"))
    assert "copy_async" in newer.text
    assert "copy_async" not in older.text or name == "product in single precision"
    assert older.shared_bytes < newer.shared_bytes


@pytest.mark.parametrize("architecture", ["sm_75", "sm_86"])
@pytest.mark.parametrize(
    "name",
    ["product in half precision", "product in single precision", "product of int8", "convolution in half precision"],
)
def test_the_interpreter_runs_them(name: str, architecture: str) -> None:
    module, context = parse_module(NETWORKS[name])
    rng = np.random.default_rng(0)
    feeds = {
        one: (rng.integers(-9, 9, shape) if dtype.kind in "iu" else rng.standard_normal(shape)).astype(dtype)
        for one, (shape, dtype) in _inputs(NETWORKS[name]).items()
    }
    wanted, found = interpret(module, context, feeds)["y"], on_threads(architecture, NETWORKS[name], feeds)["y"]
    if wanted.dtype.kind in "iu":
        np.testing.assert_array_equal(found, wanted)
    else:
        np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=4e-3, atol=4e-3)


def _inputs(text: str) -> dict[str, tuple[tuple[int, ...], np.dtype[np.generic]]]:
    """The shapes and the element types of a network's inputs by name."""
    from xdsl.dialects.func import FuncOp

    from mlirt.dialects.tensor_types import dims, element_of

    module, _ = parse_module(text)
    (function,) = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    names = {"f16": np.dtype(np.float16), "f32": np.dtype(np.float32), "i8": np.dtype(np.int8)}
    return {
        str(one.name_hint): (tuple(int(str(size)) for size in dims(one.type)), names[str(element_of(one.type))])
        for one in function.body.block.args
    }
