// expect: reads shared memory.1., which no thread has written.*hint: is there a barrier between
// The tiles are used before they are complete.
#define TILES_COMPLETE
#define TILES_READ __syncthreads()
#include "tests/course/11_cuda/tiled_wrongly.h"
