// RUN: rt-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{C1: kernel.library_convolution: the library 'cublas_lt' is none of cudnn}}
kernel.library_convolution @library_convolution_c1 {library = "cublas_lt", proposal = 0 : i64, workspace_bytes = 0 : i64, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, padding = array<i64: 1, 1>, function_type = (memref<?xf16>, memref<?xf16>, memref<?xf16>, memref<?xi8>, index, index, index, index, index, index, index, index, index) -> ()}

// -----

// expected-error@+1 {{C2: kernel.library_convolution takes 4 buffers, the fourth of i8, and 9 sizes}}
kernel.library_convolution @library_convolution_c2 {library = "cudnn", proposal = 0 : i64, workspace_bytes = 0 : i64, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, padding = array<i64: 1, 1>, function_type = (memref<?xf16>, memref<?xf16>, memref<?xf16>, memref<?xi8>, index) -> ()}
