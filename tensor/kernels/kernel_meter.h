// What kernels take, call by call.
#pragma once
#include <functional>
#include <string_view>
#include <vector>

namespace braid {

struct Backend;

struct KernelCall {
  std::string_view name;
  const char* phase;            // of its family, as in measured.h; "other" where it is in no device's table
  const char* layer;            // the LayerScope
  double begin = 0, end = 0;    // seconds since the work began
  double seconds = 0;           // between them, without kernels that it calls, which have their own
  double waiting = 0;           // of these seconds: of this thread for others, at the ends of loops
  double flops = 0, bytes = 0;  // as a TraceDevice counts them; operands, each once
};

// Runs the work, and returns the kernels of the CPU that this thread calls meanwhile, by their beginnings.
std::vector<KernelCall> record_kernel_calls(const std::function<void()>& work);

namespace detail {
extern constinit thread_local const Backend*
    metered_backend;  // backend(kCpu) of this thread while its calls are recorded
}

}  // namespace braid
