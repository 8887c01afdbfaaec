#pragma once
typedef struct dispatch_semaphore *dispatch_semaphore_t;
void dispatch_release(dispatch_semaphore_t object);
