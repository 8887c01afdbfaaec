/* Arrays of the caller on their way to the device and back, and arrays that lie there already. */
#include "handle.h"

#include <string.h>

/* Smaller arrays are copied to the staging memory in less time than it takes to ask the driver about them. */
#define WORTH_ASKING (1 << 16)
#define WORD_BYTES 8

static int64_t aligned(int64_t bytes) { return (bytes + NET_ALIGNMENT - 1) / NET_ALIGNMENT * NET_ALIGNMENT; }

static net_status told(net_handle *h, const char *call, int status) {
  return status == CUDA_SUCCESS ? NET_OK : net_device_fail(h, call, status);
}

static device_address address_of(const net_handle *h, const tensor *t) {
  return (device_address)(uintptr_t)h->bases[net_plan.buffers[t->buffer].root] + (uint64_t)h->starts[t->buffer];
}

static int is_state(int32_t number, int is_output) {
  for (int32_t k = 0; k < net_plan.state_count; k++)
    if (number == (is_output ? net_plan.states[k].output : net_plan.states[k].input))
      return 1;
  return 0;
}

static int counts_runs(int32_t input) { return net_plan.counts_runs && input == net_plan.input_count - 1; }

/* Memory of the host that the device reads and writes, for arrays on their way and a word behind them. */
static net_status hold_staging(net_handle *h) {
  net_target *t = &h->target;
  const net_driver *cuda = t->device->cuda;
  t->staged = 0;
  for (int32_t i = 0; i < net_plan.input_count && !t->takes_addresses; i++)
    t->staged += aligned(net_tensor_bytes(h, &net_plan.inputs[i]));
  t->staged_inputs = t->staged;
  for (int32_t i = 0; i < net_plan.output_count && !t->takes_addresses; i++)
    t->staged += aligned(net_tensor_bytes(h, &net_plan.outputs[i]));
  int64_t bytes = t->staged + WORD_BYTES;
  if (t->staging && t->staging_held >= bytes)
    return NET_OK;
  if (t->staging) {
    net_status status = told(h, "cuStreamSynchronize", cuda->cuStreamSynchronize(t->stream));
    if (status != NET_OK)
      return status;
    cuda->cuMemFreeHost(t->staging);
  }
  void *memory = NULL;
  net_status status = told(h, "cuMemHostAlloc", cuda->cuMemHostAlloc(&memory, (size_t)bytes, PORTABLE_HOST_MEMORY));
  t->staging = status == NET_OK ? memory : NULL;
  t->staging_held = status == NET_OK ? bytes : 0;
  return status;
}

/* Whether the device can read or write all of an array of the host where it lies. */
static int is_pinned(const net_handle *h, const void *array, int64_t bytes) {
  const net_driver *cuda = h->target.device->cuda;
  device_address ends[2] = {(device_address)(uintptr_t)array, (device_address)(uintptr_t)array + (uint64_t)bytes - 1};
  if (bytes < WORTH_ASKING)
    return 0;
  for (int i = 0; i < 2; i++) {
    int attribute = POINTER_MEMORY_TYPE, kind = 0;
    void *values[] = {&kind};
    if (cuda->cuPointerGetAttributes(1, &attribute, values, ends[i]) != CUDA_SUCCESS || kind != MEMORY_OF_HOST)
      return 0;
  }
  return 1;
}

static net_status copy_on_device(net_handle *h, device_address to, device_address from, int64_t bytes) {
  const net_driver *cuda = h->target.device->cuda;
  if (!bytes || to == from)
    return NET_OK;
  return told(h, "cuMemcpyDtoDAsync", cuda->cuMemcpyDtoDAsync_v2(to, from, (size_t)bytes, h->target.stream));
}

static net_status upload(net_handle *h, int32_t i, int64_t bytes, int64_t at) {
  net_target *t = &h->target;
  const void *source = h->given[i];
  if (!is_pinned(h, source, bytes))
    source = memcpy(t->staging + at, source, (size_t)bytes);
  device_address to = address_of(h, &net_plan.inputs[i]);
  return told(h, "cuMemcpyHtoDAsync", t->device->cuda->cuMemcpyHtoDAsync_v2(to, source, (size_t)bytes, t->stream));
}

/* The number of the run byte by byte: a copy from the host would read what a later run has written. */
static net_status write_number(net_handle *h, int32_t i) {
  const net_driver *cuda = h->target.device->cuda;
  device_address to = address_of(h, &net_plan.inputs[i]);
  net_status status = NET_OK;
  for (int k = 0; k < WORD_BYTES && status == NET_OK; k++)
    status = told(h, "cuMemsetD8Async",
                  cuda->cuMemsetD8Async(to + (uint64_t)k, (unsigned char)((uint64_t)h->runs >> 8 * k), 1, h->target.stream));
  return status;
}

