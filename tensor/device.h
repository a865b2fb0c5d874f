// Where a tensor lives.
#pragma once
#include <cstdint>
#include <string>

namespace braid {

struct Device {
  enum class Kind : uint8_t { cpu, cuda, meta };
  Kind kind = Kind::cpu;
  int16_t index = 0;
  friend bool operator==(const Device&, const Device&) = default;
};

inline constexpr Device kCpu{};
// Tensors here have a shape and a type but no memory: they count what a model holds without building it. They can be
// made, viewed, filled, copied and converted among themselves; reading a value or any other kernel throws.
inline constexpr Device kMeta{Device::Kind::meta, 0};
std::string str(Device device);                  // "cpu", "cuda:0", "meta"
int cuda_device_count();                         // 0 without CUDA, its driver or a GPU; throws where the driver fails
std::string cuda_unsupported_reason(int index);  // why this GPU cannot be used; "" when it can
Device parse_device(const std::string& text);    // "auto", "cpu", "cuda", "cuda:1"; throws Error(setting)
void synchronize(Device device);                 // waits until everything enqueued on the device is done

// Bytes held by tensors: now, and the maximum since the last reset. `reserved` adds what the allocator keeps for reuse.
struct MemoryStats {
  int64_t current = 0, peak = 0, reserved = 0;
};
MemoryStats memory_stats(Device device);
void reset_peak_memory(Device device);
void release_cached_memory(Device device);  // gives the allocator's unused buffers back to the system

}  // namespace braid
