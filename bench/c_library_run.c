/* Runs an exported network: c_library_run THREADS [INPUT_FILE SHAPE].. [RUNS]
 *
 * Writes the outputs to output_N.bin, and prints the milliseconds of the handle, of the first run, and of the runs after it
 * (the median).
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "net.h"

#define MAX_TENSORS 16
#define MAX_RUNS 64

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static void *read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file)
    exit(70);
  fseek(file, 0, SEEK_END);
  size_t size = (size_t)ftell(file);
  rewind(file);
  void *memory = malloc(size + 1);
  if (!memory || fread(memory, 1, size, file) != size)
    exit(71);
  fclose(file);
  return memory;
}

static void must(net_status status, const net_handle *handle) {
  if (status == NET_OK)
    return;
  fprintf(stderr, "%s\n", net_error(handle));
  exit(1);
}

static void write_output(net_handle *handle, int number) {
  char path[32];
  size_t bytes;
  must(net_output_bytes(handle, number, &bytes), handle);
  snprintf(path, sizeof path, "output_%d.bin", number);
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(net_output_data(handle, number), 1, bytes, file) != bytes || fclose(file) != 0)
    exit(72);
}

static int by_value(const void *a, const void *b) {
  double one = *(const double *)a, other = *(const double *)b;
  return (one > other) - (one < other);
}

int main(int count, char **arguments) {
  const void *inputs[MAX_TENSORS] = {NULL};
  void *memory[MAX_TENSORS] = {NULL}, *outputs[MAX_TENSORS] = {NULL};
  double times[MAX_RUNS] = {0}, created = now();
  net_handle *handle;
  must(net_create(&handle, atoi(arguments[1])), NULL);
  created = now() - created;
  for (int i = 0; i < net_input_count(); i++) {
    int64_t shape[64];
    int rank = 0;
    inputs[i] = memory[i] = read_file(arguments[2 + 2 * i]);
    for (char *at = arguments[3 + 2 * i]; *at; at += *at == ',')
      shape[rank++] = strtoll(at, &at, 10);
    must(net_set_input_shape(handle, i, shape, rank), handle);
  }
  int runs = count > 2 + 2 * net_input_count() ? atoi(arguments[count - 1]) : 1;
  for (int k = 0; k < runs && k < MAX_RUNS; k++) {
    double start = now();
    must(net_run(handle, inputs, outputs), handle);
    times[k] = now() - start;
  }
  for (int i = 0; i < net_output_count(); i++)
    write_output(handle, i);
  double first = times[0];
  qsort(times + 1, (size_t)(runs > 1 ? runs - 1 : 0), sizeof *times, by_value);
  printf("%.4f %.4f %.4f\n", created, first, times[runs > 1 ? runs / 2 : 0]);
  for (int i = 0; i < MAX_TENSORS; i++)
    free(memory[i]);
  net_destroy(handle);
  return 0;
}
