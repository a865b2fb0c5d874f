// The host's side of a CUDA card, without CUDA headers: which card and stream work goes to, and waiting for it.
//
// Each thread has a current card (the table lookup backend(Device) sets it) and each card one stream for Braid's work.
#pragma once
#include <cstdint>
#include <string>

struct CUstream_st;  // cudaStream_t points to one

namespace braid {
class Allocator;
}

namespace braid::cuda {

using StreamHandle = CUstream_st*;

int device_count();              // 0 without a driver or a card
std::string refuses(int index);  // "", or why this card cannot be used: it is too old, or not there
void use_device(int index);      // makes a card the current one of this thread; Error(setting) when it refuses
int current_device();            // the index of the current card
StreamHandle current_stream();   // of the current card
void synchronize();              // waits until the current card has done everything, and reports what failed there

struct Properties {
  std::string name;          // "NVIDIA H200"
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  int64_t memory = 0;        // bytes
  int64_t shared_bytes = 0;  // the most a block can ask for
};
const Properties& properties();  // of the current card
Allocator& device_allocator();   // of the current card

// Bytes between host and card, in the order of the stream. The call returns when the host's buffer may be used again.
void copy_to_device(void* to, const void* from, int64_t bytes);
void copy_to_host(void* to, const void* from, int64_t bytes);

}  // namespace braid::cuda
