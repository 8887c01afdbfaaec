#pragma once
#include <stddef.h>
typedef struct pthread *pthread_t;
typedef struct {
  long signature;
  char opaque[56];
} pthread_attr_t;
int pthread_attr_init(pthread_attr_t *attributes);
int pthread_attr_destroy(pthread_attr_t *attributes);
int pthread_attr_setstacksize(pthread_attr_t *attributes, size_t bytes);
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*work)(void *), void *given);
int pthread_join(pthread_t thread, void **result);
