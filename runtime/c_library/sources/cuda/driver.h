/* The calls of the CUDA driver (libcuda) that the library makes, as NVIDIA documents them. They are found when the first
 * handle is made, so that programs start where there is no driver. */
#ifndef NET_DRIVER_H
#define NET_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t device_address;

enum { CUDA_SUCCESS = 0, CUDA_OUT_OF_MEMORY = 2 };
enum { ATTRIBUTE_PROCESSORS = 16, ATTRIBUTE_MAJOR = 75, ATTRIBUTE_MINOR = 76, ATTRIBUTE_SHARED_BYTES = 97 };
enum { FUNCTION_DYNAMIC_SHARED = 8 };
enum { PORTABLE_HOST_MEMORY = 1, NON_BLOCKING_STREAM = 1, NO_TIMES = 2, RELAXED_CAPTURE = 2 };
enum { POINTER_MEMORY_TYPE = 2, MEMORY_OF_HOST = 1 };
enum { LAUNCH_COOPERATIVE = 2, LAUNCH_PROGRAMMATIC = 6 };
enum { NODE_CONDITIONAL = 13, CONDITION_IF = 0, CONDITION_WHILE = 1, CONDITION_HAS_DEFAULT = 1 };
enum { MAP_L2_256_BYTES = 3 };

typedef struct {
  int id, padding;
  uint32_t value[16];
} launch_attribute;

typedef struct {
  unsigned grid[3], block[3], shared_bytes;
  void *stream;
  launch_attribute *attributes;
  unsigned attribute_count;
} launch_config;

typedef struct {
  uint64_t handle;
  int type;
  unsigned size;
  void **bodies;
  void *context;
} conditional_node;

typedef struct {
  int type, reserved[3];
  union {
    int64_t room[29];
    conditional_node conditional;
  } of;
  int64_t reserved_too;
} node_parameters;

/* Those that every driver has since CUDA 11. */
#define DRIVER_CALLS(CALL)                                                                                            \
  CALL(cuInit, (unsigned flags))                                                                                      \
  CALL(cuGetErrorName, (int status, const char **text))                                                               \
  CALL(cuGetErrorString, (int status, const char **text))                                                             \
  CALL(cuDeviceGetCount, (int *count))                                                                                \
  CALL(cuDeviceGet, (int *device, int number))                                                                        \
  CALL(cuDeviceGetAttribute, (int *value, int attribute, int device))                                                 \
  CALL(cuDevicePrimaryCtxRetain, (void **context, int device))                                                        \
  CALL(cuDevicePrimaryCtxRelease_v2, (int device))                                                                    \
  CALL(cuCtxGetCurrent, (void **context))                                                                             \
  CALL(cuCtxGetDevice, (int *device))                                                                                 \
  CALL(cuCtxPushCurrent_v2, (void *context))                                                                          \
  CALL(cuCtxPopCurrent_v2, (void **context))                                                                          \
  CALL(cuMemAlloc_v2, (device_address * address, size_t bytes))                                                       \
  CALL(cuMemFree_v2, (device_address address))                                                                        \
  CALL(cuMemHostAlloc, (void **address, size_t bytes, unsigned flags))                                                \
  CALL(cuMemFreeHost, (void *address))                                                                                \
  CALL(cuPointerGetAttributes, (unsigned count, int *attributes, void **values, device_address address))              \
  CALL(cuModuleLoadData, (void **module, const void *image))                                                          \
  CALL(cuModuleUnload, (void *module))                                                                                \
  CALL(cuModuleGetFunction, (void **function, void *module, const char *symbol))                                      \
  CALL(cuFuncSetAttribute, (void *function, int attribute, int value))                                                \
  CALL(cuStreamCreate, (void **stream, unsigned flags))                                                               \
  CALL(cuStreamDestroy_v2, (void *stream))                                                                            \
  CALL(cuStreamSynchronize, (void *stream))                                                                           \
  CALL(cuStreamWaitEvent, (void *stream, void *event, unsigned flags))                                                \
  CALL(cuStreamIsCapturing, (void *stream, int *state))                                                               \
  CALL(cuStreamBeginCapture_v2, (void *stream, int mode))                                                             \
  CALL(cuStreamEndCapture, (void *stream, void **graph))                                                              \
  CALL(cuEventCreate, (void **event, unsigned flags))                                                                 \
  CALL(cuEventDestroy_v2, (void *event))                                                                              \
  CALL(cuEventRecord, (void *event, void *stream))                                                                    \
  CALL(cuMemcpyHtoDAsync_v2, (device_address to, const void *from, size_t bytes, void *stream))                       \
  CALL(cuMemcpyDtoHAsync_v2, (void *to, device_address from, size_t bytes, void *stream))                             \
  CALL(cuMemcpyDtoDAsync_v2, (device_address to, device_address from, size_t bytes, void *stream))                    \
  CALL(cuMemsetD8Async, (device_address to, unsigned char byte, size_t bytes, void *stream))                          \
  CALL(cuLaunchKernel, (void *function, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y,       \
                        unsigned block_z, unsigned shared_bytes, void *stream, void **arguments, void **extra))       \
  CALL(cuGraphInstantiateWithFlags, (void **executable, void *graph, unsigned long long flags))                       \
  CALL(cuGraphDestroy, (void *graph))                                                                                 \
  CALL(cuGraphLaunch, (void *executable, void *stream))                                                               \
  CALL(cuGraphExecDestroy, (void *executable))

/* Those of later ones: NULL where a driver lacks them. */
#define LATER_DRIVER_CALLS(CALL)                                                                                      \
  CALL(cuLaunchKernelEx, (const launch_config *config, void *function, void **arguments, void **extra))               \
  CALL(cuTensorMapEncodeTiled, (void *map, int element, uint32_t rank, void *address, const uint64_t *sizes,          \
                                const uint64_t *steps, const uint32_t *box, const uint32_t *strides, int interleave,  \
                                int swizzle, int promotion, int fill))                                                \
  CALL(cuTensorMapEncodeIm2col, (void *map, int element, uint32_t rank, void *address, const uint64_t *sizes,         \
                                 const uint64_t *steps, const int *lower, const int *upper, uint32_t channels,        \
                                 uint32_t pixels, const uint32_t *strides, int interleave, int swizzle, int promotion, \
                                 int fill))                                                                           \
  CALL(cuGraphCreate, (void **graph, unsigned flags))                                                                 \
  CALL(cuGraphConditionalHandleCreate, (uint64_t * condition, void *graph, void *context, unsigned first, unsigned flags)) \
  CALL(cuGraphAddNode_v2, (void **node, void *graph, void *const *after, const void *edges, size_t count,             \
                           node_parameters *parameters))                                                              \
  CALL(cuStreamBeginCaptureToGraph, (void *stream, void *graph, void *const *after, const void *edges, size_t count,  \
                                     int mode))                                                                       \
  CALL(cuStreamGetCaptureInfo_v2, (void *stream, int *state, uint64_t *number, void **graph, void ***nodes, size_t *count))

#define DECLARE_CALL(name, parameters) int(*name) parameters;
typedef struct {
  DRIVER_CALLS(DECLARE_CALL)
  LATER_DRIVER_CALLS(DECLARE_CALL)
} net_driver;

/* NULL, with the reason, where there is no driver, or one that lacks calls; by one thread at a time. */
const net_driver *net_find_driver(char *error, size_t room);

/* The driver's words for a status, such as CUDA_ERROR_OUT_OF_MEMORY (2): out of memory. */
void net_say_status(const net_driver *cuda, int status, char *text, size_t room);

#endif
