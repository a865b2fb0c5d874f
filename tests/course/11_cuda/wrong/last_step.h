// expect: tiled of .32, 48. and .48, 16., threads from first.*hint: right for K = 16: does each step of 16 add
// The sum begins anew in each step of 16.
#define TILES_COMPLETE __syncthreads(), sum = 0
#define TILES_READ __syncthreads()
#include "tests/course/11_cuda/tiled_wrongly.h"
