// RUN: rt-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{C1: kernel.library_product: the library 'libc' is none of cublas_lt}}
kernel.library_product @library_product_c1 {library = "libc", proposal = 0 : i64, workspace_bytes = 0 : i64, function_type = (memref<?xf16>, memref<?xf16>, memref<?xf16>, memref<?xi8>, index, index, index, index, index, index, index, index, index, index) -> ()}

// -----

// expected-error@+1 {{C2: kernel.library_product takes 5 buffers, the fourth of i8, and 10 sizes}}
kernel.library_product @library_product_c2 {biased = true, library = "cublas_lt", proposal = 0 : i64, workspace_bytes = 0 : i64, function_type = (memref<?xf16>, memref<?xf16>, memref<?xf16>, memref<?xi8>, index, index, index, index, index, index, index, index, index, index) -> ()}

// -----

// expected-error@+1 {{C2: kernel.library_product takes 4 buffers, the fourth of i8, and 10 sizes}}
kernel.library_product @library_product_c2 {library = "cublas_lt", proposal = 0 : i64, workspace_bytes = 0 : i64, function_type = (memref<?xf16>, memref<?xf16>, memref<?xf16>, memref<?xi32>, index, index) -> ()}
