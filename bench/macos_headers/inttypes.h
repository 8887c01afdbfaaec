#pragma once
#include <stdint.h>
#define PRId64 "lld"
