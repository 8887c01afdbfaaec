/* Runs the steps of a program: graphs, and between them decisions of the host, for which it waits for the device once each
 * and reads the byte or the word that decides. */
#include "handle.h"

#include <string.h>

static int is_gone(const net_handle *h, const step *s) {
  return s->kind == LENGTHS && !net_is_violated(h, &net_plan.requirements[s->a]);
}

/* Whether nothing in a step needs the host. */
static int is_device_only(const net_handle *h, int32_t i) {
  const step *s = &net_plan.steps[i];
  if (s->kind == LAUNCH)
    return !h->has_fault[s->a];
  if (s->kind != BRANCH && s->kind != LOOP)
    return is_gone(h, s);
  for (int32_t k = i + 1; k < s->end; k = net_plan.steps[k].end)
    if (!is_device_only(h, k))
      return 0;
  return 1;
}

static int joins(const net_handle *h, int32_t i) {
  return is_device_only(h, i) && (h->target.on_device || net_plan.steps[i].kind == LAUNCH || is_gone(h, &net_plan.steps[i]));
}

/* Where the steps end that are one graph. */
static int32_t end_of_stretch(const net_handle *h, int32_t from, int32_t to) {
  while (from < to && joins(h, from))
    from = net_plan.steps[from].end;
  return from;
}

int net_is_straight(void) {
  for (int32_t i = 0; i < net_plan.step_count; i++)
    if (net_plan.steps[i].kind != LAUNCH)
      return 0;
  return 1;
}

static net_status capture_launches(net_handle *h, int32_t from, int32_t to, void **graph) {
  int32_t *launches = net_zeros((size_t)(to - from), sizeof *launches), count = 0;
  if (!launches)
    return net_fail(h, NET_OUT_OF_MEMORY, "there is no memory for a graph");
  for (int32_t i = from; i < to; i++) {
    const step *s = &net_plan.steps[i];
    if (s->kind == LAUNCH && !h->is_idle[s->a] && !h->is_never_run[s->a])
      launches[count++] = s->a;
  }
  net_status status = count ? net_capture(h, launches, count, graph) : NET_OK;
  net_free(launches);
  return status;
}

static net_status capture_stretch(net_handle *h, int32_t from, int32_t to, void **graph) {
  int decides = 0;
  for (int32_t i = from; i < to; i = net_plan.steps[i].end)
    decides |= net_plan.steps[i].kind == BRANCH || net_plan.steps[i].kind == LOOP;
  return decides ? net_deciding_graph(h, from, to, graph) : capture_launches(h, from, to, graph);
}

static net_status capture_part(net_handle *h, kept_graphs *kept, int32_t from, int32_t to) {
  net_status status = NET_OK;
  for (int32_t i = from; i < to && status == NET_OK;) {
    const step *s = &net_plan.steps[i];
    int32_t end = end_of_stretch(h, i, to);
    if (end > i) {
      status = capture_stretch(h, i, end, &kept->graphs[i]);
      i = end;
      continue;
    }
    if (s->kind == BRANCH || s->kind == LOOP) {
      status = capture_part(h, kept, i + 1, s->middle);
      if (status == NET_OK)
        status = capture_part(h, kept, s->middle, s->end);
    }
    i = s->end;
  }
  return status;
}

static void drop(net_handle *h, kept_graphs *kept) {
  for (int32_t i = 0; i < net_plan.step_count; i++) {
    if (kept->graphs[i])
      h->target.device->cuda->cuGraphExecDestroy(kept->graphs[i]);
    kept->graphs[i] = NULL;
  }
  kept->is_made = 0;
}

void net_drop_graphs(net_handle *h) {
  for (int32_t k = 0; h->target.kept && k < NET_KEPT_GRAPHS; k++)
    if (h->target.kept[k].graphs)
      drop(h, &h->target.kept[k]);
}

/* Where the driver refuses a graph with decisions in it, the host makes them. */
static net_status capture_all(net_handle *h, kept_graphs *kept) {
  net_status status = capture_part(h, kept, 0, net_plan.step_count);
  if (status == NET_DEVICE_FAILED && h->target.on_device && !net_is_straight()) {
    net_drop_graphs(h);
    h->target.on_device = 0;
    status = capture_part(h, kept, 0, net_plan.step_count);
  }
  if (status != NET_OK)
    drop(h, kept);
  kept->is_made = status == NET_OK;
  return status;
}

/* What graphs depend on: lengths, sizes, and where all lies that is no weight. */
static void fill_key(net_handle *h) {
  int64_t *key = h->target.key, at = 0;
  for (int32_t i = 0; i < net_plan.input_count; i++)
    for (int32_t axis = 0; axis < net_plan.inputs[i].known.rank; axis++)
      key[at++] = h->lengths[h->first_dim[i] + axis];
  for (int32_t i = 0; i < net_plan.size_count; i++)
    key[at++] = h->size_values[i];
  for (int32_t i = 0; i < net_plan.buffer_count; i++)
    if (net_plan.buffers[i].kind != WEIGHT && net_plan.buffers[i].view_of < 0)
      key[at++] = (int64_t)(uintptr_t)h->bases[i];
}

