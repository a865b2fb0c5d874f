// The thread that messages about a kernel name.
#pragma once
#include <string>

namespace braid::emulated {

// "block (0,0,0) thread (3,0,0)", or "" while no thread of a kernel runs.
std::string running_thread();

}  // namespace braid::emulated
