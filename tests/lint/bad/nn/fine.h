// In order.
#include "braid/nn/module.h"
#include "braid/tensor/tensor.h"
