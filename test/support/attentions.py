"""Texts of networks with one attention op, of many kinds, for tests of its lowerings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from contractions import DTYPES, tensor

Array = np.ndarray[Any, np.dtype[Any]]

_EPILOGUES = {
    "": "",
    "f32": """ {
          ^bb0(%r: f32):
            %f = arith.constant 3.0 : f32
            %t = arith.mulf %r, %f : f32
            fused.yield %t : f32
          }""",
    "i8": """ {
          ^bb0(%r: f32):
            %f = arith.constant 20.0 : f32
            %t = arith.mulf %r, %f : f32
            %n = math.roundeven %t : f32
            %i = arith.fptosi %n : f32 to i8
            fused.yield %i : i8
          }""",
}
_MASKS = {
    "none": "",
    "add": "%wide = arith.{widen} %e : {m} to f32\n%sum = arith.addf %scaled, %wide : f32",
    "select": "%never = arith.constant 0xFF800000 : f32\n%sum = arith.select %e, %scaled, %never : f32",
    "index": "%j = fused.index {{dim = {key} : i64}} : index\n%n = arith.index_cast %j : index to i32\n"
    "%bias = arith.sitofp %n : i32 to f32\n%sum = arith.addf %scaled, %bias : f32",
}


@dataclass(frozen=True)
class Attention:
    """`heads` heads of `depth` (and `columns`) elements for `batch` sequences of queries and keys.

    With `packed` queries, keys and values are parts of one tensor `[batch, length, 3 * heads * depth]`, and the result
    is `[batch, length, heads, depth]`; else all are `[batch, heads, length, depth]`. The mask, per key or with
    `full_mask` per query and key, is added, selects, or is a number made of the key's position. Results are scaled for
    the `ending` "f32", and rounded for "i8".
    """

    batch: int
    heads: int
    queries: int
    keys: int
    depth: int
    columns: int
    element: str = "f16"
    packed: bool = False
    mask: str = "none"
    full_mask: bool = False
    last_key: int | None = None
    zero_masked: bool = False
    scale: float = 0.25
    dynamic: bool = False
    ending: str = ""

    @property
    def mask_shape(self) -> tuple[int, ...]:
        return (self.batch, 1, self.queries if self.full_mask else 1, self.keys)

    @property
    def output(self) -> tuple[int, ...]:
        if self.packed:
            return (self.batch, self.queries, self.heads, self.columns)
        return (self.batch, self.heads, self.queries, self.columns)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The floating-point inputs."""
        if self.packed:
            return {"q": (self.batch, self.queries, 3 * self.heads * self.depth)}
        lead = (self.batch, self.heads)
        return {
            "q": (*lead, self.queries, self.depth),
            "k": (*lead, self.keys, self.depth),
            "v": (*lead, self.keys, self.columns),
        }

    def inputs(self, seed: int = 0) -> dict[str, Array]:
        rng = np.random.default_rng(seed)
        dtype = DTYPES[self.element]
        made: dict[str, Array] = {name: rng.standard_normal(s).astype(dtype) for name, s in self.shapes().items()}
        if self.mask == "add":
            made["m"] = np.where(rng.random(self.mask_shape) < 0.3, -1e4, rng.standard_normal(self.mask_shape)).astype(
                dtype
            )
        if self.mask == "select":
            made["m"] = rng.random(self.mask_shape) < 0.6
        return made

    def text(self) -> str:
        """The network as IR."""
        has_mask = self.mask in ("add", "select")
        mask_element = "i1" if self.mask == "select" else self.element
        types = {name: self._tensor(shape) for name, shape in self.shapes().items()}
        operands = [types.get(name, types["q"]) for name in "qkv"]
        names = [name if name in types else "q" for name in "qkv"]
        if has_mask:
            types["m"] = self._tensor(self.mask_shape, mask_element)
            operands.append(types["m"])
            names.append("m")
        result = self._tensor(self.output, self.ending)
        arguments = ", ".join(f'%{name}: {type_} {{trt.name = "{name}"}}' for name, type_ in types.items())
        widen = "extf" if self.element != "f32" else "bitcast"
        body = _MASKS[self.mask].format(widen=widen, m=mask_element, key=3)
        return f"""
        func.func @main({arguments}) -> ({result} {{trt.name = "y"}}) {{
          %y = fused.attention {", ".join("%" + name for name in names)} {{{self._properties(has_mask)}}}
              : ({", ".join(operands)}) -> {result} {{
          ^bb0(%s: f32{f", %e: {mask_element}" if has_mask else ""}):
            %c = arith.constant {self.scale:e} : f32
            %scaled = arith.mulf %s, %c : f32
            {body}
            fused.yield {"%sum" if body else "%scaled"} : f32
          }}{_EPILOGUES[self.ending]}
          func.return %y : {result}
        }}"""

    def _properties(self, has_mask: bool) -> str:
        accesses = _packed_accesses(self) if self.packed else [("d0", "d1", "d2", "d4"), ("d0", "d1", "d3", "d4")]
        accesses = accesses if self.packed else [*accesses, ("d0", "d1", "d3", "d5")]
        if has_mask:
            accesses.append(("d0", "0", "d2" if self.full_mask else "0", "d3"))
        keys = '"n"' if self.dynamic else f'"{self.keys}"'
        texts = [f"access = [{', '.join(_access(one) for one in accesses)}]"]
        texts.append(f'reduced = #trt.dims<[{keys}, "{self.depth}"]>')
        if self.packed:
            texts.append("order = array<i64: 0, 2, 1, 3>")
        if self.last_key is not None:
            texts.append(f"last_key = {_access([f'd2 + {self.last_key}'])}")
        if self.zero_masked:
            texts.append("zero_masked = true")
        return ", ".join(texts)

    def _tensor(self, shape: tuple[int, ...], element: str = "") -> str:
        """With `dynamic` lengths are symbols: `m` queries and `n` keys (both `n` where packed)."""
        if not self.dynamic:
            return tensor(shape, element or self.element)
        symbols = {self.keys: "n", self.queries: "n" if self.packed else "m"}
        names = [symbols.get(size, str(size)) for size in shape]
        sizes = "".join("?x" if name in "mn" else f"{name}x" for name in names)
        texts = ", ".join(f'"{name}"' for name in names)
        return f"tensor<{sizes}{element or self.element}, #trt.dims<[{texts}]>>"


