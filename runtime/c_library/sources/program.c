/* The order of a run: which launches no run comes to, and what sizes are taken for that only a run tells. */
#include "handle.h"

#include <string.h>

static int stops(net_handle *h, int32_t from, int32_t to, uint8_t *never);

static void mark(int32_t from, int32_t to, uint8_t *never) {
  for (int32_t i = from; never && i < to; i++)
    if (net_plan.steps[i].kind == LAUNCH)
      never[net_plan.steps[i].a] = 1;
}

static int is_other_size(const net_handle *h, const step *s) {
  return s->b < 0 && h->numbers[s->c] != h->size_values[s->a];
}

static int branch_stops(net_handle *h, int32_t i, uint8_t *never) {
  const step *s = &net_plan.steps[i];
  int then = stops(h, i + 1, s->middle, never), otherwise = stops(h, s->middle, s->end, never);
  return then && otherwise;
}

static int loop_stops(net_handle *h, int32_t i, uint8_t *never) {
  const step *s = &net_plan.steps[i];
  int ends = stops(h, i + 1, s->middle, never);
  if (ends)
    mark(s->middle, s->end, never);
  else
    stops(h, s->middle, s->end, never);
  return ends;
}

/* Whether no run comes to the end of some steps; marks the launches that none comes to. */
static int stops(net_handle *h, int32_t from, int32_t to, uint8_t *never) {
  int ends = 0;
  for (int32_t i = from; i < to; i = net_plan.steps[i].end) {
    const step *s = &net_plan.steps[i];
    if (ends)
      mark(i, s->end, never);
    else if (s->kind == SIZE_CHECK)
      ends = is_other_size(h, s);
    else if (s->kind == LENGTHS)
      ends = net_is_violated(h, &net_plan.requirements[s->a]);
    else if (s->kind == BRANCH)
      ends = branch_stops(h, i, never);
    else if (s->kind == LOOP)
      ends = loop_stops(h, i, never);
  }
  return ends;
}

void net_find_never_run(net_handle *h) {
  memset(h->is_never_run, 0, (size_t)net_plan.launch_count);
  stops(h, 0, net_plan.step_count, h->is_never_run);
}

/* How sizes are refined: the run has told the one with the number `known`, and branches that agree with no side go
 * where the one before went. */
typedef struct {
  int32_t known;
  int side;
} refinement;

static void follow(net_handle *h, refinement *r, int32_t from, int32_t to);

static int is_told(const net_handle *h, const refinement *r, int32_t from, int32_t to) {
  for (int32_t i = from; i < to; i = net_plan.steps[i].end) {
    const step *s = &net_plan.steps[i];
    if (s->kind == SIZE_CHECK && s->b < 0 && s->a == r->known && h->numbers[s->c] == h->size_values[s->a])
      return 1;
  }
  return 0;
}

static void take(net_handle *h, int32_t size, int64_t value) {
  if (value == NET_NONE || value == h->size_values[size])
    return;
  h->size_values[size] = value;
  h->numbers[net_plan.size_numbers[size]] = value;
  net_evaluate(h);
}

static void follow_branch(net_handle *h, refinement *r, int32_t i) {
  const step *s = &net_plan.steps[i];
  int32_t from[2] = {i + 1, s->middle}, to[2] = {s->middle, s->end};
  int agree[2];
  for (int k = 0; k < 2; k++)
    agree[k] = !stops(h, from[k], to[k], NULL);
  if (agree[0] && agree[1])
    return;
  for (int k = 0; !agree[0] && !agree[1] && k < 2; k++)
    if (is_told(h, r, from[k], to[k])) {
      r->side = k;
      break;
    }
  if (agree[0] || agree[1])
    r->side = agree[1];
  for (int32_t k = from[r->side]; k < to[r->side]; k = net_plan.steps[k].end)
    if (net_plan.steps[k].kind == SIZE_CHECK && net_plan.steps[k].b < 0)
      take(h, net_plan.steps[k].a, h->numbers[net_plan.steps[k].c]);
  follow(h, r, from[r->side], to[r->side]);
}

static void follow(net_handle *h, refinement *r, int32_t from, int32_t to) {
  for (int32_t i = from; i < to; i = net_plan.steps[i].end) {
    const step *s = &net_plan.steps[i];
    if (s->kind == BRANCH)
      follow_branch(h, r, i);
    else if (s->kind == LOOP)
      follow(h, r, i + 1, s->middle);
  }
}

void net_refine_sizes(net_handle *h, int32_t known) {
  refinement r = {known, 0};
  for (int32_t i = 0; i < net_plan.symbol_count; i++) {
    const symbol *one = &net_plan.symbols[i];
    h->numbers[one->number] = h->lengths[h->first_dim[one->input] + one->axis];
  }
  for (int32_t i = 0; i < net_plan.size_count; i++)
    h->numbers[net_plan.size_numbers[i]] = h->size_values[i];
  net_evaluate(h);
  follow(h, &r, 0, net_plan.step_count);
}
