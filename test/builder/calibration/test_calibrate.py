"""`mlirt.calibrate`: the same scales as NumPy finds, from any form of data; what is wrong with data is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx_models import model_of
from two_convolutions import TENSORS, network, samples

import mlirt
from mlirt.builder.calibration.collection import grouped
from mlirt.builder.calibration.histogram import Array, Histogram
from mlirt.builder.calibration.thresholds import entropy
from mlirt.errors import InvalidInputError


def calibrated(data: Any, method: str = "minmax", **options: Any) -> mlirt.Calibration:
    return mlirt.calibrate(network(), data, method, target="cpu", **options)


def tensors(batch: Array) -> dict[str, Array]:
    """Input and output in float32, on the reference target."""
    return {"x": batch, **mlirt.compile(network(), "reference").run({"x": batch})}


def test_min_max_is_the_largest_magnitude() -> None:
    """tensorrt-features.md#9.14, 9.25: names are those of the network's tensors, before fusion."""
    found = calibrated(samples())
    assert list(found.scales) == TENSORS
    for name, array in tensors(samples()).items():
        assert found.scales[name] == pytest.approx(np.abs(array).max() / 127, rel=1e-5)


def test_entropy_is_that_of_a_histogram_over_the_batches() -> None:
    """tensorrt-features.md#9.12, 9.13."""
    found = calibrated(samples(8), "entropy", batch_size=2)
    histogram = Histogram()
    for start in range(0, 8, 2):
        histogram.add(samples(8)[start : start + 2])
    assert found.scales["x"] == np.float32(entropy(histogram) / 127)


def test_the_same_batches_give_the_same_bits_and_another_order_nearly_the_same() -> None:
    """tensorrt-features.md#9.16, 9.17."""
    first, again = (calibrated(samples(), "entropy", batch_size=2) for _ in range(2))
    assert first.to_bytes() == again.to_bytes()
    other = calibrated(samples()[::-1], "entropy", batch_size=2)
    assert list(other.scales.values()) == pytest.approx(list(first.scales.values()), rel=0.3)


def test_after_fusion_only_what_is_left_is_counted() -> None:
    """tensorrt-features.md#9.7: the older calibrators count after fusion, where the convolution holds its rectifier."""
    assert list(calibrated(samples(), before_fusion=False).scales) == ["x", "relu_1", "y"]
    assert list(calibrated(samples(), "legacy").scales) == ["x", "relu_1", "y"]
    assert list(calibrated(samples(), "legacy", before_fusion=True).scales) == TENSORS


def test_every_form_of_data_gives_the_same(tmp_path: Path) -> None:
    data = samples()
    np.save(tmp_path / "all.npy", data)
    np.savez(tmp_path / "all.npz", x=data)
    batches = tmp_path / "batches"
    batches.mkdir()
    for start in range(0, 8, 4):
        np.save(batches / f"{start}.npy", data[start : start + 4])
    forms: list[Any] = [
        {"x": data},
        [data[:4], data[4:]],
        ({"x": one} for one in data),  # samples without the first axis
        tmp_path / "all.npy",
        str(tmp_path / "all.npz"),
        batches,
    ]
    expected = calibrated(data).scales
    assert [calibrated(form).scales == expected for form in forms] == [True] * len(forms)


def test_pictures_are_resized_and_scaled(tmp_path: Path) -> None:
    from PIL import Image

    pixels = np.random.default_rng(0).integers(0, 256, (16, 16, 3), np.uint8)
    Image.fromarray(pixels).resize((8, 8), Image.Resampling.NEAREST).save(tmp_path / "a.png")
    Image.fromarray(pixels).save(tmp_path / "b.png")
    found = calibrated(tmp_path, mean=[0.5, 0.4, 0.3], std=0.25)
    exact = np.asarray(Image.open(tmp_path / "a.png"), np.float32) / 255
    other = np.asarray(Image.open(tmp_path / "b.png").resize((8, 8), Image.Resampling.BILINEAR), np.float32) / 255
    both = (np.stack([exact, other]) - np.array([0.5, 0.4, 0.3], np.float32)) / 0.25
    assert found.scales["x"] == pytest.approx(np.abs(both).max() / 127, rel=1e-5)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "Calibration failure: no batch of calibration data came, so that every distribution is all zero"),
        (samples(0), "no batch of calibration data came for input 'x': it has 0 samples"),
        (np.full((1, 3, 8, 8), np.nan, np.float32), "tensor 'x' holds NaN while"),
        (np.zeros((1, 3, 8, 9), np.float32), r"batch 0: input 'x' has shape \[1, 3, 8, 9\], expected \['n', 3, 8, 8\]"),
        ({"z": samples()}, r"expected arrays for \['x'\], got \['z'\]"),
        ("nowhere", "calibration data 'nowhere': there is no such file or folder"),
    ],
)
def test_data_that_do_not_fit(data: Any, message: str) -> None:
    """tensorrt-features.md#9.6, 9.23."""
    with pytest.raises(InvalidInputError, match=message):
        calibrated(data)


