/* What the shapes of the inputs determine: numbers, buffers, tensors, borders, launches, memory, and the table. */
#include "handle.h"

#include <inttypes.h>
#include <string.h>

static net_status meaningless(net_handle *h, const char *what, int32_t number) {
  return net_fail(h, NET_WRONG_SHAPE, "the network has no meaning for these shapes: %s %d; give others", what,
                  (int)number);
}

static int is_natural(int64_t value) { return value >= 0 && value <= NET_MAX_BYTES; }

static void set_numbers(net_handle *h) {
  for (int32_t i = 0; i < net_plan.symbol_count; i++) {
    const symbol *one = &net_plan.symbols[i];
    h->numbers[one->number] = h->lengths[h->first_dim[one->input] + one->axis];
  }
  for (int32_t i = 0; i < net_plan.size_count; i++)
    h->numbers[net_plan.size_numbers[i]] = h->size_values[i];
  net_evaluate(h);
}

static void use(net_handle *h, int32_t b) {
  h->is_used[b] = 1;
  h->is_used[net_plan.buffers[b].root] = 1;
}

static void find_used_buffers(net_handle *h) {
  memset(h->is_used, 0, (size_t)net_plan.buffer_count);
  for (int32_t i = 0; i < net_plan.input_count; i++)
    use(h, net_plan.inputs[i].buffer);
  for (int32_t i = 0; i < net_plan.output_count; i++)
    use(h, net_plan.outputs[i].buffer);
  for (int32_t i = 0; i < net_plan.place_count; i++)
    use(h, net_plan.places[i].buffer);
  for (int32_t i = 0; i < net_plan.launch_count; i++) {
    const launch *l = &net_plan.launches[i];
    for (int32_t k = 0; k < l->arguments && !h->is_never_run[i]; k++)
      if (net_is_in_buffer(&net_plan.arguments[l->first_argument + k]))
        use(h, net_plan.arguments[l->first_argument + k].a);
  }
}

static net_status bind_sizes(net_handle *h) {
  for (int32_t i = 0; i < net_plan.buffer_count; i++) {
    int64_t size = h->numbers[net_plan.buffers[i].size];
    if (!is_natural(size) && h->is_used[i])
      return meaningless(h, "the size of buffer", i);
    h->sizes[i] = is_natural(size) ? size : 0;
  }
  return NET_OK;
}

static net_status bind_starts(net_handle *h) {
  const buffer *buffers = net_plan.buffers;
  for (int32_t i = 0; i < net_plan.buffer_count; i++) {
    h->starts[i] = 0;
    if (!h->is_used[i] || h->sizes[i] == 0)
      continue;
    int64_t start = 0;
    for (int32_t at = i; buffers[at].view_of >= 0; at = buffers[at].view_of) {
      int64_t offset = h->numbers[buffers[at].offset];
      if (!is_natural(offset))
        return meaningless(h, "the place of buffer", at);
      start += offset;
    }
    if (start + h->sizes[i] > h->sizes[buffers[i].root])
      return meaningless(h, "the end of buffer", i);
    h->starts[i] = start;
  }
  return NET_OK;
}

int64_t net_tensor_bytes(const net_handle *h, const tensor *t) {
  int64_t bytes = t->known.element_bytes;
  for (int32_t axis = 0; axis < t->known.rank; axis++) {
    int64_t length = h->numbers[t->dims[axis]];
    if (!is_natural(length) || __builtin_mul_overflow(bytes, length, &bytes) || bytes > NET_MAX_BYTES)
      return NET_NONE;
  }
  return bytes;
}

/* The buffer of a caller's array is exactly its tensor; another, which is copied, may be larger. */
static net_status check_dense(net_handle *h, const tensor *t, int32_t number) {
  const buffer *b = &net_plan.buffers[t->buffer];
  int is_own = b->root == t->buffer && (b->kind == INPUT || b->kind == OUTPUT);
  int64_t bytes = net_tensor_bytes(h, t), held = h->sizes[t->buffer];
  if (bytes == NET_NONE || (is_own ? held != bytes : held < bytes))
    return meaningless(h, "the shape of tensor", number);
  return NET_OK;
}

static net_status bind_tensors(net_handle *h) {
  net_status status = NET_OK;
  for (int32_t i = 0; status == NET_OK && i < net_plan.input_count; i++)
    status = check_dense(h, &net_plan.inputs[i], i);
  for (int32_t i = 0; status == NET_OK && i < net_plan.output_count; i++)
    status = check_dense(h, &net_plan.outputs[i], i);
  return status;
}

static net_status bind_borders(net_handle *h) {
  for (int32_t i = 0; i < net_plan.border_count; i++) {
    const border *one = &net_plan.borders[i];
    int64_t *n = h->borders + 5 * i, held = h->sizes[one->buffer], bytes = 0;
    memset(n, 0, 5 * sizeof *n);
    if (held == 0)
      continue;
    for (int k = 0; k < 5; k++) {
      n[k] = h->numbers[one->numbers[k]];
      if (!is_natural(n[k]))
        return meaningless(h, "the border of buffer", one->buffer);
    }
    if (__builtin_mul_overflow(n[0], n[1] + 2 * n[3], &bytes) || __builtin_mul_overflow(bytes, n[2], &bytes) ||
        bytes != held || 2 * n[4] > n[2] || n[4] > (n[1] + n[3]) * n[2])
      return meaningless(h, "the border of buffer", one->buffer);
  }
  return NET_OK;
}

static net_status bind_places(net_handle *h) {
  for (int32_t i = 0; i < net_plan.place_count; i++) {
    const place *one = &net_plan.places[i];
    int64_t offset = h->numbers[one->offset];
    if (!is_natural(offset) || offset + one->bytes > h->sizes[one->buffer])
      return meaningless(h, "a condition in buffer", one->buffer);
  }
  return NET_OK;
}

net_status net_bind(net_handle *h) {
  h->is_bound = 0;
  set_numbers(h);
  net_status status = net_check_shapes(h);
  if (status != NET_OK)
    return status;
  net_find_never_run(h);
  find_used_buffers(h);
  net_status (*const steps[])(net_handle *) = {bind_sizes,  bind_starts,       bind_tensors, bind_borders,
                                        bind_places, net_bind_launches, net_place};
  for (size_t i = 0; i < sizeof steps / sizeof *steps && status == NET_OK; i++)
    status = steps[i](h);
  if (status == NET_OK) {
    net_fill_arguments(h);
    h->is_bound = 1;
  }
  return status;
}
