"""Batch inference with Ray Data: a callable class for `Dataset.map_batches`, which needs nothing of Ray itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mlirt.errors import InvalidInputError
from mlirt.runtime.data_types import numpy_dtype
from mlirt.runtime.engine import load

Array = np.ndarray[Any, np.dtype[Any]]


class Predictor:
    """Adds the outputs of a plan to batches of rows.

        rows = ray.data.read_parquet("images.parquet")
        rows.map_batches(Predictor, fn_constructor_args=("net.plan",), batch_size=64, concurrency=2)

    columns: the column of each input, where it has not the input's name. keep: whether the batch's own columns stay.
    Raises `InvalidInputError` where a column is missing or its rows have different shapes.
    """

    def __init__(
        self, plan: str, columns: Mapping[str, str] | None = None, *, keep: bool = True, threads: int | None = 1
    ) -> None:
        self._engine = load(plan, threads=threads)
        self._columns = {tensor.name: tensor.name for tensor in self._engine.inputs} | dict(columns or {})
        self._dtypes = {tensor.name: numpy_dtype(tensor.dtype) for tensor in self._engine.inputs}
        self._keep = keep

    def __call__(self, batch: Mapping[str, Array]) -> dict[str, Array]:
        """Columns by name, all of one length."""
        feeds = {name: self._array(name, batch) for name in self._dtypes}
        return {**(batch if self._keep else {}), **self._engine.run(feeds)}

    def _array(self, name: str, batch: Mapping[str, Array]) -> Array:
        column = self._columns[name]
        if column not in batch:
            raise InvalidInputError(f"there is no column {column!r} for input {name!r}; found {', '.join(batch)}")
        array = np.asarray(batch[column])
        if array.dtype == object:  # rows of lists, as Parquet has them
            shapes = {np.shape(row) for row in array}
            if len(shapes) != 1:
                raise InvalidInputError(f"rows of column {column!r} have the shapes {sorted(shapes)}; expected one")
            array = np.stack([np.asarray(row) for row in array])
        return np.ascontiguousarray(array, self._dtypes[name])
