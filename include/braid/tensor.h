// Facade: tensors, their devices and types, printing, random numbers, memory, threads.
#pragma once
#include "braid/tensor/device.h"
#include "braid/tensor/error.h"
#include "braid/tensor/memory.h"
#include "braid/tensor/parallel.h"
#include "braid/tensor/print.h"
#include "braid/tensor/random.h"
#include "braid/tensor/shape.h"
#include "braid/tensor/tensor.h"
