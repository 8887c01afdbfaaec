"""The network that was read as a function of a module, with the names of its inputs and outputs."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Region

from mlirt.frontend.importing.network import Network, Value


def end_network(net: Network, outputs: Sequence[Value]) -> None:
    """Append the return of the outputs."""
    net.append(ReturnOp(*(net.ssa(value) for value in outputs)))


def main_module(net: Network, outputs: Sequence[tuple[str, Value]], squeezed: Collection[int] = ()) -> ModuleOp:
    """`func.func @main` of an ended network; `squeezed` are the places of outputs without dimensions of length 1."""
    function = FuncOp(
        "main",
        ([arg.type for arg in net.block.args], [net.ssa(value).type for _, value in outputs]),
        Region(net.block),
        arg_attrs=ArrayAttr(DictionaryAttr({"trt.name": StringAttr(name)}) for name in net.input_names),
        res_attrs=_result_attributes([name for name, _ in outputs], squeezed),
    )
    return ModuleOp([function])


def _result_attributes(names: Sequence[str], squeezed: Collection[int]) -> ArrayAttr[DictionaryAttr]:
    squeeze: dict[str, Attribute] = {"trt.squeezed": UnitAttr()}
    return ArrayAttr(
        DictionaryAttr({"trt.name": StringAttr(name)} | (squeeze if k in squeezed else {}))
        for k, name in enumerate(names)
    )
