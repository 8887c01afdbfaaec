"""Operators that order elements: topk, sort."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlirt.dialects.symbolic import Dim
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.torch.call import Call
from mlirt.frontend.torch.handlers import aten_op


@aten_op("topk.default")
def top_k(net: Network, call: Call) -> Sequence[Value]:
    count: Dim = call.arguments["k"]
    return _ranked(net, call, "max" if call.flag("largest") else "min", count)


@aten_op("sort.default", "sort.stable")
def sort(net: Network, call: Call) -> Sequence[Value]:
    x = call.value("self")
    length = x.dims[call.axis("dim", x.rank)] if x.rank else 1
    return _ranked(net, call, "max" if call.flag("descending") else "min", length)


@aten_op("argsort.default", "argsort.stable")
def argsort(net: Network, call: Call) -> Value:
    return sort(net, call)[1]


def _ranked(net: Network, call: Call, kind: str, count: Dim) -> Sequence[Value]:
    x = call.value("self")
    if x.rank == 0:
        return [x, net.constant(np.array(0, np.int64))]
    many = {"k": count} if isinstance(count, int) else {"size": [count]}
    numbers = layers.cast(net, x, "int8") if x.element_name == "bool" else x
    values, indices = net.emit_many(
        "topk", [numbers], 2, kind=kind, axis=call.axis("dim", x.rank), sorted=True, **many
    )
    return [layers.cast(net, values, x.element), layers.cast(net, indices, "int64")]
