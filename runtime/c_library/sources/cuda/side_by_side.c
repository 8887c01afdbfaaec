/* Places buffers so that no launch waits for another one only because it takes over that one's memory: two share memory if
 * all launches that touch the one come before all that touch the other by the data alone. */
#include "handle.h"

#include <stdlib.h>
#include <string.h>

/* What launches that run side by side may take between them, unless buffers that live apart take more; and the buffers
 * up to which each two are asked whether they are alive together. */
#define SIDE_BY_SIDE_BYTES ((int64_t)64 << 20)
#define SIDE_BY_SIDE_BUFFERS 1000

typedef struct {
  int64_t offset, bytes;
  int32_t buffer, first; /* the launch that touches it first, or -1 */
} apart;

typedef struct {
  int32_t words;
  uint64_t *users, *over; /* of each buffer: who touches it, and who is over before anyone does */
} lives;

static int64_t aligned(int64_t bytes) { return (bytes + NET_ALIGNMENT - 1) / NET_ALIGNMENT * NET_ALIGNMENT; }

static int is_owner(const net_handle *h, int32_t i) {
  return net_plan.buffers[i].kind == ARENA && net_plan.buffers[i].view_of < 0 && h->sizes[i] > 0;
}

static int is_needed_after(const lives *l, int32_t one, int32_t other) {
  for (int32_t w = 0; w < l->words; w++)
    if (l->users[(size_t)l->words * (size_t)one + (size_t)w] & ~l->over[(size_t)l->words * (size_t)other + (size_t)w])
      return 1;
  return 0;
}

static int by_size(const void *a, const void *b) {
  const apart *one = a, *other = b;
  if (one->bytes != other->bytes)
    return one->bytes < other->bytes ? 1 : -1;
  return one->first != other->first ? (one->first > other->first) - (one->first < other->first)
                                    : (one->buffer > other->buffer) - (one->buffer < other->buffer);
}

/* The smallest gap that fits between those that are alive together with it. */
static int64_t best_gap(const lives *l, const apart *done, int32_t count, const apart *one) {
  int64_t best = -1, best_bytes = 0, cursor = 0;
  for (int32_t k = 0; k < count; k++) {
    int32_t other = done[k].buffer;
    if (!is_needed_after(l, one->buffer, other) || !is_needed_after(l, other, one->buffer))
      continue;
    int64_t gap = done[k].offset - cursor;
    if (gap >= aligned(one->bytes) && (best < 0 || gap < best_bytes)) {
      best = cursor;
      best_bytes = gap;
    }
    if (done[k].offset + aligned(done[k].bytes) > cursor)
      cursor = done[k].offset + aligned(done[k].bytes);
  }
  return best >= 0 ? best : cursor;
}

static int64_t place_apart(const lives *l, apart *waiting, apart *done, int32_t count, int64_t *offsets) {
  int64_t end = 0;
  qsort(waiting, (size_t)count, sizeof *waiting, by_size);
  for (int32_t i = 0; i < count; i++) {
    apart one = waiting[i];
    int32_t at = i;
    one.offset = best_gap(l, done, i, &one);
    for (; at > 0 && (done[at - 1].offset > one.offset ||
                      (done[at - 1].offset == one.offset && done[at - 1].buffer > one.buffer));
         at--)
      done[at] = done[at - 1];
    done[at] = one;
    offsets[one.buffer] = one.offset;
    if (one.offset + aligned(one.bytes) > end)
      end = one.offset + aligned(one.bytes);
  }
  return end;
}

static void find_lives(const net_handle *h, const order *o, lives *l, int32_t *first) {
  for (int32_t b = 0; b < net_plan.buffer_count; b++)
    first[b] = -1;
  memset(l->over, 0xff, (size_t)net_plan.buffer_count * (size_t)l->words * sizeof *l->over);
  for (int32_t i = 0; i < o->count; i++) {
    const launch *one = &net_plan.launches[i];
    for (int32_t k = one->first_argument; k < one->first_argument + one->arguments; k++) {
      if (!net_is_in_buffer(&net_plan.arguments[k]))
        continue;
      int32_t root = net_plan.buffers[net_plan.arguments[k].a].root;
      uint64_t *users = l->users + (size_t)l->words * (size_t)root, *over = l->over + (size_t)l->words * (size_t)root;
      users[i / 64] |= (uint64_t)1 << (i % 64);
      for (int32_t w = 0; w < l->words; w++)
        over[w] &= w < o->words ? o->before[(size_t)o->words * (size_t)i + (size_t)w] : 0;
      first[root] = first[root] < 0 ? i : first[root];
    }
  }
  for (int32_t i = 0; i < net_plan.output_count; i++) { /* read when all is over */
    int32_t root = net_plan.buffers[net_plan.outputs[i].buffer].root;
    l->users[(size_t)l->words * (size_t)root + (size_t)(o->count / 64)] |= (uint64_t)1 << (o->count % 64);
    first[root] = first[root] < 0 ? o->count : first[root];
  }
  (void)h;
}

