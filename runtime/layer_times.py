"""A profile: the time of each launch of a run, as a list of pairs, as records for tables, and as a page's table."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mlirt.runtime.notebook_html import bar, table


class LayerTime(NamedTuple):
    """What one launch took; a pair, so that `for layer, milliseconds in profile` reads it."""

    layer: str
    """The names of the network's layers that it computes, joined by ` + `."""
    milliseconds: float


class Profile(list[LayerTime]):
    """The launches of a run in their order, each with its time: the median of the runs.

    `pandas.DataFrame(profile)` and `polars.DataFrame(profile)` have the columns `layer` and `milliseconds`;
    `pandas.DataFrame(profile.records())` has all that is known.
    """

    def __init__(
        self, runs: Sequence[Sequence[tuple[str, float]]], layers: Sequence[Mapping[str, object]] = ()
    ) -> None:
        """`runs` are one profile each, of the same launches; `layers` are the engine's records of them."""
        self._times = [[time for _, time in launch] for launch in zip(*runs, strict=True)]
        names = [name for name, _ in runs[0]] if runs else []
        self._layers = layers
        medians = map(statistics.median, self._times)
        super().__init__(LayerTime(name, median) for name, median in zip(names, medians, strict=True))

    @property
    def milliseconds(self) -> float:
        """All launches together."""
        return sum(one.milliseconds for one in self)

    def records(self) -> list[dict[str, object]]:
        """A record for each launch: launch, layer, family, kernel, milliseconds, least, greatest, share.

        `launch` counts from 0, `share` is a part of 1, the times are milliseconds of the median, the quickest and the
        slowest run.
        """
        return list(self._records())

    def _records(self) -> Iterable[dict[str, object]]:
        whole = self.milliseconds
        for number, (one, times) in enumerate(zip(self, self._times, strict=True)):
            known: Mapping[str, object] = self._layers[number] if number < len(self._layers) else {}
            yield {
                "launch": number,
                "layer": one.layer,
                "family": str(known.get("family", "")),
                "kernel": str(known.get("kernel", "")),
                "milliseconds": one.milliseconds,
                "least": min(times),
                "greatest": max(times),
                "share": one.milliseconds / whole if whole else 0.0,
            }

    def _repr_html_(self) -> str:
        """A notebook's table: the launches with bars."""
        longest = max((one.milliseconds for one in self), default=0.0)
        rows = [
            (str(number), one.layer, f"{one.milliseconds:.4f}", bar(one.milliseconds / longest if longest else 0.0))
            for number, one in enumerate(self)
        ]
        return table(f"{self.milliseconds:.4f} ms in {len(self)} launches", ("#launch", "layer", "#ms", ""), rows)
