/* Whether the shapes of the inputs are those that the network takes; texts name the tensor, what is expected, what came. */
#include "handle.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A text of bounded length that parts are appended to. */
typedef struct {
  char text[NET_ERROR_BYTES];
  size_t used;
} words;

static void append(words *w, const char *form, ...) __attribute__((format(printf, 2, 3)));

static void append(words *w, const char *form, ...) {
  va_list given;
  va_start(given, form);
  int written = vsnprintf(w->text + w->used, sizeof w->text - w->used, form, given);
  va_end(given);
  if (written > 0)
    w->used = w->used + (size_t)written < sizeof w->text ? w->used + (size_t)written : sizeof w->text - 1;
}

static void append_shape(words *w, const net_handle *h, int32_t input) {
  int32_t rank = net_plan.inputs[input].known.rank;
  append(w, "(");
  for (int32_t axis = 0; axis < rank; axis++)
    append(w, "%s%" PRId64, axis ? ", " : "", h->lengths[h->first_dim[input] + axis]);
  append(w, rank == 1 ? ",)" : ")");
}

static void append_shapes(words *w, const net_handle *h) {
  for (int32_t i = 0; i < net_plan.input_count - net_plan.counts_runs; i++) {
    append(w, "%s%s=", i ? ", " : "", net_plan.inputs[i].known.name);
    append_shape(w, h, i);
  }
}

static void append_expected(words *w, const tensor *t) {
  append(w, "(");
  for (int32_t axis = 0; axis < t->known.rank; axis++)
    append(w, "%s%s", axis ? ", " : "", t->texts[axis]);
  append(w, ")");
}

/* A text in which {left} and {right} stand for lengths. */
static void append_filled(words *w, const char *text, int64_t left, int64_t right) {
  while (*text) {
    if (strncmp(text, "{left}", 6) == 0) {
      append(w, "%" PRId64, left);
      text += 6;
    } else if (strncmp(text, "{right}", 7) == 0) {
      append(w, "%" PRId64, right);
      text += 7;
    } else {
      append(w, "%c", *text++);
    }
  }
}

net_status net_wrong_length(net_handle *h, int32_t input, int32_t axis, int64_t expected, int64_t came) {
  const tensor *t = &net_plan.inputs[input];
  const char *layer = t->needed_by[axis];
  words w = {.used = 0};
  if (layer && strstr(layer, "{left}") && strstr(layer, "{right}")) {
    append_filled(&w, layer, expected, came);
    append(&w, ", for the shapes ");
    append_shapes(&w, h);
    return net_fail(h, NET_UNMET_CONDITION, "%s", w.text);
  }
  append(&w, "input '%s': expected shape ", t->known.name);
  append_expected(&w, t);
  append(&w, ", got ");
  append_shape(&w, h, input);
  if (expected == NET_NONE)
    append(&w, ": dimension %d has no value", (int)axis);
  else
    append(&w, ": dimension %d must be %" PRId64 ", not %" PRId64, (int)axis, expected, came);
  if (layer)
    append(&w, ", as layer %s needs it", layer);
  return net_fail(h, NET_WRONG_SHAPE, "%s", w.text);
}

net_status net_wrong_rank(net_handle *h, int32_t input, int rank) {
  words w = {.used = 0};
  append_expected(&w, &net_plan.inputs[input]);
  return net_fail(h, NET_WRONG_SHAPE, "input '%s': expected shape %s, got %d dimensions",
                  net_plan.inputs[input].known.name, w.text, rank);
}

static net_status check_lengths(net_handle *h) {
  for (int32_t i = 0; i < net_plan.input_count - net_plan.counts_runs; i++) {
    const tensor *t = &net_plan.inputs[i];
    for (int32_t axis = 0; axis < t->known.rank; axis++) {
      int64_t expected = h->numbers[t->dims[axis]], came = h->lengths[h->first_dim[i] + axis];
      if (expected != came)
        return net_wrong_length(h, i, axis, expected, came);
    }
  }
  return NET_OK;
}

/* The first range of a profile that the shapes are not in. */
static const length_range *beyond(const net_handle *h, int32_t profile) {
  for (int32_t i = 0; i < net_plan.range_count; i++) {
    const length_range *range = &net_plan.ranges[i];
    int64_t length = h->lengths[h->first_dim[range->input] + range->axis];
    if (range->profile == profile && (length < range->least || length > range->most))
      return range;
  }
  return NULL;
}

static net_status check_profiles(net_handle *h) {
  words w = {.used = 0};
  append(&w, "no optimization profile covers the shapes ");
  append_shapes(&w, h);
  for (int32_t profile = 0; profile < net_plan.profile_count; profile++) {
    const length_range *range = beyond(h, profile);
    if (!range)
      return NET_OK;
    append(&w, "%s axis %d of input '%s' is %" PRId64 ", profile %d allows %" PRId64 " to %" PRId64, profile ? ";" : ":",
           (int)range->axis, net_plan.inputs[range->input].known.name,
           h->lengths[h->first_dim[range->input] + range->axis], (int)profile, range->least, range->most);
  }
  return net_plan.profile_count ? net_fail(h, NET_WRONG_SHAPE, "%s", w.text) : NET_OK;
}

int net_is_violated(const net_handle *h, const requirement *one) {
  int64_t where = h->numbers[one->where], left = h->numbers[one->left], right = h->numbers[one->right];
  if (where == 0)
    return 0;
  if (where == NET_NONE || left == NET_NONE || right == NET_NONE)
    return 1;
  return !net_holds(one->relation, left, right);
}

net_status net_violation(net_handle *h, const requirement *one, int adds_shapes) {
  int64_t left = h->numbers[one->left], right = h->numbers[one->right];
  words w = {.used = 0};
  append(&w, "layer %s: ", one->layer);
  if (h->numbers[one->where] == NET_NONE || left == NET_NONE || right == NET_NONE) {
    append(&w, "a length has no value");
  } else {
    append_filled(&w, one->fault, left, right);
    append(&w, "%s", one->formulas);
  }
  if (adds_shapes) {
    append(&w, ", for the shapes ");
    append_shapes(&w, h);
  }
  return net_fail(h, NET_UNMET_CONDITION, "%s", w.text);
}

net_status net_check_shapes(net_handle *h) {
  net_status status = check_lengths(h);
  if (status == NET_OK)
    status = check_profiles(h);
  for (int32_t i = 0; status == NET_OK && i < net_plan.requirement_count; i++)
    if (net_is_violated(h, &net_plan.requirements[i]))
      status = net_violation(h, &net_plan.requirements[i], 1);
  return status;
}
