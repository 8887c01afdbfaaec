/* Runs the network once on inputs of zeros, and prints the outputs: ./example [SHAPE of each input, such as 1x3x224x224]
 *
 *   cc example.c -o example -L. -lnet -Wl,-rpath,'$ORIGIN'
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "net.h"

#define MAX_TENSORS 64

static int failed(const net_handle *handle) {
  fprintf(stderr, "error: %s\n", net_error(handle));
  return 1;
}

/* The lengths of a text such as 1x3x224x224; those that the input does not fix are 1 where there is no text. */
static void read_shape(const char *text, const net_tensor *tensor, int64_t *shape) {
  for (int axis = 0; axis < tensor->rank; axis++) {
    char *end = NULL;
    shape[axis] = text ? strtoll(text, &end, 10) : tensor->shape[axis] < 0 ? 1 : tensor->shape[axis];
    text = end && *end ? end + 1 : end;
  }
}

int main(int count, char **arguments) {
  net_handle *handle;
  const void *inputs[MAX_TENSORS] = {NULL};
  void *outputs[MAX_TENSORS] = {NULL};
  if (net_input_count() > MAX_TENSORS || net_output_count() > MAX_TENSORS)
    return 1;
  if (net_create(&handle, 0) != NET_OK)
    return failed(NULL);
  for (int i = 0; i < net_input_count(); i++) {
    const net_tensor *tensor = net_input(i);
    int64_t shape[64], elements = 1;
    read_shape(i + 1 < count ? arguments[i + 1] : NULL, tensor, shape);
    if (net_set_input_shape(handle, i, shape, tensor->rank) != NET_OK)
      return failed(handle);
    for (int axis = 0; axis < tensor->rank; axis++)
      elements *= shape[axis];
    inputs[i] = calloc((size_t)elements + 1, (size_t)tensor->element_bytes);
  }
  if (net_run(handle, inputs, outputs) != NET_OK)
    return failed(handle);
  for (int i = 0; i < net_output_count(); i++) {
    int64_t shape[64];
    int rank;
    if (net_output_shape(handle, i, shape, &rank) != NET_OK)
      return failed(handle);
    printf("%s [", net_output(i)->name);
    for (int axis = 0; axis < rank; axis++)
      printf("%s%" PRId64, axis ? ", " : "", shape[axis]);
    printf("]");
    size_t bytes = 0;
    net_output_bytes(handle, i, &bytes);
    if (net_output(i)->type == NET_FLOAT32 && bytes)
      printf(" %g ..", (double)((const float *)net_output_data(handle, i))[0]);
    printf("\n");
  }
  for (int i = 0; i < net_input_count(); i++)
    free((void *)(uintptr_t)inputs[i]);
  net_destroy(handle);
  return 0;
}
