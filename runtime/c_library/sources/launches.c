/* The arguments of all launches as numbers, and the proof that no launch leaves its buffers. */
#include "handle.h"

#include <stdio.h>

/* Whether it writes to buffers, and all of them have no bytes. */
static int is_idle(const net_handle *h, const launch *l) {
  for (int32_t k = 0; k < l->written; k++)
    if (h->sizes[net_plan.written[l->first_written + k]])
      return 0;
  return l->written > 0;
}

static int bind_pointer(net_handle *h, const argument *one, int idle, int64_t *place) {
  int64_t held = h->sizes[one->a], offset = held ? h->numbers[one->b] : 0, bytes = h->numbers[one->c];
  *place = 0;
  if (idle)
    return 1;
  if (offset < 0 || bytes < 0 || offset > NET_MAX_BYTES || bytes > NET_MAX_BYTES || offset + bytes > held)
    return 0;
  *place = h->starts[one->a] + offset;
  return 1;
}

static int fits(const net_handle *h, const argument *one) {
  int64_t value = h->numbers[one->a];
  if (one->kind == NARROW)
    return value >= INT32_MIN && value <= INT32_MAX;
  return one->kind != WHOLE || value != NET_NONE;
}

int net_is_in_buffer(const argument *one) { return one->kind == POINTER || one->kind == MAP; }

static int is_bound(net_handle *h, const argument *one, int idle, int64_t *place) {
  if (one->kind == POINTER)
    return bind_pointer(h, one, idle, place);
  return one->kind == MAP ? net_bind_map(h, one, idle, place) : fits(h, one);
}

static net_status bind_arguments(net_handle *h, const launch *l) {
  for (int32_t k = 0; k < l->arguments; k++) {
    int32_t i = l->first_argument + k;
    if (!is_bound(h, &net_plan.arguments[i], h->is_idle[l - net_plan.launches], &h->pointed[i]))
      return net_fail(h, NET_WRONG_SHAPE, "the network has no meaning for these shapes: layer %s: argument %d", l->layer,
                      (int)k);
  }
  return NET_OK;
}

/* Whether what is touched lies in the buffer that owns the bytes. */
static int is_inside(const net_handle *h, const launch *l, const extent *e) {
  int64_t low = h->numbers[e->low], high = h->numbers[e->high], guard = h->numbers[e->guard], start, end;
  if (low == NET_NONE || high == NET_NONE || guard == NET_NONE)
    return 0;
  if (high < low || guard < 0)
    return 1;
  int32_t i = l->first_argument + e->argument;
  int64_t held = h->sizes[net_plan.buffers[net_plan.arguments[i].a].root];
  if (__builtin_mul_overflow(low, (int64_t)e->width, &start) ||
      __builtin_mul_overflow(high + 1, (int64_t)e->width, &end) ||
      __builtin_add_overflow(start, h->pointed[i], &start) || __builtin_add_overflow(end, h->pointed[i], &end))
    return 0;
  return start >= 0 && end <= held;
}

static int keeps(const net_handle *h, const launch *l, const contract *c) {
  for (int32_t k = 0; k < c->naturals; k++)
    if (h->numbers[net_plan.naturals[c->first_natural + k]] < 0)
      return 0;
  for (int32_t k = 0; k < c->extents; k++)
    if (!is_inside(h, l, &net_plan.extents[c->first_extent + k]))
      return 0;
  return 1;
}

static int is_within_buffers(const net_handle *h, const launch *l) {
  for (int32_t k = 0; k < l->contracts && !l->is_proved; k++)
    if (keeps(h, l, &net_plan.contracts[l->first_contract + k]))
      return 1;
  return l->is_proved;
}

net_status net_bind_launches(net_handle *h) {
  for (int32_t i = 0; i < net_plan.launch_count; i++) {
    const launch *l = &net_plan.launches[i];
    h->has_fault[i] = 0;
    h->is_idle[i] = (uint8_t)is_idle(h, l);
    if (h->is_never_run[i])
      continue;
    net_status status = net_bind_grid(h, i);
    if (status == NET_OK)
      status = bind_arguments(h, l);
    if (status != NET_OK)
      return status;
    if (h->is_idle[i] && !net_runs_idle())
      continue;
    h->has_fault[i] = (uint8_t)!is_within_buffers(h, l);
    if (h->has_fault[i] && l->is_certain)
      return net_fail(h, NET_WRONG_SHAPE,
                      "the network has no meaning for these shapes: the kernel of layer %s would leave its buffers",
                      l->layer);
  }
  return NET_OK;
}
