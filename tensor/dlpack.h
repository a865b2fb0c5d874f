// DLPack 1.x both ways: tensors that share memory with NumPy, PyTorch, JAX, CuPy and every other library that speaks
// it. Nothing here needs a dlpack.h: <braid/dlpack.h> brings the structures of dlpack_abi.h, or takes those of a
// dlpack.h that was included before it.
//
// f64, f32, bf16, f16, i64, i32 and u8 travel as they are; kDLBool comes in as u8, and u8 goes out as kDLUInt of 8
// bits. Devices: kDLCPU, kDLCUDA with its index, and kDLCUDAHost, which comes in as the CPU. Everything else is an
// error that names it.
#pragma once
#include "braid/tensor/tensor.h"

struct DLManagedTensor;
struct DLManagedTensorVersioned;

namespace braid {

// A tensor over the memory of `managed`, whose deleter is called once the last tensor or view over it is gone, on the
// thread that drops it. The data must be ready for reading, which on a GPU is the producer's to wait for. With
// DLPACK_FLAG_BITMASK_READ_ONLY, writing to the tensor in place throws. Error(misuse) for what a tensor cannot be:
// then `managed` remains the caller's, with its deleter.
Tensor from_dlpack(DLManagedTensorVersioned* managed);
Tensor from_dlpack(DLManagedTensor* managed);

// x for a consumer, who calls the deleter, on any thread, when done; x, its shape and its memory live until then. Waits
// until a GPU has computed x. Values only: the history of x stays here, as with data(), and what the consumer writes,
// backward() does not notice. The result of a recorded op, and memory that was lent read-only, go out with
// DLPACK_FLAG_BITMASK_READ_ONLY.
DLManagedTensorVersioned* to_dlpack(const Tensor& x);
// The same in the older envelope, for consumers from before DLPack 1.0. It has no flag for read-only: such tensors are
// Error(misuse); pass x.clone().
DLManagedTensor* to_dlpack_unversioned(const Tensor& x);

}  // namespace braid
