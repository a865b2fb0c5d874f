#include "braid/autograd/debug.h"

#include <cmath>
#include <cstdlib>
#include <vector>

#include "braid/autograd/record.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

namespace {

struct State {
  Debug switches;
  std::FILE* out = stderr;
};

State& state() {
  static State instance = [] {
    const char* text = std::getenv("BRAID_DEBUG");
    return State{text ? parse_debug(text) : Debug{}};
  }();
  return instance;
}

// A sum of squares is NaN only if an element is: infinities all have one sign there.
bool has_nan(const Tensor& y) {
  if (!is_float(y.dtype()) || y.numel() == 0) return false;
  Tensor sum = empty({1}, DType::f64, y.device());
  backend(y.device()).optimizer.sum_of_squares({y.detach().contiguous()}, sum);
  return std::isnan(sum.item());
}

std::string mebibytes(int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  return text;
}

}  // namespace

Debug parse_debug(const std::string& text) {
  Debug switches;
  const std::vector<std::string> names = {"ops", "mem", "nan", "comm", "sync"};
  bool* const members[] = {&switches.ops, &switches.mem, &switches.nan, &switches.comm, &switches.sync};
  for (const std::string& part : detail::split(text, ',')) {
    const std::string word(detail::trim(part));
    if (word.empty()) continue;
    size_t i = 0;
    while (i < names.size() && names[i] != word) ++i;
    check(i < names.size(), ErrorKind::setting, [&] {
      return "bad value for BRAID_DEBUG: expected some of " + detail::join(names, ",") + ", found '" +
             detail::preview(word) + "'" + detail::did_you_mean(word, names);
    });
    *members[i] = true;
  }
  return switches;
}

void set_debug(Debug switches, std::FILE* out) { state() = {switches, out}; }

const Debug& debug() { return state().switches; }

void print_debug(const std::string& line) { std::fprintf(state().out, "%s\n", line.c_str()); }

void watch(const char* op, const std::string& part, const Tensor& y) {
  const Debug& switches = state().switches;
  detail::trace_event(op, detail::in_closure() || part.starts_with("derivative") ? "derivative" : "op", y.device());
  const auto name = [&] { return str(op, part.empty() ? "" : ", " + part, ": ", y.dtype(), " ", y.shape()); };
  if (switches.sync) {
    try {
      backend(y.device()).stream.synchronize();
    } catch (const Error& e) {
      fail(e.kind(), name() + ": " + e.what());
    }
  }
  if (switches.ops || switches.mem) {
    std::string line = name();
    if (const MemoryStats now = memory_stats(y.device()); switches.mem)
      line += "  " + mebibytes(now.current) + " in tensors, at most " + mebibytes(now.peak);
    print_debug(line);
  }
  check(!switches.nan || !has_nan(y), ErrorKind::numerical, [&] { return "NaN in " + name() + " (BRAID_DEBUG=nan)"; });
}

}  // namespace braid
