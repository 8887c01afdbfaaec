/* Which launches wait for which: those that share memory, where one of them writes it, and no others. */
#include "handle.h"

#include <string.h>

static int is_set(const uint64_t *bits, int32_t i) { return bits[i / 64] >> (i % 64) & 1; }

static void set(uint64_t *bits, int32_t i) { bits[i / 64] |= (uint64_t)1 << (i % 64); }

/* Whether one part of a buffer lies in the other one. */
static int are_nested(const access *a, const access *b) {
  for (int32_t i = 0; i < a->parts && i < b->parts; i++)
    if (a->part[i] != b->part[i])
      return 0;
  return 1;
}

static int meet(const access *a, const access *b) {
  if (a->start >= b->end || b->start >= a->end || !(a->writes || b->writes))
    return 0;
  return a->start != b->start || a->end != b->end || are_nested(a, b);
}

static int conflict(const order *o, int32_t one, int32_t other) {
  for (int32_t i = o->first[one]; i < o->first[one + 1]; i++)
    for (int32_t k = o->first[other]; k < o->first[other + 1]; k++)
      if (meet(&o->accesses[i], &o->accesses[k]))
        return 1;
  return 0;
}

/* What a launch touches in its buffers; weights are left out, as nothing writes them. */
static void add_accesses(const net_handle *h, int32_t number, const int64_t *starts, order *o, int32_t *end) {
  const launch *l = &net_plan.launches[number];
  for (int32_t i = l->first_argument; i < l->first_argument + l->arguments; i++) {
    const argument *one = &net_plan.arguments[i];
    const argument_use *use = &net_cuda_plan.uses[i];
    if (!net_is_in_buffer(one))
      continue;
    int32_t root = net_plan.buffers[one->a].root;
    if (net_plan.buffers[root].kind != WEIGHT && h->sizes[root] > 0)
      o->accesses[(*end)++] = (access){starts[root], starts[root] + h->sizes[root], use->writes, use->parts,
                                       net_cuda_plan.parts + use->first_part};
  }
}

/* Keeps launches whose blocks wait for each other so far apart that the device has room for all of their blocks: one that
 * needs more than half of it runs without another such launch. The bytes that stand for the room lie before all memory. */
static void add_seat(const net_handle *h, int32_t blocks, int *half, order *o, int32_t *end) {
  if (!blocks)
    return;
  access seat = {-2, 0, 1, 0, NULL};
  if (2 * (int64_t)blocks <= h->target.device->processors) {
    seat.start = -1 - *half;
    seat.end = -*half;
    *half = 1 - *half;
  }
  o->accesses[(*end)++] = seat;
}

static int32_t blocks_of(const net_handle *h, int32_t number) {
  if (!net_cuda_plan.kernels[net_plan.launches[number].kernel].is_cooperative)
    return 0;
  int64_t blocks = 1;
  for (int axis = 0; axis < 3; axis++)
    blocks *= h->numbers[net_cuda_plan.grids[number].size[axis]];
  return blocks > INT32_MAX / 2 ? INT32_MAX / 2 : (int32_t)blocks;
}

static void find_waits(order *o) {
  for (int32_t i = 0; i < o->count; i++) {
    uint64_t *before = o->before + (size_t)o->words * (size_t)i, *waits = o->waits + (size_t)o->words * (size_t)i;
    for (int32_t k = i - 1; k >= 0; k--)
      if (!is_set(before, k) && conflict(o, k, i)) {
        set(waits, k);
        set(before, k);
        for (int32_t w = 0; w < o->words; w++)
          before[w] |= o->before[(size_t)o->words * (size_t)k + (size_t)w];
      }
  }
}

int net_order(const net_handle *h, const int32_t *launches, int32_t count, const int64_t *starts, int seats, order *o) {
  size_t most = 0;
  int32_t end = 0;
  int half = 0;
  for (int32_t i = 0; i < count; i++)
    most += (size_t)net_plan.launches[launches[i]].arguments + 1;
  *o = (order){.count = count, .words = (count + 63) / 64};
  size_t bits = (size_t)o->words * (size_t)count;
  o->accesses = net_zeros(most, sizeof *o->accesses);
  o->first = net_zeros((size_t)count + 1, sizeof *o->first);
  o->before = net_zeros(bits, sizeof *o->before);
  o->waits = net_zeros(bits, sizeof *o->waits);
  if (!o->accesses || !o->first || !o->before || !o->waits)
    return 0;
  for (int32_t i = 0; i < count; i++) {
    o->first[i] = end;
    add_accesses(h, launches[i], starts, o, &end);
    if (seats)
      add_seat(h, blocks_of(h, launches[i]), &half, o, &end);
  }
  o->first[count] = end;
  find_waits(o);
  return 1;
}

void net_free_order(order *o) {
  net_free(o->accesses);
  net_free(o->first);
  net_free(o->before);
  net_free(o->waits);
}

/* A lane for each launch, so that few waits cross lanes: that of one that it waits for, if nobody has gone on there, else
 * an idle one, else the one that is behind most. */
void net_find_lanes(const order *o, int32_t *lanes) {
  int32_t last[NET_MAX_LANES], used = 0;
  for (int32_t i = 0; i < o->count; i++) {
    const uint64_t *waits = o->waits + (size_t)o->words * (size_t)i;
    lanes[i] = -1;
    for (int32_t k = i - 1; k >= 0 && lanes[i] < 0; k--)
      if (is_set(waits, k) && last[lanes[k]] == k)
        lanes[i] = lanes[k];
    if (lanes[i] < 0 && used < NET_MAX_LANES)
      lanes[i] = used++;
    for (int32_t k = 0; lanes[i] < 0 && k < NET_MAX_LANES; k++) {
      int is_least = 1;
      for (int32_t other = 0; other < NET_MAX_LANES; other++)
        is_least &= last[other] >= last[k];
      if (is_least)
        lanes[i] = k;
    }
    last[lanes[i]] = i;
  }
}
