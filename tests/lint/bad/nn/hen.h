// Wrong on purpose: tests/lint checks that this circle of two headers is found.
#include "braid/nn/egg.h"
