"""Sizes at the top of a module's file are reduced, others are not."""

from __future__ import annotations

from pathlib import Path

import pytest
from fusion_modules import MAX_OF_LETTER, MAX_SIZE, limit, load

TEXT = """
import torch


class Model(torch.nn.Module):
    def __init__(self, width, stride):
        super().__init__()
        size = 5000
        self.size, self.width, self.stride = size, width, stride

    def forward(self, x):
        return x


batch_size, height = 128, 512
in_features = 4 * 1024
stride = 2
scale = 3.5

def get_inputs():
    return [torch.zeros(batch_size, height)]

def get_init_inputs():
    return [in_features, stride]
"""


def test_limits_follow_names() -> None:
    assert (limit("batch_size"), limit("Height"), limit("out_channels")) == (2, 64, MAX_SIZE)
    assert (limit("k"), limit("N")) == (MAX_OF_LETTER, MAX_SIZE), "four axes of one letter each are a large tensor"


def test_module_of_a_file(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")
    (tmp_path / "module.py").write_text(TEXT, encoding="utf-8")
    case = load(tmp_path / "module.py")
    assert (case.name, case.module.size, case.module.width, case.module.stride) == ("module", 5000, MAX_SIZE, 2)
    assert tuple(case.inputs[0].shape) == (2, 64)
    assert not case.module.training
    assert tuple(load(tmp_path / "module.py", reduced=False).inputs[0].shape) == (128, 512)