/* The graphs for what is bound; NULL where they are new and `notes` says that they are to be remembered alone: graphs of
 * addresses are made when these come a second time. */
kept_graphs *net_graphs_of(net_handle *h, int notes) {
  net_target *t = &h->target;
  size_t bytes = (size_t)t->key_words * sizeof *t->key;
  kept_graphs *oldest = t->kept;
  fill_key(h);
  for (int32_t k = 0; k < NET_KEPT_GRAPHS; k++) {
    kept_graphs *one = &t->kept[k];
    if (one->last_used && memcmp(one->key, t->key, bytes) == 0) {
      one->last_used = ++t->uses;
      return one;
    }
    if (one->last_used < oldest->last_used)
      oldest = one;
  }
  drop(h, oldest);
  memcpy(oldest->key, t->key, bytes);
  oldest->last_used = ++t->uses;
  return notes ? NULL : oldest;
}

typedef struct {
  net_handle *h;
  kept_graphs *kept;
  const step *stopped;
  int64_t word;
} walk;

static net_status look(net_handle *h, int32_t place, int64_t *word) {
  net_target *t = &h->target;
  const net_driver *cuda = t->device->cuda;
  unsigned char *at = t->staging + t->staged;
  size_t bytes = (size_t)net_plan.places[place].bytes;
  int status = cuda->cuMemcpyDtoHAsync_v2(at, net_place_address(h, place), bytes, t->stream);
  if (status == CUDA_SUCCESS)
    status = cuda->cuStreamSynchronize(t->stream);
  *word = 0;
  memcpy(word, at, bytes);
  return status == CUDA_SUCCESS ? NET_OK : net_device_fail(h, "cuMemcpyDtoH of a condition", status);
}

static net_status run_part(walk *w, int32_t from, int32_t to);

static net_status run_loop(walk *w, int32_t i) {
  const step *s = &net_plan.steps[i];
  for (;;) {
    int64_t holds = 0;
    net_status status = run_part(w, i + 1, s->middle);
    if (status == NET_OK && !w->stopped)
      status = look(w->h, s->a, &holds);
    if (status == NET_OK && holds)
      status = run_part(w, s->middle, s->end);
    if (status != NET_OK || w->stopped || !holds)
      return status;
  }
}

static net_status check_size(walk *w, const step *s) {
  net_status status = s->b >= 0 ? look(w->h, s->b, &w->word) : NET_OK;
  int64_t found = s->b >= 0 ? w->word : w->h->numbers[s->c];
  if (status == NET_OK && found != w->h->size_values[s->a])
    w->stopped = s;
  return status;
}

static net_status run_step(walk *w, int32_t i) {
  const step *s = &net_plan.steps[i];
  int64_t holds = 0;
  net_status status = NET_OK;
  if (s->kind == LOOP)
    return run_loop(w, i);
  if (s->kind == SIZE_CHECK)
    return check_size(w, s);
  if ((s->kind == BRANCH || s->kind == REQUIREMENT) && s->a >= 0)
    status = look(w->h, s->a, &holds);
  if (status == NET_OK && s->kind == BRANCH)
    return holds ? run_part(w, i + 1, s->middle) : run_part(w, s->middle, s->end);
  if (status == NET_OK && !holds)
    w->stopped = s; /* a requirement, lengths that do not fit, or a launch that would leave its buffers */
  return status;
}

static net_status run_part(walk *w, int32_t from, int32_t to) {
  const net_device *d = w->h->target.device;
  net_status status = NET_OK;
  for (int32_t i = from; i < to && status == NET_OK && !w->stopped;) {
    int32_t end = end_of_stretch(w->h, i, to);
    if (end == i) {
      status = run_step(w, i);
      i = net_plan.steps[i].end;
      continue;
    }
    int done = w->kept->graphs[i] ? d->cuda->cuGraphLaunch(w->kept->graphs[i], w->h->target.stream) : CUDA_SUCCESS;
    if (done != CUDA_SUCCESS)
      status = net_device_fail(w->h, "cuGraphLaunch", done);
    i = end;
  }
  return status;
}

net_status net_run_steps(net_handle *h, const step **stopped, int64_t *word) {
  if (h->target.is_captured) /* the program is straight */
    return capture_launches(h, 0, net_plan.step_count, NULL);
  kept_graphs *kept = net_graphs_of(h, 0);
  net_status status = kept->is_made ? NET_OK : capture_all(h, kept);
  if (status != NET_OK)
    return status;
  walk w = {h, kept, NULL, 0};
  status = run_part(&w, 0, net_plan.step_count);
  *stopped = w.stopped;
  *word = w.word;
  return status;
}
