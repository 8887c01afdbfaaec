/* The handle's part for CUDA devices: a stream, memory of the device for the arena, arrays and states, and its end. */
#include "handle.h"

#include <string.h>

static int64_t aligned(int64_t bytes) { return (bytes + NET_ALIGNMENT - 1) / NET_ALIGNMENT * NET_ALIGNMENT; }

static net_status told(net_handle *h, const char *call, int status) {
  return status == CUDA_SUCCESS ? NET_OK : net_device_fail(h, call, status);
}

/* Which buffers launches write. */
static void find_written(net_target *t) {
  for (int32_t i = 0; i < net_plan.launch_count; i++) {
    const launch *l = &net_plan.launches[i];
    for (int32_t k = l->first_argument; k < l->first_argument + l->arguments; k++)
      if (net_is_in_buffer(&net_plan.arguments[k]) && net_cuda_plan.uses[k].writes)
        t->is_written[net_plan.buffers[net_plan.arguments[k].a].root] = 1;
  }
}

static int allocate(net_target *t) {
  size_t most = 1, graphs = (size_t)net_plan.step_count;
  t->key_words = net_plan.buffer_count + net_plan.size_count;
  for (int32_t i = 0; i < net_plan.input_count; i++)
    t->key_words += net_plan.inputs[i].known.rank;
  for (int32_t i = 0; i < net_plan.launch_count; i++)
    if ((size_t)net_plan.launches[i].arguments > most)
      most = (size_t)net_plan.launches[i].arguments;
  if (!(t->values = net_aligned(most * NET_MAP_BYTES)) || !(t->pointers = net_zeros(most, sizeof *t->pointers)) ||
      !(t->events = net_zeros((size_t)net_plan.launch_count + 1, sizeof *t->events)) ||
      !(t->is_written = net_zeros((size_t)net_plan.buffer_count, 1)) ||
      !(t->key = net_zeros((size_t)t->key_words, sizeof *t->key)) ||
      !(t->kept = net_zeros(NET_KEPT_GRAPHS, sizeof *t->kept)))
    return 0;
  for (int32_t k = 0; k < NET_KEPT_GRAPHS; k++)
    if (!(t->kept[k].key = net_zeros((size_t)t->key_words, sizeof *t->key)) ||
        !(t->kept[k].graphs = net_zeros(graphs, sizeof(void *))))
      return 0;
  find_written(t);
  return 1;
}

net_status net_open(net_handle *h, int number) {
  net_target *t = &h->target;
  if (!allocate(t))
    return net_fail(h, NET_OUT_OF_MEMORY, "there is no memory for a handle");
  net_status status = net_open_device(h, number);
  if (status == NET_OK)
    status = net_enter(h);
  if (status != NET_OK)
    return status;
  const net_driver *cuda = t->device->cuda;
  t->on_device = t->device->setter != NULL;
  status = told(h, "cuStreamCreate", cuda->cuStreamCreate(&t->own, NON_BLOCKING_STREAM));
  t->stream = t->streams[0] = t->own;
  t->stream_count = 1;
  if (status == NET_OK)
    status = told(h, "cuEventCreate", cuda->cuEventCreate(&t->turn, NO_TIMES));
  for (int32_t i = 0; i < net_plan.buffer_count; i++)
    if (net_plan.buffers[i].kind == WEIGHT && net_plan.buffers[i].view_of < 0)
      h->bases[i] = (unsigned char *)(uintptr_t)(t->device->weights + (uint64_t)net_plan.buffers[i].weight);
  net_leave(h);
  return status;
}

static void free_on_device(net_handle *h) {
  net_target *t = &h->target;
  const net_driver *cuda = t->device->cuda;
  if (net_enter(h) != NET_OK)
    return;
  if (t->stream)
    cuda->cuStreamSynchronize(t->stream);
  net_drop_graphs(h);
  for (int32_t i = 0; i < t->event_count; i++)
    cuda->cuEventDestroy_v2(t->events[i]);
  if (t->turn)
    cuda->cuEventDestroy_v2(t->turn);
  for (int32_t i = 0; i < t->stream_count; i++)
    if (t->streams[i])
      cuda->cuStreamDestroy_v2(t->streams[i]);
  if (t->block)
    cuda->cuMemFree_v2(t->block);
  for (int32_t i = 0; i < t->outgrown_count; i++)
    cuda->cuMemFree_v2(t->outgrown[i]);
  if (t->staging)
    cuda->cuMemFreeHost(t->staging);
  for (int32_t k = 0; h->states && k < net_plan.state_count; k++) {
    if (h->states[k].now)
      cuda->cuMemFree_v2((device_address)(uintptr_t)h->states[k].now);
    if (h->states[k].next)
      cuda->cuMemFree_v2((device_address)(uintptr_t)h->states[k].next);
  }
  net_leave(h);
}

