"""Which GPU kernels are chosen for: the one that is asked for, the one that is here, or the newest that has code."""

from __future__ import annotations

import pytest
from fake_driver import FakeDriver
from small_network import network
from xdsl.dialects.builtin import ModuleOp

from mlirt.builder import host
from mlirt.builder.host import cpu_target, cuda_target
from mlirt.dialects.context import RtContext
from mlirt.dialects.kernel.core import FuncOp
from mlirt.errors import InvalidInputError, PlanError
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.phases import TargetMachine
from mlirt.passes.pipeline import PipelineOptions, run_phases
from mlirt.runtime import cuda_driver
from mlirt.runtime.host_cpu import host_features


@pytest.mark.parametrize(
    ("capability", "arch"),
    [
        ((9, 0), "sm_90a"),
        ((8, 0), "sm_80"),
        ((8, 9), "sm_89"),
        ((8, 7), "sm_87"),
        ((7, 5), "sm_75"),
        ((10, 0), "sm_100a"),
        ((12, 1), "sm_120"),
        ((6, 0), "sm_90a"),
    ],
)
def test_the_gpu_of_the_machine(capability: tuple[int, int], arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_driver, "open_driver", lambda: FakeDriver(capability=capability))
    assert cuda_target().arch == arch
    assert cuda_target().gpu.arch == arch
    assert cuda_target().gpu.processors == 132


def test_a_machine_without_a_gpu_and_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> None:
        raise PlanError("no driver")

    monkeypatch.setattr(cuda_driver, "open_driver", absent)
    assert cuda_target().arch == "sm_90a"
    monkeypatch.setenv("MLIRT_ARCH", "sm_80")
    assert cuda_target().arch == "sm_80"
    assert cuda_target().device == "a100"
    monkeypatch.setenv("MLIRT_ARCH", "sm_12")
    with pytest.raises(InvalidInputError, match="code for 'sm_12' is not made: expected one of sm_75, sm_80, sm_86, "):
        cuda_target()


def _allowed(features: object) -> None:
    """The system has nothing against it."""


def test_features_that_kernels_shall_not_be_made_for(monkeypatch: pytest.MonkeyPatch) -> None:
    features = frozenset({"avx512vnni", "amx-int8", "amx-tile", *host_features()})
    monkeypatch.setattr(host, "host_features", lambda: features)
    monkeypatch.setattr(host, "allow_matrix_unit", _allowed)
    if cpu_target().vector_bits != 512:
        pytest.skip("this machine has narrower vectors, which these features do not go with")
    assert cpu_target().special == {"avx512vnni", "amx-int8", "amx-tile"}
    monkeypatch.setenv("MLIRT_WITHOUT", "amx-int8")
    assert cpu_target().special == {"avx512vnni"}
    monkeypatch.setenv("MLIRT_WITHOUT", "avx512vnni,amx-int8")
    assert not cpu_target().special


def test_a_matrix_unit_that_the_system_does_not_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(features: object) -> None:
        raise PlanError("not allowed")

    monkeypatch.setattr(host, "allow_matrix_unit", refused)
    assert not any(name.startswith("amx") for name in cpu_target().special)


def test_kernels_for_an_older_gpu_run_on_all() -> None:
    found = {arch: _own_architectures(arch) for arch in ("sm_80", "sm_90a")}
    assert found == {"sm_80": set(), "sm_90a": {"sm_90a"}}


def _own_architectures(arch: str) -> set[str]:
    """The architectures that kernels of a network are bound to."""
    context = RtContext()
    module: ModuleOp = import_model(network(), context, {}, None)
    run_phases(module, context, options=PipelineOptions("cuda", "fp16", TargetMachine(arch=arch)))
    kernels = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    return {str(op.attributes["architecture"]).strip('"') for op in kernels if "architecture" in op.attributes}


def test_a_width_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRT_VECTOR_BITS", "wide")
    with pytest.raises(InvalidInputError, match="MLIRT_VECTOR_BITS is 'wide'; expected one of 512, 256, 128"):
        cpu_target()
