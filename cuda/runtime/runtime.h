// The CPU's view of a GPU, without CUDA headers: the current GPU and stream, copies, waiting.
//
// Each thread has a current GPU (backend(Device) sets it) and each GPU one stream for Braid's work.
#pragma once
#include <cstdint>
#include <string>

struct CUstream_st;  // cudaStream_t points to one

namespace braid {
class Allocator;
}

namespace braid::cuda {

using StreamHandle = CUstream_st*;

struct Gpus {
  int count = 0;
  std::string failure = "";  // why a driver that is there gives none, for example because it is too old
};
Gpus find_gpus();    // asks the driver
int device_count();  // 0 without a driver or a GPU; Error(setting) where the driver is there and gives none
// Why this GPU cannot be used: too old, not there, or its driver fails; "" when it can.
std::string unsupported_reason(int index);
void use_device(int index);     // makes a GPU the current one of this thread; Error(setting) when it is unsupported
int current_device();           // the index of the current GPU
StreamHandle current_stream();  // of the current GPU
void synchronize();             // waits until the current GPU has finished all work, and reports failures

struct Properties {
  std::string name;          // "NVIDIA H200"
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  int64_t memory = 0;        // bytes
  int64_t shared_bytes = 0;  // the maximum for a block
};
const Properties& properties();  // of the current GPU
Allocator& device_allocator();   // of the current GPU

// Copies bytes in the order of the stream. Returns when the CPU's buffer may be used again.
void copy_to_device(void* to, const void* from, int64_t bytes);
void copy_to_host(void* to, const void* from, int64_t bytes);

}  // namespace braid::cuda