void net_close(net_handle *h) {
  net_target *t = &h->target;
  if (t->device) {
    free_on_device(h);
    net_close_device(t->device);
  }
  for (int32_t k = 0; t->kept && k < NET_KEPT_GRAPHS; k++) {
    net_free(t->kept[k].key);
    net_free(t->kept[k].graphs);
  }
  void *memory[] = {t->values, t->pointers, t->events, t->is_written, t->key, t->kept, t->outgrown};
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
    net_free(memory[i]);
}

net_status net_enter(net_handle *h) {
  const net_device *d = h->target.device;
  if (h->target.is_in_graphs && net_plan.class_count) /* borders are written anew: what has run since nobody knows */
    h->is_bound = 0;
  return told(h, "cuCtxPushCurrent", d->cuda->cuCtxPushCurrent_v2(d->context));
}

void net_leave(net_handle *h) {
  void *context;
  h->target.device->cuda->cuCtxPopCurrent_v2(&context);
}

/* Keeps memory until the handle's end, as graphs of the caller have its address. */
static net_status outgrow(net_handle *h, device_address memory) {
  net_target *t = &h->target;
  device_address *more = net_zeros((size_t)t->outgrown_count + 1, sizeof *more);
  if (!more)
    return net_fail(h, NET_OUT_OF_MEMORY, "there is no memory for a note of outgrown memory");
  if (t->outgrown)
    memcpy(more, t->outgrown, (size_t)t->outgrown_count * sizeof *more);
  net_free(t->outgrown);
  t->outgrown = more;
  more[t->outgrown_count++] = memory;
  return NET_OK;
}

/* Memory of the device; what used the one before is over. */
static net_status grow(net_handle *h, device_address *memory, int64_t *held, int64_t bytes) {
  net_target *t = &h->target;
  const net_driver *cuda = t->device->cuda;
  if (*memory && *held >= bytes)
    return NET_OK;
  if (*memory) {
    net_status status = t->is_in_graphs ? outgrow(h, *memory)
                                        : told(h, "cuStreamSynchronize", cuda->cuStreamSynchronize(t->stream));
    if (status != NET_OK)
      return status;
    if (!t->is_in_graphs)
      cuda->cuMemFree_v2(*memory);
  }
  *memory = 0;
  *held = 0;
  net_status status = told(h, "cuMemAlloc", cuda->cuMemAlloc_v2(memory, bytes ? (size_t)bytes : 1));
  if (status == NET_OUT_OF_MEMORY)
    return net_fail(h, status, "the device has no memory for %lld bytes of the network's buffers", (long long)bytes);
  *held = status == NET_OK ? bytes : 0;
  return status;
}

net_status net_hold(net_handle *h, unsigned char **memory, int64_t *held, int64_t bytes, const tensor *t) {
  device_address address = (device_address)(uintptr_t)*memory;
  (void)t;
  net_status status = grow(h, &address, held, bytes);
  *memory = (unsigned char *)(uintptr_t)address;
  return status;
}

net_status net_write_state(net_handle *h, unsigned char *memory, int64_t begins, int64_t bytes) {
  const net_device *d = h->target.device;
  device_address to = (device_address)(uintptr_t)memory;
  if (!bytes)
    return NET_OK;
  if (begins < 0)
    return told(h, "cuMemsetD8Async", d->cuda->cuMemsetD8Async(to, 0, (size_t)bytes, h->target.stream));
  device_address from = d->weights + (uint64_t)begins;
  return told(h, "cuMemcpyDtoDAsync", d->cuda->cuMemcpyDtoDAsync_v2(to, from, (size_t)bytes, h->target.stream));
}

/* Inputs and outputs lie behind the arena; returns where all ends. */
int64_t net_place_own_arrays(net_handle *h) {
  int64_t top = aligned(h->arena_bytes);
  for (int32_t i = 0; i < net_plan.buffer_count; i++) {
    const buffer *b = &net_plan.buffers[i];
    if (b->view_of >= 0 || (b->kind != INPUT && b->kind != OUTPUT))
      continue;
    h->bases[i] = (unsigned char *)(uintptr_t)(h->target.block + (uint64_t)top);
    top += aligned(h->sizes[i]);
  }
  return top;
}

net_status net_hold_arena(net_handle *h) {
  net_target *t = &h->target;
  net_status status = grow(h, &t->block, &t->block_held, net_place_own_arrays(h));
  if (status != NET_OK)
    return status;
  net_place_own_arrays(h);
  for (int32_t i = 0; i < net_plan.buffer_count && status == NET_OK; i++) {
    const buffer *b = &net_plan.buffers[i];
    if (b->kind != ARENA || b->view_of >= 0)
      continue;
    device_address at = t->block + (uint64_t)h->offsets[i];
    h->bases[i] = (unsigned char *)(uintptr_t)at;
    if (b->halo >= 0 && h->sizes[i])
      status = told(h, "cuMemsetD8Async",
                    t->device->cuda->cuMemsetD8Async(at, (unsigned char)b->fill, (size_t)h->sizes[i], t->stream));
  }
  return status;
}

/* Graphs hold arguments, and are made when they are first run. */
void net_fill_arguments(net_handle *h) { (void)h; }
