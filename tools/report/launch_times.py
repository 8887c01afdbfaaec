"""How long each launch takes: the median of several runs and the quartiles around it, all in milliseconds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from mlirt.errors import InvalidInputError
from mlirt.tools.report.text_files import read_text


@dataclass(frozen=True)
class LaunchTime:
    """Milliseconds of one launch; the quartiles are those of its runs, and the median where nobody knows them."""

    median: float
    lower: float
    upper: float

    @property
    def spread(self) -> float:
        """The distance of the quartiles as a share of the median: how far the median can be relied upon."""
        return (self.upper - self.lower) / self.median if self.median else 0.0


def times_in(records: Sequence[Mapping[str, object]]) -> list[LaunchTime]:
    """The times in the records of `layer_report.profile_json`; files of other programs may have averages alone."""
    return [_time(one) for one in records if "count" not in one]


def read_times(path: Path, launches: int) -> list[LaunchTime]:
    """The times in a file of rt-exec --exportProfile; raises `InvalidInputError` where it is of another plan."""
    text = read_text(path)
    try:
        times = times_in(cast("list[Mapping[str, object]]", json.loads(text)))
    except (ValueError, LookupError, TypeError) as error:
        raise InvalidInputError(f"{path}: expected what rt-exec --exportProfile writes") from error
    if len(times) != launches:
        raise InvalidInputError(f"{path}: has the times of {len(times)} launches, the plan has {launches}")
    return times


def total(times: Sequence[LaunchTime]) -> float:
    """The sum of the medians."""
    return sum(one.median for one in times)


def _time(record: Mapping[str, object]) -> LaunchTime:
    median = float(str(record["medianMs"] if "medianMs" in record else record["averageMs"]))
    lower, upper = (float(str(record.get(key, median))) for key in ("lowerQuartileMs", "upperQuartileMs"))
    return LaunchTime(median, lower, upper)
