#pragma once
#include <stdarg.h>
#include <stddef.h>
typedef struct FILE FILE;
int snprintf(char *text, size_t room, const char *form, ...);
int vsnprintf(char *text, size_t room, const char *form, va_list given);
