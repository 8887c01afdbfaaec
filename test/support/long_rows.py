"""Texts of networks with one normalisation of long rows, for tests of its lowerings."""

from __future__ import annotations


def long_rows_text(rows: tuple[int, ...], length: int, element: str) -> str:
    """`(x - mean) / sqrt(variance + eps) * w + x's largest number`, with a weight for each of the last rows."""
    sizes = "x".join(map(str, (*rows, length)))
    x, w = f"tensor<{sizes}x{element}>", f"tensor<{rows[-1]}xf32>"
    last, indices = len(rows) - 1, ", ".join(f'"d{axis}"' for axis in range(len(rows) + 1))
    wide = "arith.extf {} : f16 to f32" if element == "f16" else "arith.addf {}, %zero : f32"
    narrow = "arith.truncf %out : f32 to f16" if element == "f16" else "arith.addf %out, %zero : f32"
    zero = "%zero = arith.constant 0.0 : f32"
    return f"""
    func.func @main(%x: {x} {{trt.name = "x"}}, %w: {w} {{trt.name = "w"}}) -> ({x} {{trt.name = "y"}}) {{
      %y = fused.normalization %x, %w {{axes = array<i64: {len(rows)}>,
          access = [#fused.access<[{indices}]>, #fused.access<["d{last}"]>],
          kinds = [#fused<reduction_kind add>, #fused<reduction_kind add>, #fused<reduction_kind max>]}}
          : ({x}, {w}) -> {x} {{
      ^bb0(%a: {element}, %weight: f32, %mean: f32, %factor: f32, %most: f32):
        {zero}
        %f = {wide.format("%a")}
        %s = arith.subf %f, %mean : f32
        %n = arith.mulf %s, %factor : f32
        %m = arith.mulf %n, %weight : f32
        %out = arith.addf %m, %most : f32
        %o = {narrow}
        fused.yield %o : {element}
      }} {{
      ^bb0(%a: {element}, %weight: f32):
        {zero}
        %f = {wide.format("%a")}
        fused.yield %f : f32
      }} {{
      ^bb0(%t: f32, %a: {element}, %weight: f32):
        %c = arith.constant {float(length)} : f32
        %d = arith.divf %t, %c : f32
        fused.yield %d : f32
      }} {{
      ^bb0(%a: {element}, %weight: f32, %mean: f32):
        {zero}
        %f = {wide.format("%a")}
        %s = arith.subf %f, %mean : f32
        %q = arith.mulf %s, %s : f32
        fused.yield %q : f32
      }} {{
      ^bb0(%t: f32, %a: {element}, %weight: f32, %mean: f32):
        %c = arith.constant {float(length)} : f32
        %d = arith.divf %t, %c : f32
        %r = math.rsqrt %d : f32
        fused.yield %r : f32
      }} {{
      ^bb0(%a: {element}, %weight: f32, %mean: f32, %factor: f32):
        {zero}
        %f = {wide.format("%a")}
        fused.yield %f : f32
      }} {{
      ^bb0(%t: f32, %a: {element}, %weight: f32, %mean: f32, %factor: f32):
        fused.yield %t : f32
      }}
      func.return %y : {x}
    }}"""
