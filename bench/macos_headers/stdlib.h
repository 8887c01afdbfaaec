#pragma once
#include <stddef.h>
void *malloc(size_t bytes);
void *calloc(size_t count, size_t bytes);
void free(void *memory);
int posix_memalign(void **memory, size_t alignment, size_t bytes);
long strtol(const char *text, char **end, int base);
char *getenv(const char *name);
void qsort(void *rows, size_t count, size_t bytes, int (*compare)(const void *, const void *));
