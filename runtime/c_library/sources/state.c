/* State: outputs that are inputs of the next run, and stay in the handle between. */
#include "handle.h"

static void set_lengths(net_handle *h, int32_t input, const tensor *from) {
  int64_t *lengths = h->lengths + h->first_dim[input];
  for (int32_t axis = 0; axis < from->known.rank; axis++) {
    int64_t length = h->numbers[from->dims[axis]];
    if (lengths[axis] != length)
      h->is_bound = 0;
    lengths[axis] = length;
  }
}

/* The lengths that the inputs of the caller tell; those that none of them tells are 0: nothing has been seen yet. */
static void find_first_lengths(net_handle *h) {
  for (int32_t i = 0; i < net_plan.symbol_count; i++)
    h->numbers[net_plan.symbols[i].number] = 0;
  for (int32_t i = 0; i < net_plan.symbol_count; i++)
    for (int32_t k = 0; k < net_plan.shown_input_count; k++) {
      int32_t input = net_plan.shown_inputs[k];
      const tensor *t = &net_plan.inputs[input];
      for (int32_t axis = 0; axis < t->known.rank; axis++)
        if (t->dims[axis] == net_plan.symbols[i].number)
          h->numbers[t->dims[axis]] = h->lengths[h->first_dim[input] + axis];
    }
  net_evaluate(h);
}

/* What the first run begins with: zeros, unless the plan has something else. */
static net_status begin(net_handle *h, const state_pair *pair, kept_state *kept) {
  const tensor *t = &net_plan.inputs[pair->input];
  int64_t bytes = net_tensor_bytes(h, t);
  if (bytes == NET_NONE)
    return net_fail(h, NET_WRONG_SHAPE, "the state '%s' has no shape for those of the inputs", t->known.name);
  set_lengths(h, pair->input, t);
  net_status status = net_hold(h, &kept->now, &kept->now_held, bytes, t);
  return status == NET_OK ? net_write_state(h, kept->now, pair->begins, bytes) : status;
}

/* Before a run, or a question about its shapes: states that have no value yet get their first one. */
net_status net_begin_states(net_handle *h) {
  net_status status = NET_OK;
  if (net_plan.state_count == 0 || h->states[0].has_begun)
    return NET_OK;
  find_first_lengths(h);
  h->is_bound = 0;
  for (int32_t k = 0; k < net_plan.state_count && status == NET_OK; k++)
    status = begin(h, &net_plan.states[k], &h->states[k]);
  return status;
}

/* Lets a run read the states, and write the next ones into memory of their own. */
net_status net_place_states(net_handle *h) {
  net_status status = NET_OK;
  for (int32_t k = 0; k < net_plan.state_count && status == NET_OK; k++) {
    kept_state *kept = &h->states[k];
    const tensor *t = &net_plan.outputs[net_plan.states[k].output];
    status = net_hold(h, &kept->next, &kept->next_held, net_tensor_bytes(h, t), t);
    h->given[net_plan.states[k].input] = kept->now;
    h->wanted[net_plan.states[k].output] = kept->next;
  }
  return status;
}

/* The run has ended: what it made is what the next one begins with. */
void net_keep_states(net_handle *h) {
  for (int32_t k = 0; k < net_plan.state_count; k++) {
    kept_state *kept = &h->states[k], before = *kept;
    *kept = (kept_state){before.next, before.now, before.next_held, before.now_held, 1};
    set_lengths(h, net_plan.states[k].input, &net_plan.outputs[net_plan.states[k].output]);
  }
}

EXPORT void net_reset_state(net_handle *h) {
  for (int32_t k = 0; h && k < net_plan.state_count; k++)
    h->states[k].has_begun = 0;
}
