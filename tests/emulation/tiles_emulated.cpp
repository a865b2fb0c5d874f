// Tiles in emulation; tests/CMakeLists.txt includes tiles.h.
#define CHECK_NAMESPACE emulated_tiles
#include "tests/emulation/tiles_check.h"
