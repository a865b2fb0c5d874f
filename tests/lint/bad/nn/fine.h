// In order.
#include "braid/nn/layers/linear.h"
#include "braid/tensor/tensor.h"
