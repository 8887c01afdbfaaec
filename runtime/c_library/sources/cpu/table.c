/* The table of rows that the plan's main object runs: kernels with their parameters, jumps, and checks. */
#include "handle.h"

#include <string.h>

#define ROW_WORDS 3
#define BORDER_WORDS 7
/* Launches on so little memory are one thread's; of launches on so little no thread need be woken. */
#define TINY_BYTES 4096
#define SMALL_BYTES 8192

static int64_t word(const void *address) { return (int64_t)(uintptr_t)address; }

/* The parameters of rows that are no kernels stand behind those of launches: two words each, and a zero before them. */
static int64_t *stop_words(const net_handle *h, int64_t row) { return h->target.parameters + net_plan.parameter_count + 1 + 2 * row; }

static int64_t zero_byte(const net_handle *h) { return word(h->target.parameters + net_plan.parameter_count); }

static int64_t *new_row(net_handle *h, const step *origin, int32_t launch, const void *kernel, int64_t *words, int64_t flags) {
  int64_t *row = h->target.table + ROW_WORDS * h->target.row_count;
  h->target.rows[h->target.row_count++] = (row_origin){origin, launch};
  row[0] = word(kernel);
  row[1] = word(words);
  row[2] = flags;
  return row;
}

/* A row that looks at a place (or at a zero), and its second word. */
static int64_t stop_row(net_handle *h, const step *origin, int32_t where, int64_t flags, int64_t second) {
  int64_t number = h->target.row_count, *words = stop_words(h, number);
  new_row(h, origin, -1, NULL, words, flags);
  words[0] = zero_byte(h);
  words[1] = second;
  if (where >= 0) {
    const place *p = &net_plan.places[where];
    int32_t root = net_plan.buffers[p->buffer].root;
    words[0] = word(h->bases[root] + h->starts[p->buffer] + h->numbers[p->offset]);
  }
  return number;
}

static int64_t touched_bytes(const net_handle *h, const launch *l) {
  int64_t bytes = 0;
  for (int32_t k = 0; k < l->arguments; k++) {
    const argument *one = &net_plan.arguments[l->first_argument + k];
    bytes += one->kind == POINTER ? h->sizes[net_plan.buffers[one->a].root] : 0;
  }
  return bytes;
}

static void fill_parameters(net_handle *h, const launch *l) {
  for (int32_t k = 0; k < l->arguments; k++) {
    const argument *one = &net_plan.arguments[l->first_argument + k];
    int64_t *words = h->target.parameters + l->parameters;
    if (one->kind == POINTER)
      words[k] = word(h->bases[net_plan.buffers[one->a].root]) + h->pointed[l->first_argument + k];
    else
      words[k] = h->numbers[one->a];
  }
}

/* Lets a row write borders before its kernel computes: those that other buffers have written over. */
static void add_borders(net_handle *h, const launch *l, int64_t *row) {
  int64_t *words = h->target.parameters + l->border_parameters;
  int writes = 0;
  for (int32_t k = 0; k < l->borders; k++) {
    int32_t number = net_plan.border_writers[l->first_border + k];
    const border *one = &net_plan.borders[number];
    const buffer *b = &net_plan.buffers[one->buffer];
    int64_t *given = words + 3 + BORDER_WORDS * k;
    given[0] = word(h->bases[one->buffer]);
    memcpy(given + 1, h->borders + 5 * number, 5 * sizeof *given);
    given[1] *= h->is_rewritten[one->buffer];
    given[6] = b->fill;
    writes |= h->is_rewritten[one->buffer];
  }
  if (!writes)
    return;
  words[0] = row[0];
  words[1] = row[1];
  words[2] = l->borders;
  void (*bordered)(void *, int64_t, int64_t) = mlirt_bordered;
  row[0] = (int64_t)(uintptr_t)bordered;
  row[1] = word(words);
}

static void add_launch(net_handle *h, const step *s) {
  const launch *l = &net_plan.launches[s->a];
  if (h->has_fault[s->a]) {
    stop_row(h, s, -1, REQUIRE, 0);
    return;
  }
  int64_t bytes = touched_bytes(h, l), flags = l->flags | (bytes <= TINY_BYTES ? SERIAL : 0);
  if (!h->is_never_run[s->a]) {
    fill_parameters(h, l);
    h->target.needs_one &= bytes <= SMALL_BYTES || (flags & (SERIAL | NO_BARRIER)) == SERIAL;
  }
  int64_t *row = new_row(h, s, s->a, net_plan.kernels[l->kernel], h->target.parameters + l->parameters, flags);
  add_borders(h, l, row);
}

static void add_steps(net_handle *h, int32_t from, int32_t to);

static void add_branch(net_handle *h, int32_t i) {
  const step *s = &net_plan.steps[i];
  int64_t skip = stop_row(h, NULL, s->a, JUMP, 0), leave = -1;
  add_steps(h, i + 1, s->middle);
  if (s->middle < s->end)
    leave = stop_row(h, NULL, -1, JUMP, 0);
  stop_words(h, skip)[1] = h->target.row_count;
  add_steps(h, s->middle, s->end);
  if (leave >= 0)
    stop_words(h, leave)[1] = h->target.row_count;
}

static void add_loop(net_handle *h, int32_t i) {
  const step *s = &net_plan.steps[i];
  int64_t start = h->target.row_count;
  add_steps(h, i + 1, s->middle);
  int64_t leave = stop_row(h, NULL, s->a, JUMP, 0);
  add_steps(h, s->middle, s->end);
  stop_row(h, NULL, -1, JUMP, start);
  stop_words(h, leave)[1] = h->target.row_count;
}

static void add_steps(net_handle *h, int32_t from, int32_t to) {
  for (int32_t i = from; i < to; i = net_plan.steps[i].end) {
    const step *s = &net_plan.steps[i];
    if (s->kind == LAUNCH)
      add_launch(h, s);
    else if (s->kind == BRANCH)
      add_branch(h, i);
    else if (s->kind == LOOP)
      add_loop(h, i);
    else if (s->kind == REQUIREMENT)
      stop_row(h, s, s->a, REQUIRE, 0);
    else if (s->kind == LENGTHS && net_is_violated(h, &net_plan.requirements[s->a]))
      stop_row(h, s, -1, REQUIRE, 0);
    else if (s->kind == SIZE_CHECK && s->b >= 0)
      stop_row(h, s, s->b, SIZE, h->size_values[s->a]);
    else if (s->kind == SIZE_CHECK && h->numbers[s->c] != h->size_values[s->a])
      stop_row(h, s, -1, SIZE, -1);
  }
}

void net_fill_table(net_handle *h) {
  memset(h->target.parameters, 0, sizeof *h->target.parameters * (size_t)(net_plan.parameter_count + 1));
  h->target.row_count = 0;
  h->target.needs_one = 1;
  add_steps(h, 0, net_plan.step_count);
}
