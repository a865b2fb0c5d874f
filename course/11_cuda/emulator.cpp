// What the engine of tests/cuda/emulation wants of a GPU's driver. Arrays of the course lie in the program's own
// memory, and a launch runs at once.
#include "tests/cuda/emulation/engine.h"
#include "tests/cuda/emulation/memory.h"

namespace braid {

emulated::OnTheGpu::OnTheGpu() {}
emulated::OnTheGpu::~OnTheGpu() {}
void emulated::submit(std::function<void()> work) { work(); }
cuda::StreamHandle cuda::current_stream() { return nullptr; }

}  // namespace braid
