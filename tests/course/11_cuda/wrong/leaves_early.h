// expect: reads shared memory.[0-9]+., which no thread has written.*did the thread that has to write there leave
// Threads outside of c return before they have copied their elements of the tiles.
#define TILES_BEGIN \
  if (i >= z.M || j >= z.N) return
#define TILES_COMPLETE __syncthreads()
#define TILES_READ __syncthreads()
#include "tests/course/11_cuda/tiled_wrongly.h"
