// RUN: rt-opt %s | rt-opt | filecheck %s
// RUN: rt-opt %s --print-op-generic | rt-opt | filecheck %s

// CHECK:      kernel.func @rows
// CHECK:        %m = kernel.reduce_rows max %s {rows = 1 : i64} : vector<16xf32> -> vector<2xf32>
// CHECK-NEXT:   %l = kernel.limit_columns %s, %i, %n {rows = 1 : i64} : vector<16xf32>, vector<2xindex> -> vector<16xf32>
// CHECK-NEXT:   %p = kernel.exponential_rows %l, %m, %c {rows = 1 : i64} : vector<16xf32>, vector<2xf32> -> vector<16xf32>
// CHECK-NEXT:   %b = kernel.scale_rows %p, %m {rows = 1 : i64} : vector<16xf32>, vector<2xf32> -> vector<16xf32>
// CHECK-NEXT:   %a = kernel.pack_accumulators bf16 %b {rows = 1 : i64, step = 1 : i64} : vector<16xf32> -> vector<4xi32>
kernel.func @rows(%c: f32, %i: index) {
  %s = kernel.fill_fragment %c : f32 -> vector<16xf32>
  %n = kernel.fragment %i, %i : index, index -> vector<2xindex>
  %m = kernel.reduce_rows max %s {rows = 1 : i64} : vector<16xf32> -> vector<2xf32>
  %l = kernel.limit_columns %s, %i, %n {rows = 1 : i64} : vector<16xf32>, vector<2xindex> -> vector<16xf32>
  %p = kernel.exponential_rows %l, %m, %c {rows = 1 : i64} : vector<16xf32>, vector<2xf32> -> vector<16xf32>
  %b = kernel.scale_rows %p, %m {rows = 1 : i64} : vector<16xf32>, vector<2xf32> -> vector<16xf32>
  %a = kernel.pack_accumulators bf16 %b {rows = 1 : i64, step = 1 : i64} : vector<16xf32> -> vector<4xi32>
  kernel.return
}
