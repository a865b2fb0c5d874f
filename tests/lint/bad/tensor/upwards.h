// Wrong on purpose: tests/lint checks that this include is found.
#include "braid/nn/layers/linear.h"
