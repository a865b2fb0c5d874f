// The intrinsics in emulation; tests/CMakeLists.txt includes avx512.h.
#define CHECK_NAMESPACE emulated_intrinsics
#include "tests/emulation/avx512_check.h"
