/* The handle's part for processors: threads, and memory of the host for the arena and for states. */
#include "handle.h"

#include <string.h>

/* Into how many parts the main object cuts a launch at most. */
static int64_t most_parts(int32_t threads) { return threads == 1 ? 1 : threads <= 16 ? 2 * threads : threads; }

static int allocate(net_target *t) {
  size_t rows = 2 * (size_t)net_plan.step_count + 1, tensors = (size_t)(net_plan.input_count + 2 * net_plan.output_count);
  size_t words = (size_t)net_plan.parameter_count + 1 + 2 * rows;
  return (t->parameters = net_aligned(words * sizeof *t->parameters)) &&
         (t->table = net_aligned(3 * rows * sizeof *t->table)) && (t->rows = net_zeros(rows, sizeof *t->rows)) &&
         (t->own = net_zeros(tensors, sizeof *t->own)) && (t->own_held = net_zeros(tensors, sizeof *t->own_held));
}

net_status net_open(net_handle *h, int threads) {
  net_target *t = &h->target;
  if (threads < 0)
    return net_fail(h, NET_INVALID_ARGUMENT, "net_create needs 0 or more threads");
  net_status status = net_check_processor(h->error, sizeof h->error);
  if (status != NET_OK)
    return status;
  int is_made = allocate(t);
  if (is_made) {
    t->threads = net_thread_count(threads);
    t->pool = t->threads > 1 ? net_start_pool(&t->threads) : NULL;
    is_made = t->threads == 1 || t->pool;
  }
  if (!is_made)
    return net_fail(h, NET_OUT_OF_MEMORY, "there is no memory for a handle");
  for (int32_t i = 0; i < net_plan.buffer_count; i++)
    if (net_plan.buffers[i].kind == WEIGHT && net_plan.buffers[i].view_of < 0)
      h->bases[i] = (unsigned char *)(uintptr_t)(net_weights + net_plan.buffers[i].weight);
  if (net_plan.parts >= 0)
    h->numbers[net_plan.parts] = most_parts(t->threads);
  return NET_OK;
}

void net_close(net_handle *h) {
  net_target *t = &h->target;
  net_stop_pool(t->pool);
  for (int32_t i = 0; t->own && i < net_plan.input_count + 2 * net_plan.output_count; i++)
    net_free(t->own[i]);
  for (int32_t k = 0; h->states && k < net_plan.state_count; k++) {
    net_free(h->states[k].now);
    net_free(h->states[k].next);
  }
  void *memory[] = {t->parameters, t->table, t->rows, t->own, t->own_held, h->arena};
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
    net_free(memory[i]);
}

net_status net_enter(net_handle *h) {
  (void)h;
  return NET_OK;
}

void net_leave(net_handle *h) { (void)h; }

net_status net_begin_run(net_handle *h) {
  (void)h;
  return NET_OK;
}

void net_settle(net_handle *h) { (void)h; }

net_status net_bind_grid(net_handle *h, int32_t number) {
  (void)h, (void)number;
  return NET_OK;
}

/* No kernel of a processor takes one. */
int net_bind_map(net_handle *h, const argument *one, int idle, int64_t *place) {
  (void)h, (void)one, (void)idle, (void)place;
  return 0;
}

/* A kernel finds by its numbers that there is nothing to do. */
int net_runs_idle(void) { return 1; }

net_status net_place_side_by_side(net_handle *h) {
  (void)h;
  return NET_OK;
}

void net_fill_arguments(net_handle *h) { net_fill_table(h); }

net_status net_hold(net_handle *h, unsigned char **memory, int64_t *held, int64_t bytes, const tensor *t) {
  if (*memory && *held >= bytes)
    return NET_OK;
  net_free(*memory);
  *memory = net_aligned((size_t)bytes);
  *held = *memory ? bytes : 0;
  return *memory ? NET_OK
                 : net_fail(h, NET_OUT_OF_MEMORY, "there is no memory for the %lld bytes of '%s'", (long long)bytes,
                            t->known.name);
}

net_status net_write_state(net_handle *h, unsigned char *memory, int64_t begins, int64_t bytes) {
  (void)h;
  if (begins >= 0)
    memcpy(memory, net_weights + begins, (size_t)bytes);
  else
    memset(memory, 0, (size_t)bytes);
  return NET_OK;
}

/* Room for the arena; what it held before is not kept. */
net_status net_hold_arena(net_handle *h) {
  if (h->arena_bytes > h->arena_held) {
    net_free(h->arena);
    h->arena_held = 0;
    h->arena = net_aligned((size_t)h->arena_bytes);
    if (!h->arena)
      return net_fail(h, NET_OUT_OF_MEMORY, "there is no memory for %lld bytes of the network's buffers",
                      (long long)h->arena_bytes);
    h->arena_held = h->arena_bytes;
  }
  for (int32_t i = 0; i < net_plan.buffer_count; i++) {
    const buffer *b = &net_plan.buffers[i];
    if (b->kind != ARENA || b->view_of >= 0)
      continue;
    h->bases[i] = h->sizes[i] ? h->arena + h->offsets[i] : h->arena;
    if (b->halo >= 0 && !h->is_rewritten[i] && h->sizes[i])
      memset(h->bases[i], b->fill, (size_t)h->sizes[i]);
  }
  return NET_OK;
}
