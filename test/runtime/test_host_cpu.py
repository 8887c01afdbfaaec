"""Code for the processor's matrix unit asks the system first, and only where the plan needs it."""

from __future__ import annotations

import sys

import pytest

from mlirt.errors import PlanError
from mlirt.runtime.host_cpu import allow_matrix_unit, host_features


def test_a_system_without_it_refuses_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    allow_matrix_unit(["avx512f", "avx512vnni"])
    with pytest.raises(PlanError, match="matrix unit"):
        allow_matrix_unit(["avx512f", "amx-int8"])


@pytest.mark.skipif("amx-int8" not in host_features(), reason="this processor has no matrix unit")
def test_a_system_with_it_allows_it_again_and_again() -> None:
    allow_matrix_unit(["amx-int8"])
    allow_matrix_unit(["+amx-int8"])
