// Diagnostics of every op. Switched on by the environment, for example BRAID_DEBUG=ops,mem, or by set_debug():
//   ops    a line per result, and per derivative on the way back, with type and shape
//   mem    the same line with the memory of all tensors after the op
//   nan    stops at the first op whose result or derivative holds NaN: Error(numerical) with its name
//   comm   a line per transfer between processes: the tensors that go to each rank and come from it
//   sync   waits for the device after each op, so that an error of the device names the op
// Nothing else in the library prints.
#pragma once
#include <cstdio>
#include <string>

#include "braid/autograd/trace.h"
#include "braid/tensor/tensor.h"

namespace braid {

struct Debug {
  bool ops = false, mem = false, nan = false, comm = false, sync = false;
  bool any() const { return ops || mem || nan || sync; }
};

// "ops,nan" -> the switches. Error(setting) for an unknown name.
Debug parse_debug(const std::string& text);
// Overrides the environment; must not be called while other threads run ops. The lines go to `out`.
void set_debug(Debug switches, std::FILE* out = stderr);
const Debug& debug();  // the first call reads the environment

// Whether results are watched: by a diagnostic of every op, or by a timeline of this thread (trace.h).
inline bool watching() { return detail::tracing || debug().any(); }
// Runs the diagnostics that are on, for a result of op; `part` is "" in a forward pass. Called by record() and
// backward().
void watch(const char* op, const std::string& part, const Tensor& y);
// Writes a line to where the diagnostics go.
void print_debug(const std::string& line);

}  // namespace braid
