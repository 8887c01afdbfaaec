/* Launches with numbers for everything: grids, tensor maps, and the arguments that kernels are passed. */
#include "handle.h"

#include <string.h>

/* The first architecture whose launches may begin before the one before has ended, where they wait for that themselves. */
#define STARTS_EARLY 90

static int is_natural(int64_t value) { return value >= 0 && value <= NET_MAX_BYTES; }

net_status net_bind_grid(net_handle *h, int32_t number) {
  const int32_t *sizes = net_cuda_plan.grids[number].size;
  for (int axis = 0; axis < 3; axis++) {
    int64_t size = h->numbers[sizes[axis]];
    if (!h->is_idle[number] && (size < 0 || size > (axis ? 65535 : INT32_MAX)))
      return net_fail(h, NET_WRONG_SHAPE, "the network has no meaning for these shapes: the grid of layer %s",
                      net_plan.launches[number].layer);
  }
  for (int axis = 0; axis < 3; axis++)
    h->is_idle[number] |= h->numbers[sizes[axis]] == 0;
  return NET_OK;
}

int net_runs_idle(void) { return 0; }

static int has_no_size(const net_handle *h, const tensor_map *m) {
  for (int32_t axis = 0; axis < m->rank; axis++)
    if (h->numbers[m->sizes[axis]] == 0)
      return 1;
  return 0;
}

int net_bind_map(net_handle *h, const argument *one, int idle, int64_t *place) {
  const tensor_map *m = &net_cuda_plan.maps[one->c];
  int64_t end = m->element_bytes, offset = h->numbers[one->b];
  *place = 0;
  if (idle)
    return 1;
  for (int32_t axis = 0; axis < m->rank; axis++)
    if (!is_natural(h->numbers[m->sizes[axis]]) || !is_natural(h->numbers[m->steps[axis]]))
      return 0;
  if (has_no_size(h, m)) /* a kernel that sums up nothing copies nothing */
    return 1;
  for (int32_t axis = 0; axis < m->rank; axis++) {
    int64_t reach;
    if (__builtin_mul_overflow(h->numbers[m->sizes[axis]] - 1, h->numbers[m->steps[axis]], &reach) ||
        __builtin_add_overflow(end, reach, &end))
      return 0;
  }
  if (!is_natural(offset) || !is_natural(end) || offset + end > h->sizes[one->a])
    return 0;
  *place = h->starts[one->a] + offset;
  return 1;
}

/* Writes the 128 bytes that describe a tensor to the device; the driver has the innermost dimension first. */
static net_status encode(net_handle *h, const tensor_map *m, device_address address, void *map) {
  const net_driver *cuda = h->target.device->cuda;
  uint64_t sizes[NET_MAP_RANK], steps[NET_MAP_RANK];
  uint32_t box[NET_MAP_RANK] = {0}, strides[NET_MAP_RANK];
  int lower[NET_MAP_RANK] = {0}, upper[NET_MAP_RANK] = {0}, status;
  int is_empty = has_no_size(h, m), last = m->rank - 1, spatial = m->rank - 2;
  for (int32_t axis = 0; axis < m->rank; axis++) {
    sizes[last - axis] = is_empty ? 1 : (uint64_t)h->numbers[m->sizes[axis]];
    strides[axis] = 1;
    if (axis < last) /* that of the last dimension is the size of an element */
      steps[last - 1 - axis] = is_empty ? 16 : (uint64_t)h->numbers[m->steps[axis]];
  }
  void *at = (void *)(uintptr_t)address;
  if (!(m->has_window ? (void *)cuda->cuTensorMapEncodeIm2col : (void *)cuda->cuTensorMapEncodeTiled))
    return net_fail(h, NET_NO_DEVICE, "the CUDA driver is too old: it describes no tensors to devices");
  if (m->has_window) {
    for (int32_t axis = 0; axis < spatial; axis++) {
      lower[spatial - 1 - axis] = m->lower[axis];
      upper[spatial - 1 - axis] = m->upper[axis];
      strides[spatial - axis] = (uint32_t)m->stride[axis];
    }
    status = cuda->cuTensorMapEncodeIm2col(map, m->element, (uint32_t)m->rank, at, sizes, steps, lower, upper,
                                           (uint32_t)m->box[1], (uint32_t)m->box[0], strides, 0, m->swizzle,
                                           MAP_L2_256_BYTES, 0);
    return status == CUDA_SUCCESS ? NET_OK : net_device_fail(h, "cuTensorMapEncodeIm2col", status);
  }
  for (int32_t axis = 0; axis < m->rank; axis++)
    box[last - axis] = (uint32_t)m->box[axis];
  status = cuda->cuTensorMapEncodeTiled(map, m->element, (uint32_t)m->rank, at, sizes, steps, box, strides, 0, m->swizzle,
                                        MAP_L2_256_BYTES, 0);
  return status == CUDA_SUCCESS ? NET_OK : net_device_fail(h, "cuTensorMapEncodeTiled", status);
}

