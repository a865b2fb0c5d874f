#include "braid/tensor/cpu/gemm/dnnl_call.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <cstddef>

#include "braid/tensor/error.h"

namespace braid::cpu {

namespace {

// The functions are looked up rather than linked, because they must be those of the OpenMP runtime that oneDNN uses.
struct OpenMp {
  int (*threads)() = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  void (*set_threads)(int) = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
};
const OpenMp& open_mp() {
  static const OpenMp found;
  return found;
}

void check_memory(const char* what) {
  constexpr size_t reserve = 64 << 20;  // bytes of its buffers and kernels, rounded up
  void* probe = ::mmap(nullptr, reserve, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (probe == MAP_FAILED)
    throw OutOfMemory(str("out of memory: ", what, " by oneDNN takes up to 64 MiB, which the system does not give"));
  ::munmap(probe, reserve);
}

}  // namespace

DnnlCall::DnnlCall(const char* what) : before_(open_mp().threads ? open_mp().threads() : 1) {
  check_memory(what);
  if (before_ != 1) open_mp().set_threads(1);
}

DnnlCall::~DnnlCall() {
  if (before_ != 1) open_mp().set_threads(before_);
}

}  // namespace braid::cpu
