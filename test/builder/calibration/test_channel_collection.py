"""Channels of what products read, over batches; and who computes the tensors of a batch."""

from __future__ import annotations

import numpy as np
import pytest
from two_convolutions import network, samples

import mlirt
from mlirt.builder.calibration import collection
from mlirt.builder.calibration.channel_collection import ChannelCollection


def test_batches_of_different_sizes_add_up() -> None:
    rng = np.random.default_rng(0)
    batches = [rng.standard_normal((count, 3, 5, 2)).astype(np.float32) for count in (1, 4, 0, 2)]
    found = ChannelCollection({"x": 1})
    for batch in batches:
        found.add("x", batch)
    one, whole = found.statistics()["x"], np.concatenate(batches)
    np.testing.assert_array_equal(one.least, whole.min((0, 2, 3)))
    np.testing.assert_array_equal(one.greatest, whole.max((0, 2, 3)))
    np.testing.assert_allclose(one.means, whole.mean((0, 2, 3), np.float64), rtol=1e-6)


def test_infinities_have_no_statistics() -> None:
    found = ChannelCollection({"x": 1})
    found.add("x", np.array([[1, np.inf]], np.float32))
    assert found.statistics() == {}


@pytest.mark.parametrize(("interpreted", "engines"), [(1 << 26, 0), (12000, 0), (11000, 1)])
def test_a_few_batches_need_no_engine_and_more_need_one(
    monkeypatch: pytest.MonkeyPatch, interpreted: int, engines: int
) -> None:
    """A batch has 5,888 elements. Histograms and channels are the same, whoever computes the tensors."""
    monkeypatch.setattr(collection, "INTERPRETED", 0)
    want = mlirt.calibrate(network(), samples(8), "minmax", batch_size=4, target="cpu", measure=False)
    built: list[str] = []
    build = collection.build

    def noted(*arguments: object) -> object:
        built.append("engine")
        return build(*arguments)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(collection, "build", noted)
    monkeypatch.setattr(collection, "INTERPRETED", interpreted)
    found = mlirt.calibrate(network(), samples(8), "minmax", batch_size=4, target="cpu", measure=False)
    assert len(built) == engines
    assert found.scales == pytest.approx(want.scales, rel=1e-5)
    assert list(found.channels) == list(want.channels) != []
    for name, one in want.channels.items():
        for part in ("least", "greatest", "means"):
            np.testing.assert_allclose(getattr(found.channels[name], part), getattr(one, part), rtol=1e-4, atol=1e-5)
