// The instructions themselves; tests/CMakeLists.txt adds their flags.
#define CHECK_NAMESPACE instructions
#include "tests/emulation/avx512_check.h"
