#include "apps/train/log/step_trace.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "braid/autograd/trace.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/atomic_file.h"

namespace braid::apps {

nlohmann::json trace_span(const std::string& name, const std::string& category, int process, double begin,
                          double length, const nlohmann::json& arguments) {
  return {{"name", name}, {"cat", category}, {"ph", "X"},     {"pid", process},
          {"tid", 0},     {"ts", begin},     {"dur", length}, {"args", arguments}};
}

void write_trace(const std::string& file, const nlohmann::json& events) {
  io::write_file(file, nlohmann::json{{"displayTimeUnit", "ms"}, {"traceEvents", events}}.dump());
}

StepTrace::StepTrace(const std::filesystem::path& run, int rank)
    : file_(run / "trace" / str("rank-", rank, ".json")), rank_(rank) {
  start_trace();
}

StepTrace::~StepTrace() {
  nlohmann::json events = nlohmann::json::array();
  for (const TraceEvent& e : stop_trace())
    events.push_back(trace_span(e.name, e.kind, rank_, static_cast<double>(e.begin) / 1000,
                                static_cast<double>(e.end - e.begin) / 1000, {{"bytes", e.bytes}}));
  try {
    io::make_folder(file_.parent_path());
    write_trace(file_.string(), events);
  } catch (const Error& error) {
    std::fprintf(stderr, "warning: no trace: %s\n", error.what());
  }
}

}  // namespace braid::apps