def test_a_network_with_a_batch_of_its_own_takes_whole_batches() -> None:
    """tensorrt-features.md#9.6: the exact batch size."""
    fixed = network(4)
    found = mlirt.calibrate(fixed, samples(9), "minmax", target="cpu")
    assert found.scales["x"] == np.float32(np.abs(samples(9)[:8]).max() / 127)
    with pytest.raises(InvalidInputError, match="it has 3 samples, a batch of the network takes 4"):
        mlirt.calibrate(fixed, samples(3), target="cpu")


def test_tensors_of_zeros_are_named() -> None:
    """tensorrt-features.md#9.22, 31.6."""
    with pytest.warns(UserWarning, match="Tensor relu_1 is uniformly zero"):
        found = calibrated(np.zeros((1, 3, 8, 8), np.float32))
    assert found.scales["relu_1"] == 0.0


@pytest.mark.parametrize(
    ("arguments", "message"), [(("guess",), "method 'guess' is not known; expected one of entropy")]
)
def test_methods_that_do_not_exist(arguments: tuple[str], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        calibrated(samples(), *arguments)


def test_progress_tells_the_batches() -> None:
    seen: list[tuple[int, int]] = []

    def progress(text: str, done: int, total: int) -> None:
        if text == "calibrating":
            seen.append((done, total))

    calibrated(samples(6), batch_size=2, progress=progress)
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_large_networks_are_observed_in_parts() -> None:
    assert grouped("abcd", {"a": 4, "b": 5, "c": 20, "d": 1}, 10) == [["a", "b"], ["c"], ["d"]]


def test_parts_give_the_same_scales(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = calibrated(samples())
    monkeypatch.setattr("mlirt.builder.calibration.collection.MAX_BYTES", 4)
    assert calibrated(samples()).scales == whole.scales


def test_a_cache_is_saved_and_loaded(tmp_path: Path) -> None:
    """tensorrt-features.md#9.10."""
    found = calibrated(samples())
    found.save(tmp_path / "network.calib")
    again = mlirt.Calibration.load(tmp_path / "network.calib")
    assert (again.algorithm, again.scales) == ("MinMaxCalibration", found.scales)
    with pytest.raises(InvalidInputError, match="no histograms to report"):
        again.report(tmp_path / "page.html")


def test_a_report_has_a_picture_of_each_tensor_and_recommends(tmp_path: Path) -> None:
    calibrated(samples(), "entropy").report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("<svg") == len(TENSORS)
    assert all(f"<h3>{name}</h3>" in page for name in TENSORS)
    assert "Recommended: <b>" in page


def test_scores_behind_a_mask_of_infinities_stay_float() -> None:
    """Other tensors have their scales, and the masked keys no weight."""
    nodes = [
        helper.make_node("MatMul", ["q", "k"], ["scores"]),
        helper.make_node("Where", ["mask", "scores", "hidden"], ["masked"]),
        helper.make_node("Softmax", ["masked"], ["weights"], axis=-1),
    ]
    rng, shapes = np.random.default_rng(0), {"q": (8, 16), "k": (16, 8)}
    model = model_of(
        nodes,
        {"q": ("float32", [8, 16]), "k": ("float32", [16, 8]), "mask": ("bool", [8, 8])},
        ["weights"],
        {"hidden": np.array(-np.inf, np.float32)},
    )
    visible = np.tri(8, dtype=np.bool_)
    feeds: dict[str, Array] = {"mask": visible} | {n: rng.standard_normal(s, np.float32) for n, s in shapes.items()}
    found = mlirt.calibrate(model, [feeds], "minmax", target="cpu")
    assert sorted(found.scales) == ["k", "q", "scores", "weights"]
    got = mlirt.compile(model, "reference", "int8", calibration=found).run(feeds)["weights"]
    assert (got[np.logical_not(visible)] == 0).all()
    np.testing.assert_allclose(got, mlirt.compile(model, "reference").run(feeds)["weights"], atol=0.05)
