// DLPack: its structures, unless a dlpack.h declared them before, and tensors to and from them.
#pragma once
#include "braid/tensor/dlpack.h"
#include "braid/tensor/dlpack_abi.h"
