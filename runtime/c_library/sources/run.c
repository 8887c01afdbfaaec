/* A run: shapes bound, arrays placed, steps run, and sizes that only a run tells; and the shapes of outputs. */
#include "handle.h"

#include <inttypes.h>
#include <string.h>

/* How often a run is made again before a size counts as one that changes while the network runs. */
#define TRIES_PER_SIZE 4

/* Whether all shapes are known: those of the caller's inputs, from which those of states follow at first. */
static net_status check_set(net_handle *h) {
  for (int32_t i = 0; i < net_plan.shown_input_count; i++)
    if (!h->is_set[net_plan.shown_inputs[i]])
      return net_fail(h, NET_WRONG_SHAPE, "input '%s': its shape is not set; see net_set_input_shape",
                      net_plan.inputs[net_plan.shown_inputs[i]].known.name);
  return net_begin_states(h);
}

static void forget_sizes(net_handle *h) {
  for (int32_t i = 0; i < net_plan.size_count; i++)
    h->size_values[i] = 1;
}

/* Binds the shapes to sizes as they are known; those behind `told`, guesses all, may be of a run that they do not fit. */
static net_status bind_guesses(net_handle *h, int32_t told) {
  if (net_plan.size_count == 0)
    return h->is_bound ? NET_OK : net_bind(h);
  net_status status = NET_OK;
  for (int attempt = 0; attempt < 3; attempt++) {
    for (int32_t i = told + 1; attempt > 0 && i < net_plan.size_count; i++)
      h->size_values[i] = attempt == 1 ? 1 : 0;
    net_refine_sizes(h, -1);
    size_t bytes = (size_t)net_plan.size_count * sizeof *h->size_values;
    if (h->is_bound && memcmp(h->bound_sizes, h->size_values, bytes) == 0)
      return NET_OK;
    memcpy(h->bound_sizes, h->size_values, bytes);
    status = net_bind(h);
    if (status != NET_WRONG_SHAPE || told + 1 >= net_plan.size_count)
      break;
  }
  return status;
}

/* Notes what the run has made. */
static void complete(net_handle *h) {
  int64_t *lengths = h->last_lengths;
  for (int32_t i = 0; i < net_plan.output_count; i++)
    for (int32_t axis = 0; axis < net_plan.outputs[i].known.rank; axis++)
      *lengths++ = h->numbers[net_plan.outputs[i].dims[axis]];
  net_keep_states(h);
  h->runs++;
  h->has_run = 1;
}

static net_status unmet(net_handle *h, const step *s) {
  if (s->kind == LENGTHS)
    return net_violation(h, &net_plan.requirements[s->a], 0);
  if (s->kind == LAUNCH)
    return net_fail(h, NET_UNMET_CONDITION,
                    "the network has no meaning for these inputs: the kernel of layer %s would leave its buffers",
                    net_plan.launches[s->a].layer);
  return net_fail(h, NET_UNMET_CONDITION, "%s", s->message);
}

/* The size that a run has told, by a word or by a formula: what it was taken for is wrong. */
static net_status learn(net_handle *h, const step *s, int64_t word) {
  int64_t value = s->b >= 0 ? word : h->numbers[s->c];
  if (value < 0)
    return net_fail(h, NET_UNMET_CONDITION, "the inputs give the size %s the value %" PRId64 "; a size is at least 0",
                    net_plan.size_names[s->a], value);
  h->size_values[s->a] = value;
  net_refine_sizes(h, s->a);
  return NET_OK;
}

static net_status run_until_stable(net_handle *h) {
  int32_t told = -1;
  for (int64_t tries = 0; tries <= (int64_t)TRIES_PER_SIZE * net_plan.size_count; tries++) {
    const step *stopped = NULL;
    int64_t word = 0;
    net_status status = bind_guesses(h, told);
    if (status == NET_OK)
      status = net_place_states(h);
    if (status == NET_OK)
      status = net_place_arrays(h);
    if (status == NET_OK)
      status = net_run_steps(h, &stopped, &word);
    if (status == NET_OK && !stopped)
      status = net_fetch(h);
    if (status != NET_OK)
      return status;
    if (!stopped) {
      complete(h);
      return NET_OK;
    }
    if (stopped->kind != SIZE_CHECK)
      return unmet(h, stopped);
    told = stopped->a;
    status = learn(h, stopped, word);
    if (status != NET_OK)
      return status;
  }
  return net_fail(h, NET_UNMET_CONDITION, "the sizes of the run do not converge: one changes while the network runs");
}

