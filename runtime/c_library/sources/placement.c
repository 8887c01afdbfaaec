/* Where buffers lie in the arena: those that are alive together do not overlap. */
#include "handle.h"

#include <stdlib.h>
#include <string.h>

#define UNIT 256
/* Borders are written in each run where the arena is larger than this, and a twentieth of it is saved. */
#define LEAST_SHARED (UNIT * 1024)

typedef struct {
  int64_t offset, bytes;
  int32_t buffer, first, last;
} placed;

/* Buffers to be placed, and those that are, by offset. */
typedef struct {
  placed *waiting, *done;
  int32_t count;
} workspace;

static int64_t aligned(int64_t bytes) { return (bytes + UNIT - 1) / UNIT * UNIT; }

static int by_time(const void *a, const void *b) {
  const placed *one = a, *other = b;
  return one->first != other->first ? (one->first > other->first) - (one->first < other->first)
                                    : (one->buffer > other->buffer) - (one->buffer < other->buffer);
}

static int by_size(const void *a, const void *b) {
  const placed *one = a, *other = b;
  return one->bytes != other->bytes ? (one->bytes < other->bytes) - (one->bytes > other->bytes) : by_time(a, b);
}

/* The owners of memory in the arena of one class of halos, or those of no class. `shares`: borders that launches can
 * write count as none. */
static int32_t gather(const net_handle *h, int32_t class, int shares, placed *found) {
  int32_t count = 0;
  for (int32_t i = 0; i < net_plan.buffer_count; i++) {
    const buffer *b = &net_plan.buffers[i];
    int32_t own = shares && b->rewritten ? -1 : b->halo;
    if (b->kind == ARENA && b->view_of < 0 && h->sizes[i] > 0 && own == class)
      found[count++] = (placed){0, aligned(h->sizes[i]), i, b->first, b->last};
  }
  return count;
}

/* The fewest slots for the buffers of a class, which nothing else uses; returns where they end. */
static int64_t place_class(workspace *w, int32_t count, int64_t base, int64_t *offsets) {
  int32_t slots = 0;
  qsort(w->waiting, (size_t)count, sizeof *w->waiting, by_time);
  for (int32_t i = 0; i < count; i++) {
    const placed *one = &w->waiting[i];
    int32_t k = 0;
    while (k < slots && (w->done[k].last >= one->first || w->done[k].bytes != one->bytes))
      k++;
    if (k == slots) {
      w->done[slots++] = (placed){base, one->bytes, one->buffer, one->first, one->last};
      base += one->bytes;
    }
    w->done[k].last = one->last;
    offsets[one->buffer] = w->done[k].offset;
  }
  return base;
}

/* The smallest gap between those that it meets. */
static int64_t best_gap(const workspace *w, const placed *one, int64_t base) {
  int64_t best = -1, best_bytes = 0, cursor = base;
  for (int32_t k = 0; k < w->count; k++) {
    const placed *other = &w->done[k];
    if (other->first > one->last || other->last < one->first)
      continue;
    int64_t gap = other->offset - cursor;
    if (gap >= one->bytes && (best < 0 || gap < best_bytes)) {
      best = cursor;
      best_bytes = gap;
    }
    if (other->offset + other->bytes > cursor)
      cursor = other->offset + other->bytes;
  }
  return best >= 0 ? best : cursor;
}

/* The largest first, each into the smallest gap that fits; returns where the last one ends. */
static int64_t place_in_gaps(workspace *w, int32_t count, int64_t base, int64_t *offsets) {
  int64_t end = base;
  w->count = 0;
  qsort(w->waiting, (size_t)count, sizeof *w->waiting, by_size);
  for (int32_t i = 0; i < count; i++) {
    placed one = w->waiting[i];
    one.offset = best_gap(w, &one, base);
    int32_t at = w->count++;
    for (; at > 0 && w->done[at - 1].offset > one.offset; at--)
      w->done[at] = w->done[at - 1];
    w->done[at] = one;
    offsets[one.buffer] = one.offset;
    if (one.offset + one.bytes > end)
      end = one.offset + one.bytes;
  }
  return end;
}

static int64_t place_all(const net_handle *h, workspace *w, int shares, int64_t *offsets) {
  int64_t base = 0;
  for (int32_t class = 0; class < net_plan.class_count; class++)
    base = place_class(w, gather(h, class, shares, w->waiting), base, offsets);
  return place_in_gaps(w, gather(h, -1, shares, w->waiting), base, offsets);
}

/* Which borders other buffers write over: those of another class, or at another place. */
static void find_rewritten(net_handle *h) {
  const buffer *buffers = net_plan.buffers;
  for (int32_t i = 0; i < net_plan.buffer_count; i++) {
    const buffer *b = &buffers[i];
    h->is_rewritten[i] = 0;
    if (!b->rewritten || b->view_of >= 0 || !h->sizes[i])
      continue;
    for (int32_t k = 0; k < net_plan.buffer_count && !h->is_rewritten[i]; k++) {
      int is_other = buffers[k].kind == ARENA && buffers[k].view_of < 0 && h->sizes[k] &&
                     (buffers[k].halo != b->halo || h->offsets[k] != h->offsets[i]);
      h->is_rewritten[i] = is_other && h->offsets[k] < h->offsets[i] + h->sizes[i] &&
                           h->offsets[i] < h->offsets[k] + h->sizes[k];
    }
  }
}

static int can_share(void) {
  for (int32_t i = 0; i < net_plan.buffer_count; i++)
    if (net_plan.buffers[i].rewritten)
      return 1;
  return 0;
}

net_status net_place(net_handle *h) {
  size_t count = (size_t)net_plan.buffer_count + 1;
  placed *memory = malloc(2 * count * sizeof *memory);
  int64_t *shared = calloc(count, sizeof *shared);
  if (!memory || !shared) {
    free(memory);
    free(shared);
    return net_fail(h, NET_OUT_OF_MEMORY, "there is no memory to place the network's buffers");
  }
  workspace w = {memory, memory + count, 0};
  memset(h->offsets, 0, (count - 1) * sizeof *h->offsets);
  memset(h->is_rewritten, 0, count - 1);
  h->arena_bytes = place_all(h, &w, 0, h->offsets);
  if (h->arena_bytes > LEAST_SHARED && can_share()) {
    int64_t bytes = place_all(h, &w, 1, shared);
    if (bytes < h->arena_bytes - h->arena_bytes / 20) {
      memcpy(h->offsets, shared, (count - 1) * sizeof *shared);
      h->arena_bytes = bytes;
      find_rewritten(h);
    }
  }
  free(memory);
  free(shared);
  net_status status = net_place_side_by_side(h);
  return status == NET_OK ? net_hold_arena(h) : status;
}
