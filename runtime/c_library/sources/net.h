#if NET_FOR_CUDA
/* A network as a library: made by mlirt from a plan for CUDA devices, and in need of nothing but the C library and NVIDIA's
 * driver, which the first handle looks for.
#else
/* A network as a library: made by mlirt from a plan for processors, and in need of nothing but the C library.
#endif
 *
 * A handle is used by one thread at a time; handles share nothing that is written, so each thread may have its own.
 * Functions that can fail return NET_OK or a code, and `net_error` says in words what is wrong.
 */
#ifndef NET_H
#define NET_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum net_status {
  NET_OK = 0,
  NET_INVALID_ARGUMENT = 1, /* no such tensor, a null pointer, a number that makes no sense */
  NET_WRONG_SHAPE = 2,      /* the shapes of the inputs are not those that the network takes */
  NET_UNMET_CONDITION = 3,  /* what a layer needs of the inputs does not hold */
  NET_OUT_OF_MEMORY = 4,
  NET_WRONG_PROCESSOR = 5, /* the processor lacks instructions that the library was made with */
#if NET_FOR_CUDA
  NET_NOT_YET = 6,         /* the shape of an output is known after a run only */
  NET_NO_DEVICE = 7,       /* there is no driver, no device, or none that the library has code for */
  NET_DEVICE_FAILED = 8    /* the driver refused a call, or a kernel failed */
#else
  NET_NOT_YET = 6          /* the shape of an output is known after a run only */
#endif
} net_status;

typedef enum net_type {
  NET_BOOL, /* a byte, 0 or 1 */
  NET_INT8,
  NET_INT16,
  NET_INT32,
  NET_INT64,
  NET_UINT8,
  NET_UINT16,
  NET_UINT32,
  NET_UINT64,
  NET_FLOAT16,
  NET_BFLOAT16,
  NET_FLOAT32,
  NET_FLOAT64,
  NET_FLOAT8_E4M3FN,
  NET_FLOAT8_E5M2
} net_type;

/* What is known of an input or output before a run. Elements lie densely in memory, the last dimension innermost. */
typedef struct net_tensor {
  const char *name;
  net_type type;
  int32_t element_bytes;
  int32_t rank;
  const int64_t *shape; /* -1 for lengths that a run decides about */
  int32_t follows_data; /* 1 where a run decides about the shape, by its data or by what is kept: known after it only */
  const char *format;   /* "LINEAR", or the name of the order in memory that `shape` is the one of */
} net_tensor;

typedef struct net_handle net_handle;

#if NET_FOR_CUDA
/* Makes a handle on a device, by its number; -1 for that of the context that is current, or else the first one. The first
 * handle of a device loads code and weights, which all of them share. */
net_status net_create(net_handle **handle, int device);
#else
/* Makes a handle. `threads`: those that a run uses, the caller's included; 0 for all processors that the process may
 * use, or MLIRT_NUM_THREADS. */
net_status net_create(net_handle **handle, int threads);
#endif

/* Ends the handle's threads and frees its memory; NULL is fine. */
void net_destroy(net_handle *handle);

/* What was wrong in the last call for this handle that failed; for NULL in the last `net_create` of this thread. */
const char *net_error(const net_handle *handle);

int net_input_count(void);
int net_output_count(void);

/* NULL where there is no tensor of this number. */
const net_tensor *net_input(int number);
const net_tensor *net_output(int number);

/* The shape of an input for the runs that follow; inputs without a length of -1 have theirs from the beginning. */
net_status net_set_input_shape(net_handle *handle, int number, const int64_t *shape, int rank);

/* The shape of an output for those of the inputs. `shape` has room for 64 lengths, `rank` may be NULL. Where the run
 * decides about it, it is that of the last one. */
net_status net_output_shape(net_handle *handle, int number, int64_t *shape, int *rank);

/* Its bytes. */
net_status net_output_bytes(net_handle *handle, int number, size_t *bytes);

/* Runs the network: a pointer for each input and each output, in order. An output of NULL is kept by the handle, see
 * `net_output_data`; it has to be NULL where the run decides about its shape. An output may be the memory of an input.
 */
net_status net_run(net_handle *handle, const void *const *inputs, void *const *outputs);

#if NET_FOR_CUDA
/* As `net_run`, for arrays in memory of the device, without waiting: the run is queued on the handle's stream. A run that
 * has to wait for what the device decides does so. Arrays that begin at multiples of 256 are read and written where they
 * lie from the second run on them on; others are copied on the device. */
net_status net_run_device(net_handle *handle, const void *const *inputs, void *const *outputs);

/* The stream (a CUstream or cudaStream_t of the device's primary context) that runs are queued on, behind those before;
 * NULL for the handle's own. It must outlive its use here. Where it is captured, `net_run_device` becomes part of the
 * caller's graph, which uses memory of the handle: the handle must outlive it, and no run of its must go on beside it. */
net_status net_set_stream(net_handle *handle, void *stream);
void *net_stream(const net_handle *handle);

/* Waits for all that is on the handle's stream. */
net_status net_synchronize(net_handle *handle);

#endif
/* Lets the state begin anew, of networks that keep some from run to run. */
void net_reset_state(net_handle *handle);

#if NET_FOR_CUDA
/* Where an output of the last run is: the caller's memory, or the handle's until the next call, on the device behind
 * `net_run_device`. NULL before a run. */
#else
/* Where an output of the last run is: the caller's memory, or the handle's until the next call. NULL before a run. */
#endif
const void *net_output_data(const net_handle *handle, int number);

#ifdef __cplusplus
}
#endif
#endif
