#pragma once
#include <stddef.h>
void *memset(void *memory, int byte, size_t bytes);
void *memcpy(void *to, const void *from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
int memcmp(const void *one, const void *other, size_t bytes);
size_t strlen(const char *text);
char *strstr(const char *text, const char *part);
int strncmp(const char *one, const char *other, size_t most);
