// Tensors over memory behind which nothing may be read: a page without access follows their last byte. Their addresses
// are multiples of the size of an element and of nothing more.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "braid/tensor/from_memory.h"

namespace braid::test {

// The values of x, which must be on the CPU, contiguous.
inline Tensor guarded(const Tensor& x) {
  const Tensor source = x.detach().contiguous();
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const auto bytes = static_cast<size_t>(source.numel() * size_of(source.dtype()));
  const size_t readable = (bytes + page - 1) / page * page, all = readable + page;
  void* map = ::mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  check(map != MAP_FAILED, "guarded", "mmap failed");
  auto* begin = static_cast<std::byte*>(map);
  ::mprotect(begin + readable, page, PROT_NONE);
  std::byte* data = begin + readable - bytes;
  if (bytes > 0) std::memcpy(data, source.raw(), bytes);
  return from_memory(static_cast<void*>(data), x.shape(), {}, x.dtype(), [map, all] { ::munmap(map, all); });
}

}  // namespace braid::test