static net_status run(net_handle *h, const void *const *inputs, void *const *outputs) {
  if ((!inputs && net_plan.shown_input_count) || (!outputs && net_plan.shown_output_count))
    return net_fail(h, NET_INVALID_ARGUMENT, "net_run needs an array of pointers to inputs, and one to outputs");
  net_status status = check_set(h);
  if (status != NET_OK)
    return status;
  for (int32_t i = 0; i < net_plan.shown_output_count; i++) {
    const net_tensor *t = &net_plan.outputs[net_plan.shown_outputs[i]].known;
    if (outputs[i] && t->follows_data)
      return net_fail(h, NET_INVALID_ARGUMENT,
                      "output '%s': the run decides about its shape, so that its pointer has to be NULL; see "
                      "net_output_data",
                      t->name);
    h->wanted[net_plan.shown_outputs[i]] = outputs[i];
  }
  for (int32_t i = 0; i < net_plan.shown_input_count; i++)
    h->given[net_plan.shown_inputs[i]] = inputs[i];
  if (net_plan.counts_runs)
    h->given[net_plan.input_count - 1] = &h->runs;
  h->has_run = 0;
  status = run_until_stable(h);
  if (status != NET_OK)
    forget_sizes(h);
  return status;
}

EXPORT net_status net_run(net_handle *h, const void *const *inputs, void *const *outputs) {
  net_status status = h ? net_enter(h) : NET_INVALID_ARGUMENT;
  if (status != NET_OK)
    return status;
  status = net_begin_run(h);
  if (status == NET_OK)
    status = run(h, inputs, outputs);
  if (status != NET_OK)
    net_settle(h);
  net_leave(h);
  return status;
}

/* Binds the shapes for a question about an output. */
static net_status prepare(net_handle *h, int number) {
  if (number < 0 || number >= net_plan.shown_output_count)
    return net_fail(h, NET_INVALID_ARGUMENT, "there is no output %d of %d", number, (int)net_plan.shown_output_count);
  const net_tensor *t = &net_plan.outputs[net_plan.shown_outputs[number]].known;
  if (t->follows_data && !h->has_run)
    return net_fail(h, NET_NOT_YET, "output '%s': the run decides about its shape, which is known after it", t->name);
  if (h->is_bound || t->follows_data)
    return NET_OK;
  net_status status = net_enter(h);
  if (status != NET_OK)
    return status;
  status = check_set(h);
  if (status == NET_OK)
    status = bind_guesses(h, -1);
  if (status != NET_OK)
    forget_sizes(h);
  net_leave(h);
  return status;
}

/* The lengths of an output, by its number in the plan, in memory with room for 64. */
static void find_lengths(const net_handle *h, int32_t output, int64_t *lengths) {
  const tensor *t = &net_plan.outputs[output];
  const int64_t *last = h->last_lengths;
  for (int32_t i = 0; i < output; i++)
    last += net_plan.outputs[i].known.rank;
  for (int32_t axis = 0; axis < t->known.rank; axis++)
    lengths[axis] = t->known.follows_data ? last[axis] : h->numbers[t->dims[axis]];
}

EXPORT net_status net_output_shape(net_handle *h, int number, int64_t *shape, int *rank) {
  if (!h || !shape)
    return NET_INVALID_ARGUMENT;
  net_status status = prepare(h, number);
  if (status != NET_OK)
    return status;
  int32_t output = net_plan.shown_outputs[number];
  const tensor *t = &net_plan.outputs[output];
  int64_t lengths[NET_MAX_RANK];
  int found = 0;
  find_lengths(h, output, lengths);
  for (int32_t axis = 0; axis < t->known.rank; axis++)
    if (lengths[axis] != 1 || !t->is_squeezed)
      shape[found++] = lengths[axis];
  if (rank)
    *rank = found;
  return NET_OK;
}

EXPORT net_status net_output_bytes(net_handle *h, int number, size_t *bytes) {
  if (!h || !bytes)
    return NET_INVALID_ARGUMENT;
  net_status status = prepare(h, number);
  if (status != NET_OK)
    return status;
  const tensor *t = &net_plan.outputs[net_plan.shown_outputs[number]];
  int64_t lengths[NET_MAX_RANK];
  find_lengths(h, net_plan.shown_outputs[number], lengths);
  *bytes = (size_t)t->known.element_bytes;
  for (int32_t axis = 0; axis < t->known.rank; axis++)
    *bytes *= (size_t)lengths[axis];
  return NET_OK;
}

EXPORT const void *net_output_data(const net_handle *h, int number) {
  if (!h || !h->has_run || number < 0 || number >= net_plan.shown_output_count)
    return NULL;
  return h->found[net_plan.shown_outputs[number]];
}
