// See hen.h.
#include "braid/nn/hen.h"
