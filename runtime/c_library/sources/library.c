/* The functions of net.h: handles, shapes, and what is wrong in words. */
#include "handle.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char creation_error[NET_ERROR_BYTES];

net_status net_fail(net_handle *h, net_status code, const char *form, ...) {
  va_list given;
  va_start(given, form);
  vsnprintf(h->error, sizeof h->error, form, given);
  va_end(given);
  return code;
}

EXPORT const char *net_error(const net_handle *handle) { return handle ? handle->error : creation_error; }

EXPORT int net_input_count(void) { return net_plan.shown_input_count; }

EXPORT int net_output_count(void) { return net_plan.shown_output_count; }

EXPORT const net_tensor *net_input(int number) {
  return number >= 0 && number < net_plan.shown_input_count ? &net_plan.inputs[net_plan.shown_inputs[number]].known : NULL;
}

EXPORT const net_tensor *net_output(int number) {
  int is_one = number >= 0 && number < net_plan.shown_output_count;
  return is_one ? &net_plan.outputs[net_plan.shown_outputs[number]].known : NULL;
}

static int allocate(net_handle *h) {
  size_t buffers = (size_t)net_plan.buffer_count, launches = (size_t)net_plan.launch_count, arguments = 0, dims = 0;
  for (int32_t i = 0; i < net_plan.launch_count; i++)
    arguments += (size_t)net_plan.launches[i].arguments;
  for (int32_t i = 0; i < net_plan.input_count; i++)
    dims += (size_t)net_plan.inputs[i].known.rank;
  size_t output_dims = 0;
  for (int32_t i = 0; i < net_plan.output_count; i++)
    output_dims += (size_t)net_plan.outputs[i].known.rank;
  return (h->numbers = net_zeros((size_t)net_plan.number_count, sizeof *h->numbers)) &&
         (h->lengths = net_zeros(dims, sizeof *h->lengths)) &&
         (h->first_dim = net_zeros((size_t)net_plan.input_count, sizeof *h->first_dim)) &&
         (h->is_set = net_zeros((size_t)net_plan.input_count, 1)) &&
         (h->size_values = net_zeros((size_t)net_plan.size_count, sizeof *h->size_values)) &&
         (h->bound_sizes = net_zeros((size_t)net_plan.size_count, sizeof *h->bound_sizes)) &&
         (h->sizes = net_zeros(buffers, sizeof *h->sizes)) && (h->starts = net_zeros(buffers, sizeof *h->starts)) &&
         (h->offsets = net_zeros(buffers, sizeof *h->offsets)) && (h->is_rewritten = net_zeros(buffers, 1)) &&
         (h->is_used = net_zeros(buffers, 1)) && (h->bases = net_zeros(buffers, sizeof *h->bases)) &&
         (h->is_never_run = net_zeros(launches, 1)) && (h->is_idle = net_zeros(launches, 1)) &&
         (h->has_fault = net_zeros(launches, 1)) && (h->pointed = net_zeros(arguments, sizeof *h->pointed)) &&
         (h->borders = net_zeros(5 * (size_t)net_plan.border_count, sizeof *h->borders)) &&
         (h->found = net_zeros((size_t)net_plan.output_count, sizeof *h->found)) &&
         (h->given = net_zeros((size_t)net_plan.input_count, sizeof *h->given)) &&
         (h->wanted = net_zeros((size_t)net_plan.output_count, sizeof *h->wanted)) &&
         (h->states = net_zeros((size_t)net_plan.state_count, sizeof *h->states)) &&
         (h->last_lengths = net_zeros(output_dims, sizeof *h->last_lengths));
}

/* What is the same for all shapes: weights, and the shapes of inputs that have one. */
static void begin(net_handle *h) {
  memcpy(h->numbers, net_plan.initial_numbers, (size_t)net_plan.number_count * sizeof *h->numbers);
  int32_t dims = 0;
  for (int32_t i = 0; i < net_plan.input_count; i++) {
    const net_tensor *t = &net_plan.inputs[i].known;
    h->first_dim[i] = dims;
    h->is_set[i] = 1;
    for (int32_t axis = 0; axis < t->rank; axis++) {
      h->lengths[dims++] = t->shape[axis];
      h->is_set[i] &= t->shape[axis] >= 0;
    }
  }
  for (int32_t i = 0; i < net_plan.size_count; i++)
    h->size_values[i] = 1;
}

EXPORT net_status net_create(net_handle **handle, int which) {
  creation_error[0] = 0;
  if (!handle) {
    snprintf(creation_error, sizeof creation_error, "net_create needs a place for the handle");
    return NET_INVALID_ARGUMENT;
  }
  *handle = NULL;
  net_status status = NET_OUT_OF_MEMORY;
  net_handle *h = net_zeros(1, sizeof *h);
  snprintf(creation_error, sizeof creation_error, "there is no memory for a handle");
  if (h && allocate(h)) {
    begin(h);
    status = net_open(h, which);
    snprintf(creation_error, sizeof creation_error, "%s", h->error);
  }
  if (status != NET_OK) {
    net_destroy(h);
    return status;
  }
  *handle = h;
  return NET_OK;
}

EXPORT void net_destroy(net_handle *h) {
  if (!h)
    return;
  net_close(h);
  void *memory[] = {h->numbers,  h->lengths,      h->first_dim,    h->is_set,  h->size_values, h->bound_sizes,
                    h->sizes,    h->starts,       h->offsets,      h->is_used, h->bases,       h->is_rewritten,
                    h->is_idle,  h->is_never_run, h->has_fault,    h->pointed, h->borders,     h->found,
                    h->given,    h->wanted,       h->last_lengths, h->states};
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
    net_free(memory[i]);
  net_free(h);
}

EXPORT net_status net_set_input_shape(net_handle *h, int number, const int64_t *shape, int rank) {
  if (!h)
    return NET_INVALID_ARGUMENT;
  if (number < 0 || number >= net_plan.shown_input_count || (!shape && rank))
    return net_fail(h, NET_INVALID_ARGUMENT, "there is no input %d of %d, or no shape", number,
                    (int)net_plan.shown_input_count);
  number = net_plan.shown_inputs[number];
  const net_tensor *t = &net_plan.inputs[number].known;
  if (rank != t->rank)
    return net_wrong_rank(h, number, rank);
  int64_t *lengths = h->lengths + h->first_dim[number];
  for (int axis = 0; axis < rank; axis++) {
    if (shape[axis] < 0 || shape[axis] > NET_MAX_BYTES)
      return net_fail(h, NET_INVALID_ARGUMENT, "input '%s': dimension %d is %" PRId64, t->name, axis, shape[axis]);
    if (lengths[axis] != shape[axis])
      h->is_bound = h->has_run = 0;
    lengths[axis] = shape[axis];
  }
  h->is_set[number] = 0;
  for (int axis = 0; axis < rank; axis++)
    if (t->shape[axis] >= 0 && t->shape[axis] != shape[axis])
      return net_wrong_length(h, number, axis, t->shape[axis], shape[axis]);
  h->is_set[number] = 1;
  return NET_OK;
}