static net_status bring(net_handle *h, int32_t i, int64_t at) {
  int64_t bytes = net_tensor_bytes(h, &net_plan.inputs[i]);
  device_address given = (device_address)(uintptr_t)h->given[i];
  if (bytes && !given)
    return net_fail(h, NET_INVALID_ARGUMENT, "input '%s' is a null pointer", net_plan.inputs[i].known.name);
  if (is_state(i, 0))
    return copy_on_device(h, address_of(h, &net_plan.inputs[i]), given, bytes);
  if (!h->target.takes_addresses)
    return bytes ? upload(h, i, bytes, at) : NET_OK;
  return counts_runs(i) ? write_number(h, i) : copy_on_device(h, address_of(h, &net_plan.inputs[i]), given, bytes);
}

/* Whether a tensor is all of a buffer that holds nothing else, and lies in it as it does in memory of the caller. */
static int is_whole(const net_handle *h, const tensor *t, int32_t kind, const void *array) {
  const buffer *b = &net_plan.buffers[t->buffer];
  int64_t bytes = net_tensor_bytes(h, t);
  return bytes > 0 && b->kind == kind && b->view_of < 0 && h->sizes[t->buffer] == bytes &&
         (uintptr_t)array % NET_ALIGNMENT == 0;
}

static int overlaps(const void *a, int64_t a_bytes, const void *b, int64_t b_bytes) {
  uintptr_t first = (uintptr_t)a, second = (uintptr_t)b;
  return first < second + (uintptr_t)b_bytes && second < first + (uintptr_t)a_bytes;
}

static int is_apart(const net_handle *h, int32_t number) {
  const void *one = h->wanted[number];
  int64_t bytes = net_tensor_bytes(h, &net_plan.outputs[number]);
  for (int32_t i = 0; i < net_plan.input_count; i++)
    if (overlaps(one, bytes, h->given[i], net_tensor_bytes(h, &net_plan.inputs[i])))
      return 0;
  for (int32_t i = 0; i < net_plan.output_count; i++) {
    int32_t root = net_plan.buffers[net_plan.outputs[i].buffer].root;
    if (i == number)
      continue;
    if (root == net_plan.outputs[number].buffer ||
        (h->wanted[i] && overlaps(one, bytes, h->wanted[i], net_tensor_bytes(h, &net_plan.outputs[i]))))
      return 0;
  }
  return 1;
}

/* Lets kernels read and write arrays of the device where they lie, once their addresses have come before. */
static void use_in_place(net_handle *h) {
  int found = 0;
  if (!net_is_straight() || net_plan.counts_runs || net_plan.state_count)
    return;
  for (int32_t i = 0; i < net_plan.input_count; i++) {
    const tensor *t = &net_plan.inputs[i];
    if (is_whole(h, t, INPUT, h->given[i]) && !h->target.is_written[t->buffer]) {
      h->bases[t->buffer] = (unsigned char *)(uintptr_t)h->given[i];
      found = 1;
    }
  }
  for (int32_t i = 0; i < net_plan.output_count; i++) {
    const tensor *t = &net_plan.outputs[i];
    if (h->wanted[i] && is_whole(h, t, OUTPUT, h->wanted[i]) && is_apart(h, i)) {
      h->bases[t->buffer] = h->wanted[i];
      found = 1;
    }
  }
  if (found && !h->target.is_captured && !net_graphs_of(h, 1))
    net_place_own_arrays(h);
}

net_status net_place_arrays(net_handle *h) {
  net_status status = hold_staging(h);
  int64_t at = 0;
  net_place_own_arrays(h);
  if (status == NET_OK && h->target.takes_addresses)
    use_in_place(h);
  for (int32_t i = 0; i < net_plan.input_count && status == NET_OK; i++) {
    status = bring(h, i, at);
    at += aligned(net_tensor_bytes(h, &net_plan.inputs[i]));
  }
  return status;
}

/* Queues the copy of an output, and says where it is once that is done. */
static net_status fetch(net_handle *h, int32_t i, unsigned char *staged) {
  net_target *t = &h->target;
  int64_t bytes = net_tensor_bytes(h, &net_plan.outputs[i]);
  device_address from = address_of(h, &net_plan.outputs[i]);
  if (t->takes_addresses || is_state(i, 1)) {
    h->found[i] = h->wanted[i] ? h->wanted[i] : (void *)(uintptr_t)from;
    return copy_on_device(h, (device_address)(uintptr_t)h->found[i], from, bytes);
  }
  h->found[i] = h->wanted[i] && is_pinned(h, h->wanted[i], bytes) ? h->wanted[i] : staged;
  if (!bytes)
    return NET_OK;
  void *to = (void *)(uintptr_t)h->found[i];
  return told(h, "cuMemcpyDtoHAsync", t->device->cuda->cuMemcpyDtoHAsync_v2(to, from, (size_t)bytes, t->stream));
}

