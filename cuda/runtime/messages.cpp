#include "braid/cuda/runtime/messages.h"

#include "braid/tensor/base/strings.h"
#include "braid/tensor/kernels/backend.h"

namespace braid::cuda {

namespace {

constexpr int kOldest = 8;  // major compute capability: mma on bf16 and asynchronous copies came with sm_80

using detail::mebibytes;

}  // namespace

std::string unsupported_reason(int index, int count, const Properties* gpu) {
  const std::string name = str("cuda:", index);
  if (index < 0 || index >= count) return str(name, " does not exist: found ", count, " CUDA devices");
  if (gpu->major >= kOldest) return "";
  return str(name, " is a ", gpu->name, " of compute capability ", gpu->major, ".", gpu->minor,
             ", which is too old: ", kOldest, ".0 (A100) or newer is needed; use the device cpu");
}

std::string driver_failure(const std::string& what, int driver, int built_with, bool too_old) {
  const auto version = [](int v) { return str(v / 1000, ".", v % 1000 / 10); };
  return "the GPUs of this machine cannot be used: CUDA: " + what + "; the driver is for CUDA " + version(driver) +
         ", this build was made with " + version(built_with) +
         (too_old ? ": install a newer driver" : ": see nvidia-smi and the system's log") + ", or use the device cpu";
}

std::string out_of_memory(const std::string& gpu, const MemoryState& m) {
  return "out of memory on " + gpu + ": requested " + mebibytes(m.requested) + ", " + mebibytes(m.free) +
         " are free, " + mebibytes(m.in_use) + " are in use by tensors" +
         (m.captured > 0 ? ", " + mebibytes(m.captured) + " are kept for captured steps" : "");
}

std::string op_name() {
  const char* name = detail::running_kernel();
  return str("[", name ? name : "cuda", "] ");
}

std::string failed(const std::string& what) {
  return op_name() + "CUDA: " + what + "; kernels run asynchronously: BRAID_DEBUG=sync names the op that failed";
}

}  // namespace braid::cuda
