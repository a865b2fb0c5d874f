// Facade of tensor/ by chapter.
#pragma once
// Tensors: storage, shape, type, device; str(x) and std::cout << x print one.
#include "braid/tensor/device.h"
#include "braid/tensor/dtype.h"
#include "braid/tensor/from_memory.h"
#include "braid/tensor/print.h"
#include "braid/tensor/shape.h"
#include "braid/tensor/tensor.h"

// Files of tensors: Hugging Face's, NumPy's.
#include "braid/tensor/io/npy.h"
#include "braid/tensor/io/npz.h"
#include "braid/tensor/io/safetensors.h"

// Random numbers, threads, memory, errors.
#include "braid/tensor/error.h"
#include "braid/tensor/memory.h"
#include "braid/tensor/parallel.h"
#include "braid/tensor/random.h"
