// The instructions themselves.
#define CHECK_NAMESPACE tile_instructions
#include "tests/emulation/tiles_check.h"
