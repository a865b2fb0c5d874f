// In order.
#include "braid/nn/linear.h"
#include "braid/tensor/tensor.h"
