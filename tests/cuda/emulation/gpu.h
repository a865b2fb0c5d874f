// The properties of the emulated GPU. Tests of bad use replace them for a while.
#pragma once
#include <string>

#include "braid/cuda/runtime/runtime.h"

namespace braid::emulated {

struct Gpu {
  cuda::Properties properties;  // memory: what tensors can have
  int count = 1;                // GPUs in the machine
  std::string no_driver = "";   // why the driver gives no GPU; empty: it does
  std::string failure = "";     // of a kernel that ran: the next call that waits for the GPU reports it
  std::string no_cudnn = "";    // why cuDNN has no plan for any call; empty: it has
};
Gpu& gpu();

class OtherGpu {  // the GPU is as it was when this dies
 public:
  OtherGpu() : before_(gpu()) {}
  ~OtherGpu() { gpu() = before_; }
  OtherGpu(const OtherGpu&) = delete;
  OtherGpu& operator=(const OtherGpu&) = delete;
  Gpu* operator->() { return &gpu(); }

 private:
  Gpu before_;
};

}  // namespace braid::emulated
