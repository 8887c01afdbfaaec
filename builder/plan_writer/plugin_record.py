"""How the manifest of a plan says that a plugin computes a launch: which one, and what its tensors are like."""

from __future__ import annotations

from mlirt.builder.plan_writer.record import Record, record
from mlirt.dialects.kernel.plugin import PluginOp
from mlirt.dialects.tensor_types import element_name
from mlirt.runtime.manifest import Kernel
from mlirt.runtime.plugin_calls import PluginCall


def plugin_record(op: PluginOp) -> Record:
    """The record among the kernels; runtime/plugin_calls.py says what it means."""
    ranks = op.rank_list()
    call = record(
        PluginCall,
        version=op.version.data,
        namespace=op.plugin_namespace.data,
        state=None if op.state is None else op.state.key.data,
        inputs=op.inputs.value.data,
        elements=[element_name(element) for element in op.elements],
        ranks=list(ranks),
    )
    return record(
        Kernel,
        name=op.sym_name.data,
        symbol=op.plugin.data,
        objects={},
        args=["ptr"] * len(ranks) + ["i64"] * sum(ranks),
        written=op.written,
        plugin=call,
    )
