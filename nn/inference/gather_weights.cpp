#include "braid/nn/inference/gather_weights.h"

#include <list>
#include <map>

#include "braid/tensor/base/integers.h"
#include "braid/tensor/memory.h"

namespace braid::nn {

namespace {

constexpr int64_t kBufferBytes = 64 << 20, kAlignment = 64;

// Neighbours of one type. A parameter beyond the limit has a buffer of its own.
struct Buffer {
  int64_t size = 0;  // elements
  Tensor elements;   // made when its first parameter is moved
};
struct Slice {
  Buffer* buffer;
  int64_t offset;
};

}  // namespace

void gather_weights(Module& m) {
  freeze(m);
  const MemoryScope scope(MemoryUse::weights);
  std::list<Buffer> buffers;
  std::map<const void*, Slice> slices;  // by the id of the parameter's handle
  {
    std::map<DType, Buffer*> last;
    for (const NamedTensor& p : parameters(m)) {
      if (p.value.device() != kCpu) continue;
      const int64_t unit = size_of(p.value.dtype()), size = detail::round_up(p.value.numel(), kAlignment / unit);
      Buffer*& buffer = last[p.value.dtype()];
      if (!buffer || (buffer->size + size) * unit > kBufferBytes) buffer = &buffers.emplace_back();
      slices[p.value.id()] = {buffer, buffer->size};
      buffer->size += size;
    }
  }
  replace_parameters(m, [&](const std::string&, const Tensor& old) {
    const auto slice = slices.find(old.id());
    if (slice == slices.end()) return old;
    const auto& [buffer, offset] = slice->second;
    if (!buffer->elements) {
      release_cached_memory(kCpu);  // what the buffer before this one has replaced
      buffer->elements = empty({buffer->size}, old.dtype());
    }
    Tensor x = buffer->elements.sliced(0, offset, offset + old.numel()).reshaped(old.shape());
    x.copy_(old);
    return x;
  });
  release_cached_memory(kCpu);
}

}  // namespace braid::nn
