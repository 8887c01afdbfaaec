"""What the fusion benchmark makes of plans and times."""

from __future__ import annotations

from pathlib import Path

import pytest
from fusion_figures import left_out, moved_and_least, picture, ratio, summary

import mlirt

_TWO_LAUNCHES = """
func.func @main(%x: tensor<4x8xf32> {trt.name = "x"}) -> (tensor<4x8xf32> {trt.name = "y"}) {
  %a = trt.softmax %x {axis = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = trt.softmax %a {axis = 0 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}
"""


def test_what_lies_between_launches_is_moved_twice(tmp_path: Path) -> None:
    path = tmp_path / "network.mlir"
    path.write_text(_TWO_LAUNCHES, encoding="utf-8")
    engine = mlirt.compile(path, target="cpu", heuristic=True)
    manifest = getattr(engine, "plan").manifest
    tensor = 4 * 8 * 4
    assert len(manifest.launches) == 2
    assert moved_and_least(manifest) == (4 * tensor, 2 * tensor)


def test_the_fastest_peer_counts() -> None:
    assert ratio({"ours": 2.0, "eager": 3.0, "compiled": 1.0}) == 0.5


@pytest.mark.parametrize("found", [None, object()])
def test_a_peer_that_is_not_installed_is_named(found: object, monkeypatch: pytest.MonkeyPatch) -> None:
    def find_spec(name: str) -> object:
        return found

    monkeypatch.setattr("importlib.util.find_spec", find_spec)
    lines = left_out()
    assert len(lines) == (found is None)
    assert all("onnxruntime is not installed" in line for line in lines)


def test_summary_names_the_slowest_first() -> None:
    lines = summary({"cpu": [1, 2, 6], "cuda": []}, {"quick": 4.0, "slow": 0.25})
    assert lines[0] == "cpu: launches 3.00 in the mean, median 2, most 6"
    assert lines[1].startswith("fastest peer over ours: 1.00")
    assert [line.split()[-1] for line in lines[2:]] == ["slow", "quick"]


def test_picture_has_a_bar_for_each_module() -> None:
    text = picture({"a<b": 0.5, "c": 2.0})
    assert text.count("<rect x=") == 2
    assert "a&lt;b" in text
