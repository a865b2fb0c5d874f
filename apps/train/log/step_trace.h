// The timeline of one step: trace/rank-N.json in the run's folder, in the format of Chrome's trace viewer and Perfetto.
// braid plot --trace draws those of all ranks.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace braid::apps {

// An event of a trace: what took place in a process from `begin`, in microseconds. category: what viewers color by.
nlohmann::json trace_span(const std::string& name, const std::string& category, int process, double begin,
                          double length, const nlohmann::json& arguments);
// Error(output) where the file cannot be written.
void write_trace(const std::string& file, const nlohmann::json& events);

// The step that is traced, counted from the start of the program: those before it allocate memory and measure.
inline constexpr int64_t kTracedStep = 3;

// Traces the calling thread while it lives; then writes the file of this rank. A file that cannot be written is a
// warning.
class StepTrace {
 public:
  StepTrace(const std::filesystem::path& run, int rank);
  ~StepTrace();
  StepTrace(const StepTrace&) = delete;

 private:
  std::filesystem::path file_;
  int rank_;
};

}  // namespace braid::apps
