"""C libraries for Arm under Linux, made here: a sample of what `bench/arm_libraries.py` does.

The compiler and the emulators are got by that script and by `bench/emulated.py`; where they are not, this is skipped.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from arm_libraries import FOLDER, differing, made, why_not_made
from c_library import cases
from emulated import FOLDER as EMULATORS
from emulated import EmulatedMachine, emulated_command, why_not

from mlirt.runtime.arm_features import features_of_words
from mlirt.runtime.c_library.features import ARM_FEATURES
from mlirt.systems import LINUX


@pytest.mark.parametrize("cpu", ["neoverse-v1", "cortex-a76"])
def test_a_loop_has_the_bits_of_the_plan(cpu: str, tmp_path: Path) -> None:
    tools = Path(os.environ.get("MLIRT_ARM_TOOLS", FOLDER))
    emulators = Path(os.environ.get("MLIRT_EMULATORS", EMULATORS))
    if reason := why_not_made(tools) or why_not(emulators, cpu):
        pytest.skip(reason)
    (case,) = (one for one in cases(is_small=True) if one.name == "lstm")
    engine = made(case, cpu, tools, tmp_path)
    machine, start = EmulatedMachine(emulators, cpu), emulated_command(emulators, cpu)[:-1]
    assert [differing(engine, feeds, machine, start, tmp_path) for feeds in case.runs] == [""] * len(case.runs)
    machine.close()


def test_c_reads_the_bits_that_python_reads() -> None:
    """A feature has the word and the bit by which Python finds it; the width of SVE is a number of its own."""
    rows = dict(ARM_FEATURES[LINUX])
    assert rows.pop("sve256")[2] == 256
    for name, (word, _, _, bit, _) in rows.items():
        assert name in features_of_words({16: 0, 26: 0} | {word: 1 << bit})