static net_status write_value(net_handle *h, int32_t i, unsigned char *value) {
  const argument *one = &net_plan.arguments[i];
  if (!net_is_in_buffer(one)) {
    memcpy(value, &h->numbers[one->a], sizeof *h->numbers);
    return NET_OK;
  }
  device_address address = (device_address)(uintptr_t)h->bases[net_plan.buffers[one->a].root] + (uint64_t)h->pointed[i];
  if (one->kind == MAP)
    return encode(h, &net_cuda_plan.maps[one->c], address, value);
  memcpy(value, &address, sizeof address);
  return NET_OK;
}

static net_status queue(net_handle *h, const kernel *k, void *function, const unsigned *grid, int follows, void *stream) {
  const net_driver *cuda = h->target.device->cuda;
  const int32_t *block = k->block;
  launch_attribute attributes[2] = {{.id = 0}};
  unsigned count = 0;
  int status;
  if (k->is_cooperative)
    attributes[count++] = (launch_attribute){.id = LAUNCH_COOPERATIVE, .value = {1}};
  if (follows)
    attributes[count++] = (launch_attribute){.id = LAUNCH_PROGRAMMATIC, .value = {1}};
  if (!count || !cuda->cuLaunchKernelEx) {
    if (k->is_cooperative)
      return net_fail(h, NET_NO_DEVICE, "the CUDA driver is too old: it lacks cuLaunchKernelEx");
    status = cuda->cuLaunchKernel(function, grid[0], grid[1], grid[2], (unsigned)block[0], (unsigned)block[1],
                                  (unsigned)block[2], (unsigned)k->shared_bytes, stream, h->target.pointers, NULL);
    return status == CUDA_SUCCESS ? NET_OK : net_device_fail(h, "cuLaunchKernel", status);
  }
  launch_config config = {{grid[0], grid[1], grid[2]},
                          {(unsigned)block[0], (unsigned)block[1], (unsigned)block[2]},
                          (unsigned)k->shared_bytes,
                          stream,
                          attributes,
                          count};
  status = cuda->cuLaunchKernelEx(&config, function, h->target.pointers, NULL);
  return status == CUDA_SUCCESS ? NET_OK : net_device_fail(h, "cuLaunchKernelEx", status);
}

net_status net_queue_launch(net_handle *h, int32_t number, void *stream, int follows) {
  const launch *l = &net_plan.launches[number];
  const kernel *k = &net_cuda_plan.kernels[l->kernel];
  const net_device *d = h->target.device;
  unsigned grid[3];
  for (int axis = 0; axis < 3; axis++)
    grid[axis] = (unsigned)h->numbers[net_cuda_plan.grids[number].size[axis]];
  for (int32_t i = 0; i < l->arguments; i++) {
    unsigned char *value = h->target.values + (size_t)NET_MAP_BYTES * (size_t)i;
    net_status status = write_value(h, l->first_argument + i, value);
    if (status != NET_OK)
      return status;
    h->target.pointers[i] = value;
  }
  int is_new = net_cuda_plan.codes[d->chosen[l->kernel]].number >= STARTS_EARLY && d->capability >= STARTS_EARLY;
  return queue(h, k, d->functions[l->kernel], grid, follows && k->is_dependent && is_new, stream);
}

device_address net_place_address(const net_handle *h, int32_t number) {
  const place *p = &net_plan.places[number];
  int64_t offset = h->starts[p->buffer] + h->numbers[p->offset];
  return (device_address)(uintptr_t)h->bases[net_plan.buffers[p->buffer].root] + (uint64_t)offset;
}

net_status net_queue_setting(net_handle *h, uint64_t condition, int32_t place, int holds, void *stream) {
  static const kernel setter = {"set_condition", "set_condition", {32, 1, 1}, 0, 0, 0, 0, 0};
  static const unsigned one_block[3] = {1, 1, 1};
  device_address address = net_place_address(h, place);
  int32_t wanted = holds;
  void *pointers[] = {&condition, &address, &wanted}, **kept = h->target.pointers;
  h->target.pointers = pointers;
  net_status status = queue(h, &setter, h->target.device->setter, one_block, 0, stream);
  h->target.pointers = kept;
  return status;
}
