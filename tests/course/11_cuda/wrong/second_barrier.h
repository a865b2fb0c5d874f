// expect: which thread [0-9]+ has (read|written), and no barrier lies between.*hint: what one thread writes
// them: a race The tiles are replaced before all threads have read them.
#define TILES_COMPLETE __syncthreads()
#define TILES_READ
#include "tests/course/11_cuda/tiled_wrongly.h"