/* The arena's bytes, or -1 where there is no memory. */
static int64_t place_all(const net_handle *h, const order *o, int64_t *offsets) {
  size_t buffers = (size_t)net_plan.buffer_count;
  lives l = {o->count / 64 + 1, NULL, NULL};
  apart *memory = net_zeros(2 * buffers, sizeof *memory);
  int32_t *first = net_zeros(buffers, sizeof *first), count = 0;
  int64_t end = -1;
  l.users = net_zeros(buffers * (size_t)l.words, sizeof *l.users);
  l.over = net_zeros(buffers * (size_t)l.words, sizeof *l.over);
  if (memory && first && l.users && l.over) {
    find_lives(h, o, &l, first);
    for (int32_t i = 0; i < net_plan.buffer_count; i++)
      if (is_owner(h, i))
        memory[count++] = (apart){0, h->sizes[i], i, first[i]};
    end = place_apart(&l, memory, memory + buffers, count, offsets);
  }
  net_free(memory);
  net_free(first);
  net_free(l.users);
  net_free(l.over);
  return end;
}

/* Each buffer for itself, one behind the other. */
static int64_t place_in_row(const net_handle *h, int64_t *offsets) {
  int64_t end = 0;
  for (int32_t i = 0; i < net_plan.buffer_count; i++)
    if (is_owner(h, i)) {
      offsets[i] = end;
      end += aligned(h->sizes[i]);
    }
  return end;
}

static int64_t place_by_data(const net_handle *h, int64_t *offsets) {
  int64_t *starts = net_zeros((size_t)net_plan.buffer_count, sizeof *starts), end = 0;
  int32_t *launches = net_zeros((size_t)net_plan.launch_count, sizeof *launches);
  order o = {.count = 0};
  int is_made = starts && launches;
  for (int32_t i = 0; is_made && i < net_plan.buffer_count; i++) {
    starts[i] = end;
    end += aligned(h->sizes[i]);
  }
  for (int32_t i = 0; is_made && i < net_plan.launch_count; i++)
    launches[i] = i;
  end = -1;
  if (is_made && net_order(h, launches, net_plan.launch_count, starts, 0, &o))
    end = place_all(h, &o, offsets);
  net_free_order(&o);
  net_free(starts);
  net_free(launches);
  return end;
}

net_status net_place_side_by_side(net_handle *h) {
  int32_t owners = 0;
  if (!net_is_straight())
    return NET_OK;
  for (int32_t i = 0; i < net_plan.buffer_count; i++) {
    owners += net_plan.buffers[i].kind == ARENA && net_plan.buffers[i].view_of < 0;
    if (net_plan.buffers[i].kind == ARENA && net_plan.buffers[i].view_of < 0 && net_plan.buffers[i].halo >= 0)
      return NET_OK;
  }
  int64_t *offsets = net_zeros((size_t)net_plan.buffer_count, sizeof *offsets), end = -1;
  if (offsets)
    end = owners <= SIDE_BY_SIDE_BUFFERS ? place_by_data(h, offsets) : place_in_row(h, offsets);
  int64_t most = h->arena_bytes > SIDE_BY_SIDE_BYTES ? h->arena_bytes : SIDE_BY_SIDE_BYTES;
  if (end >= 0 && end <= most) {
    memcpy(h->offsets, offsets, (size_t)net_plan.buffer_count * sizeof *offsets);
    h->arena_bytes = end;
  }
  net_free(offsets);
  return end >= 0 ? NET_OK : net_fail(h, NET_OUT_OF_MEMORY, "there is no memory to place the network's buffers");
}