def _packed_accesses(case: Attention) -> list[tuple[str, ...]]:
    width, heads = case.heads * case.depth, f"{case.depth}*d1"
    return [
        ("d0", "d2", f"{heads} + d4"),
        ("d0", "d3", f"{width} + {heads} + d4"),
        ("d0", "d3", f"{2 * width} + {heads} + d5"),
    ]


def _access(indices: tuple[str, ...] | list[str]) -> str:
    return f"#fused.access<[{', '.join(f'{chr(34)}{index}{chr(34)}' for index in indices)}]>"


SMALL = {
    "one tile": Attention(1, 2, 16, 16, 16, 16),
    "tails": Attention(2, 1, 40, 70, 64, 64),
    "several blocks": Attention(1, 2, 130, 64, 32, 48),
    "odd heads": Attention(1, 3, 17, 65, 40, 24),
    "one query": Attention(2, 2, 1, 33, 8, 8),
    "wide heads": Attention(1, 1, 70, 70, 128, 128),
    "bfloat16": Attention(1, 1, 33, 40, 32, 32, "bf16"),
    "causal": Attention(1, 1, 150, 150, 16, 16, last_key=0),
    "causal with a past": Attention(1, 2, 20, 90, 16, 16, last_key=70),
    "no key for some": Attention(1, 1, 70, 90, 16, 16, last_key=-5, zero_masked=True),
    "not a number for some": Attention(1, 1, 20, 40, 16, 16, last_key=-5),
    "packed": Attention(2, 3, 45, 45, 16, 16, packed=True),
    "mask per key": Attention(2, 3, 45, 45, 16, 16, packed=True, mask="add"),
    "mask per query": Attention(2, 2, 45, 70, 16, 16, mask="add", full_mask=True),
    "mask selects": Attention(2, 2, 45, 70, 16, 16, mask="select", zero_masked=True),
    "position": Attention(1, 2, 33, 66, 16, 16, mask="index"),
    "dynamic": Attention(2, 2, 35, 70, 16, 16, dynamic=True, mask="add"),
    "an epilogue": Attention(2, 3, 45, 45, 16, 16, packed=True, mask="add", ending="f32"),
    "an epilogue for heads apart": Attention(1, 2, 130, 64, 32, 48, zero_masked=True, ending="f32"),
    "dynamic and packed": Attention(2, 4, 70, 70, 16, 16, dynamic=True, packed=True, last_key=0),
}
