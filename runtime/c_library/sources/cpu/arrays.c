/* Arrays of the caller where kernels find them, and copies of those that kernels cannot use as they lie. */
#include "handle.h"

#include <inttypes.h>
#include <string.h>

/* Memory of the handle for a tensor: outputs behind inputs. NULL where there is none. */
static unsigned char *own(net_handle *h, int32_t number, int64_t bytes) {
  if (bytes > h->target.own_held[number] || !h->target.own[number]) {
    net_free(h->target.own[number]);
    h->target.own[number] = net_aligned((size_t)bytes);
    h->target.own_held[number] = h->target.own[number] ? bytes : 0;
  }
  return h->target.own[number];
}

static net_status no_memory(net_handle *h, const tensor *t, int64_t bytes) {
  return net_fail(h, NET_OUT_OF_MEMORY, "there is no memory for the %" PRId64 " bytes of '%s'", bytes, t->known.name);
}

static int overlap(const void *a, int64_t a_bytes, const void *b, int64_t b_bytes) {
  uintptr_t first = (uintptr_t)a, second = (uintptr_t)b;
  return first < second + (uintptr_t)b_bytes && second < first + (uintptr_t)a_bytes;
}

/* Lets kernels find a buffer at an address; 1 where that is another one than before. */
static int point_at(net_handle *h, int32_t buffer, const void *address) {
  unsigned char *before = h->bases[buffer];
  h->bases[buffer] = (unsigned char *)(uintptr_t)address;
  return before != h->bases[buffer];
}

static net_status place_inputs(net_handle *h, int *is_moved) {
  for (int32_t i = 0; i < net_plan.input_count; i++) {
    const tensor *t = &net_plan.inputs[i];
    const void *given = h->given[i];
    int64_t bytes = net_tensor_bytes(h, t);
    if (!given && bytes)
      return net_fail(h, NET_INVALID_ARGUMENT, "input '%s' is a null pointer", t->known.name);
    if (!given || (uintptr_t)given % (uintptr_t)net_plan.buffers[t->buffer].align) {
      unsigned char *copy = own(h, i, bytes);
      if (!copy)
        return no_memory(h, t, bytes);
      if (bytes)
        memcpy(copy, given, (size_t)bytes);
      given = copy;
    }
    *is_moved |= point_at(h, t->buffer, given);
  }
  return NET_OK;
}

/* Whether an array of the caller may be written while kernels run: it shares no memory with another one. */
static int is_apart(const net_handle *h, int32_t number, int64_t bytes) {
  const void *one = h->wanted[number];
  for (int32_t i = 0; i < net_plan.input_count; i++)
    if (overlap(one, bytes, h->given[i], net_tensor_bytes(h, &net_plan.inputs[i])))
      return 0;
  for (int32_t i = 0; i < net_plan.output_count; i++)
    if (i != number && h->wanted[i] && overlap(one, bytes, h->wanted[i], net_tensor_bytes(h, &net_plan.outputs[i])))
      return 0;
  return 1;
}

/* Whether kernels write an output where it is given: it is the first one of a buffer for it alone. */
static int is_written_by_kernels(int32_t number) {
  const tensor *t = &net_plan.outputs[number];
  const buffer *b = &net_plan.buffers[t->buffer];
  if (b->kind != OUTPUT || b->root != t->buffer)
    return 0;
  for (int32_t i = 0; i < number; i++)
    if (net_plan.outputs[i].buffer == t->buffer)
      return 0;
  return 1;
}

/* Memory of the handle for output buffers that are no output themselves: views of them are. */
static net_status place_loose(net_handle *h, int *is_moved) {
  for (int32_t i = 0; i < net_plan.output_count; i++) {
    int32_t root = net_plan.buffers[net_plan.outputs[i].buffer].root;
    int is_bound = 0;
    for (int32_t k = 0; k < net_plan.output_count; k++)
      is_bound |= net_plan.outputs[k].buffer == root;
    if (net_plan.buffers[root].kind != OUTPUT || is_bound)
      continue;
    int is_first = 1;
    for (int32_t k = 0; k < i; k++)
      is_first &= net_plan.buffers[net_plan.outputs[k].buffer].root != root;
    if (!is_first)
      continue;
    unsigned char *memory = own(h, net_plan.input_count + net_plan.output_count + i, h->sizes[root]);
    if (!memory)
      return no_memory(h, &net_plan.outputs[i], h->sizes[root]);
    *is_moved |= point_at(h, root, memory);
  }
  return NET_OK;
}

static net_status place_outputs(net_handle *h, int *is_moved) {
  void *const *outputs = h->wanted;
  for (int32_t i = 0; i < net_plan.output_count; i++) {
    const tensor *t = &net_plan.outputs[i];
    int64_t bytes = net_tensor_bytes(h, t);
    int is_direct = is_written_by_kernels(i);
    uintptr_t align = (uintptr_t)net_plan.buffers[t->buffer].align;
    if (outputs[i] && is_direct && (uintptr_t)outputs[i] % align == 0 && is_apart(h, i, bytes)) {
      *is_moved |= point_at(h, t->buffer, outputs[i]);
      continue;
    }
    if (!is_direct && outputs[i])
      continue;
    unsigned char *memory = own(h, net_plan.input_count + i, bytes);
    if (!memory)
      return no_memory(h, t, bytes);
    if (is_direct)
      *is_moved |= point_at(h, t->buffer, memory);
  }
  return place_loose(h, is_moved);
}

net_status net_place_arrays(net_handle *h) {
  int is_moved = 0;
  net_status status = place_inputs(h, &is_moved);
  if (status == NET_OK)
    status = place_outputs(h, &is_moved);
  if (status == NET_OK && is_moved)
    net_fill_table(h);
  return status;
}

/* Copies outputs that kernels have not written where they belong. */
net_status net_fetch(net_handle *h) {
  for (int32_t i = 0; i < net_plan.output_count; i++) {
    const tensor *t = &net_plan.outputs[i];
    const unsigned char *from = h->bases[net_plan.buffers[t->buffer].root] + h->starts[t->buffer];
    void *to = h->wanted[i] ? h->wanted[i] : h->target.own[net_plan.input_count + i];
    if (to != from)
      memmove(to, from, (size_t)net_tensor_bytes(h, t));
    h->found[i] = to;
  }
  return NET_OK;
}
