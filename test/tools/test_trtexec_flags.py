"""Flags of trtexec whose meaning here is another flag's, or nothing."""

from __future__ import annotations

import pytest

from mlirt.errors import InvalidInputError
from mlirt.tools import rt_exec
from mlirt.tools.trtexec_flags import take_trtexec_flags


@pytest.mark.parametrize(("level", "kept"), [("none", []), ("ampere+", ["--gpu=sm_80+ptx"])])
def test_levels_of_hardware_compatibility(level: str, kept: list[str]) -> None:
    assert take_trtexec_flags([f"--hardwareCompatibilityLevel={level}"]) == (kept, [])


def test_other_levels_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InvalidInputError, match=r"hardwareCompatibilityLevel=hopper\+: expected none or ampere\+"):
        take_trtexec_flags(["--hardwareCompatibilityLevel=hopper+"])
    assert rt_exec.main(["--onnx=a.onnx", "--hardwareCompatibilityLevel=hopper+"]) == 1
    assert "expected none or ampere+" in "".join(capsys.readouterr())


@pytest.mark.parametrize("flag", ["--versionCompatible", "--excludeLeanRuntime"])
def test_plans_are_compatible_as_they_are(flag: str) -> None:
    kept, lines = take_trtexec_flags(["--onnx=a", flag])
    assert kept == ["--onnx=a"]
    assert flag + " has no effect: a plan" in lines[0]