net_status net_fetch(net_handle *h) {
  net_target *t = &h->target;
  int64_t at = t->staged_inputs;
  net_status status = NET_OK;
  for (int32_t i = 0; i < net_plan.output_count && status == NET_OK; i++) {
    status = fetch(h, i, t->staging + at);
    at += aligned(net_tensor_bytes(h, &net_plan.outputs[i]));
  }
  if (status != NET_OK || t->takes_addresses)
    return status;
  status = told(h, "cuStreamSynchronize", t->device->cuda->cuStreamSynchronize(t->stream));
  for (int32_t i = 0; i < net_plan.output_count && status == NET_OK; i++)
    if (h->wanted[i] && h->found[i] != h->wanted[i])
      h->found[i] = memcpy(h->wanted[i], h->found[i], (size_t)net_tensor_bytes(h, &net_plan.outputs[i]));
  return status;
}

void net_settle(net_handle *h) {
  if (!h->target.takes_addresses && !h->target.is_captured)
    h->target.device->cuda->cuStreamSynchronize(h->target.stream);
}

static net_status ask_stream(net_handle *h, void *stream, int *is_captured) {
  *is_captured = 0;
  if (stream == h->target.own)
    return NET_OK;
  return told(h, "cuStreamIsCapturing", h->target.device->cuda->cuStreamIsCapturing(stream, is_captured));
}

/* Whether the run may become part of a graph of the caller, if it is to: each replay does the same. */
net_status net_begin_run(net_handle *h) {
  net_target *t = &h->target;
  net_status status = ask_stream(h, t->stream, &t->is_captured);
  if (status != NET_OK || !t->is_captured)
    return status;
  const char *fault = !t->takes_addresses      ? "net_run waits for the device; take net_run_device"
                      : !net_is_straight()     ? "a loop, a branch or a check of the network is decided while it runs"
                      : net_plan.state_count   ? "the network keeps a state from run to run"
                      : net_plan.counts_runs   ? "the network counts its runs"
                                               : NULL;
  if (fault)
    return net_fail(h, NET_INVALID_ARGUMENT, "the stream is being captured, and this cannot be: %s", fault);
  t->is_in_graphs = 1;
  h->is_bound = h->is_bound && !net_plan.class_count;
  return NET_OK;
}

EXPORT net_status net_run_device(net_handle *h, const void *const *inputs, void *const *outputs) {
  if (!h)
    return NET_INVALID_ARGUMENT;
  h->target.takes_addresses = 1;
  net_status status = net_run(h, inputs, outputs);
  h->target.takes_addresses = 0;
  return status;
}

/* What comes on the new stream waits for what was on the one before. */
static net_status turn(net_handle *h, void *stream) {
  net_target *t = &h->target;
  const net_driver *cuda = t->device->cuda;
  net_status status = told(h, "cuEventRecord", cuda->cuEventRecord(t->turn, t->stream));
  if (status == NET_OK)
    status = told(h, "cuStreamWaitEvent", cuda->cuStreamWaitEvent(stream, t->turn, 0));
  return status;
}

EXPORT net_status net_set_stream(net_handle *h, void *stream) {
  net_status status = h ? net_enter(h) : NET_INVALID_ARGUMENT;
  if (status != NET_OK)
    return status;
  void *wanted = stream ? stream : h->target.own, *before = h->target.stream;
  int is_captured = 0, was_captured = 0;
  status = ask_stream(h, wanted, &is_captured);
  if (status == NET_OK)
    status = ask_stream(h, before, &was_captured);
  if (status == NET_OK && wanted != before && !is_captured && !was_captured)
    status = turn(h, wanted);
  if (status == NET_OK)
    h->target.stream = wanted;
  net_leave(h);
  return status;
}

EXPORT void *net_stream(const net_handle *h) { return h ? h->target.stream : NULL; }

EXPORT net_status net_synchronize(net_handle *h) {
  net_status status = h ? net_enter(h) : NET_INVALID_ARGUMENT;
  if (status != NET_OK)
    return status;
  status = told(h, "cuStreamSynchronize", h->target.device->cuda->cuStreamSynchronize(h->target.stream));
  net_leave(h);
  return status;
}
