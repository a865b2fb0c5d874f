// Memory for oneDNN in the program. oneDNN uses what mmap() and posix_memalign() return without a check, so that one
// failed allocation would end the process by SIGSEGV. The program's own definitions stand before the C library's: a
// call by oneDNN that fails is repeated for a second, then the program ends with a message and code 2. Calls by others
// are passed on. A program that links the library alone has the check of tensor/cpu/gemm/dnnl_call.h.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include "braid/tensor/error.h"

namespace {

template <class F>
F next_definition(const char* name) {
  return reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
}

bool in_dnnl(const void* caller) {
  Dl_info library;
  return ::dladdr(caller, &library) != 0 && library.dli_fname != nullptr &&
         std::strstr(library.dli_fname, "libdnnl") != nullptr;
}

// Calls `allocate` until it succeeds, for a second. It returns whether it did.
template <class F>
void insist(F allocate) {
  for (int attempt = 0; attempt < 50; ++attempt) {
    if (allocate()) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  constexpr std::string_view text =
      "error: out of memory: oneDNN asked for a buffer, which the system did not give for a second; "
      "lower the batch size, the sequence length or the model\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
  std::_Exit(static_cast<int>(braid::ErrorKind::setting));
}

}  // namespace

extern "C" {

void* mmap(void* address, size_t length, int protection, int flags, int file, off_t offset) noexcept {
  static const auto next = next_definition<decltype(&::mmap)>("mmap");
  void* result = next(address, length, protection, flags, file, offset);
  if (result == MAP_FAILED && errno == ENOMEM && in_dnnl(__builtin_return_address(0)))
    insist([&] { return (result = next(address, length, protection, flags, file, offset)) != MAP_FAILED; });
  return result;
}

int posix_memalign(void** result, size_t alignment, size_t size) noexcept {
  static const auto next = next_definition<decltype(&::posix_memalign)>("posix_memalign");
  int code = next(result, alignment, size);
  if (code == ENOMEM && in_dnnl(__builtin_return_address(0)))
    insist([&] { return (code = next(result, alignment, size)) == 0; });
  return code;
}

}  // extern "C"
