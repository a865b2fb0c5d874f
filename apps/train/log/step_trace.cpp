#include "apps/train/log/step_trace.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "braid/autograd/trace.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/atomic_file.h"

namespace braid::apps {

StepTrace::StepTrace(const std::filesystem::path& run, int rank)
    : file_(run / "trace" / str("rank-", rank, ".json")), rank_(rank) {
  start_trace();
}

StepTrace::~StepTrace() {
  nlohmann::json events = nlohmann::json::array();
  for (const TraceEvent& e : stop_trace()) {
    // microseconds
    events.push_back({{"name", e.name},
                      {"cat", e.kind},
                      {"ph", "X"},
                      {"pid", rank_},
                      {"tid", 0},
                      {"ts", static_cast<double>(e.begin) / 1000},
                      {"dur", static_cast<double>(e.end - e.begin) / 1000},
                      {"args", {{"bytes", e.bytes}}}});
  }
  try {
    io::make_folder(file_.parent_path());
    io::write_file(file_.string(), nlohmann::json{{"displayTimeUnit", "ms"}, {"traceEvents", events}}.dump());
  } catch (const Error& error) {
    std::fprintf(stderr, "warning: no trace: %s\n", error.what());
  }
}

}  // namespace braid::apps
