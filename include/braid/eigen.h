// Eigen's maps over tensors. Needs Eigen 3.3 or newer, which the library itself does not use.
#pragma once
#include "braid/tensor/eigen.h"
