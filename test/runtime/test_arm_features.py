"""What Linux tells of an Arm processor: words of the auxiliary vector, as QEMU has them for three processors."""

from __future__ import annotations

import pytest

from mlirt.runtime.arm_features import features_of_words


@pytest.mark.parametrize(
    ("words", "having", "lacking"),
    [
        ((0x8FB, 0), {"neon"}, {"lse", "dotprod", "fullfp16", "i8mm"}),  # Cortex-A57
        ((0x119FFB, 0), {"neon", "lse", "dotprod", "fullfp16", "rdm"}, {"i8mm", "sve", "bf16"}),  # Neoverse N1
        ((0xECFFFFFB, 0x7F877FFF), {"neon", "lse", "dotprod", "i8mm", "sve", "sve2", "bf16"}, set[str]()),  # max
    ],
)
def test_bits_are_features(words: tuple[int, int], having: set[str], lacking: set[str]) -> None:
    found = features_of_words({16: words[0], 26: words[1]})
    assert found >= having
    assert not found & lacking


@pytest.mark.parametrize(("bits", "name"), [(128, "sve128"), (256, "sve256"), (512, "sve512")])
def test_the_width_of_sve_is_a_feature_of_its_own(bits: int, name: str) -> None:
    words = {16: 0xECFFFFFB, 26: 0x7F877FFF}
    assert {one for one in features_of_words(words, bits) if one[-1].isdigit() and one.startswith("sve")} == {
        "sve2",
        name,
    }
    assert name not in features_of_words({16: 0x119FFB, 26: 0}, bits)
