/* Whole-number arithmetic over the lengths of a run: formulas of the plan, and what its kernels touch. */
#include "handle.h"

static int64_t within(int64_t value) { return value >= -NET_LIMIT && value <= NET_LIMIT ? value : NET_NONE; }

static int64_t floor_quotient(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t applied(int32_t operation, int64_t a, int64_t b, int64_t c) {
  int64_t result;
  if (operation == IF)
    return a == NET_NONE ? NET_NONE : a >= 0 ? b : c;
  if (a == NET_NONE || b == NET_NONE)
    return NET_NONE;
  if ((operation == DIVIDE_BY_ANY || operation == MODULO_ANY) && b == 0)
    b = 1;
  if ((operation == DIVIDE || operation == MODULO) && b == 0)
    return NET_NONE;
  switch (operation) {
  case ADD:
    return __builtin_add_overflow(a, b, &result) ? NET_NONE : within(result);
  case SUBTRACT:
    return __builtin_sub_overflow(a, b, &result) ? NET_NONE : within(result);
  case MULTIPLY:
    return __builtin_mul_overflow(a, b, &result) ? NET_NONE : within(result);
  case DIVIDE:
  case DIVIDE_BY_ANY:
    return floor_quotient(a, b);
  case MODULO:
  case MODULO_ANY:
    return a - floor_quotient(a, b) * b;
  case MAXIMUM:
    return a > b ? a : b;
  case MINIMUM:
    return a < b ? a : b;
  case BROADCAST:
    return a == 1 ? b : a;
  default:
    return NET_NONE;
  }
}

void net_evaluate(net_handle *h) {
  int64_t *numbers = h->numbers;
  for (int32_t i = 0; i < net_plan.code_count; i++) {
    const instruction *one = &net_plan.code[i];
    numbers[one->to] = applied(one->operation, numbers[one->a], numbers[one->b], numbers[one->c]);
  }
}

int net_holds(int32_t relation, int64_t left, int64_t right) {
  switch (relation) {
  case EQUAL:
    return left == right;
  case EQUAL_OR_ONE:
    return left == right || left == 1;
  case AT_LEAST:
    return left >= right;
  default:
    return right ? left % right == 0 : left == 0;
  }
}
