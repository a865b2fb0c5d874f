// A list of ids that kernels read as i64, whichever of the two index types it is stored in.
#pragma once
#include "braid/cuda/device/kernel.h"
#include "braid/tensor/tensor.h"

namespace braid::cuda {

class Ids {
 public:
  explicit Ids(const Tensor& ids) : data_(ids.raw()), wide_(ids.dtype() == DType::i64) {}
  __device__ int64_t operator[](int64_t i) const {
    return wide_ ? static_cast<const int64_t*>(data_)[i] : static_cast<const int32_t*>(data_)[i];
  }

 private:
  const void* data_;
  bool wide_;
};

}  // namespace braid::cuda
