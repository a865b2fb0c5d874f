// In order.
#include "nn/linear.h"
#include "tensor/tensor.h"
