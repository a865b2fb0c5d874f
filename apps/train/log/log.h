// The log of a run: log.csv and log.jsonl with one row a step. A row is written by one call, so a killed run leaves at
// most one torn last line, which the next open removes.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "braid/tensor/io/append_file.h"

namespace braid::apps {

inline constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();  // an empty field, null in JSON

// The columns behind `step`, in file order. A column of a new kind of data is one more line here.
struct LogColumn {
  std::string_view name;
  std::string_view tag;        // of event files; "": not there
  bool measured = false;       // differs from run to run; all others of a resumed run equal those of one without a stop
  std::string_view kind = "";  // of the data that have the column, one or more; "": any
  constexpr bool in(std::string_view log) const { return kind.empty() || log.empty() || kind.find(log) != kind.npos; }
};
inline constexpr LogColumn log_columns[] = {
    {"loss", "loss/train"},
    {"val_loss", "loss/validation"},
    {"task_acc", "tasks/accuracy", false, "text"},                 // share of held-out tasks solved, 0..1
    {"val_top1", "validation/top1", false, "images"},              // share of images classified correctly, 0..1
    {"val_top5", "validation/top5", false, "images"},              // ... whose class is among the five likeliest
    {"val_ece", "validation/calibration_error", false, "images"},  // expected calibration error, 0..1
    {"accuracy", "rewards/accuracy", false, "preferences"},  // share of pairs whose chosen answer has the larger reward
    {"margin", "rewards/margin", false, "preferences"},  // mean reward of the chosen answer minus the rejected one's
    {"reward_chosen", "rewards/chosen", false, "preferences"},
    {"reward_rejected", "rewards/rejected", false, "preferences"},
    {"logp_chosen", "logp/chosen", false, "preferences"},  // mean log of the probability of an answer
    {"logp_rejected", "logp/rejected", false, "preferences"},
    {"val_accuracy", "validation/accuracy", false, "preferences"},  // the same of the validation split
    {"val_margin", "validation/margin", false, "preferences"},
    {"val_reward_chosen", "validation/reward_chosen", false, "preferences"},
    {"val_reward_rejected", "validation/reward_rejected", false, "preferences"},
    {"val_logp_chosen", "validation/logp_chosen", false, "preferences"},
    {"val_logp_rejected", "validation/logp_rejected", false, "preferences"},
    {"lr", "optimizer/learning_rate"},
    {"grad_norm", "optimizer/gradient_norm"},              // before clipping
    {"tokens", "data/tokens", false, "text preferences"},  // seen since step 0
    {"tok_per_s", "speed/tokens_per_second", true, "text preferences"},
    {"pictures", "data/pictures", false, "images"},  // images seen since step 0
    {"pictures_per_s", "speed/pictures_per_second", true, "images"},
    {"mfu", "speed/model_flops_utilization", true},  // share of the peak arithmetic, 0..1
    {"memory_mb", "memory/megabytes", true},
    {"elapsed_s", "speed/elapsed_seconds", true},  // of training, without pauses
    {"eta_s", "", true}};

// A column of a source of a mixture, behind all others: "loss.NAME" and "val_loss.NAME", where NAME has neither commas
// nor quotes.
inline std::string source_column(std::string_view column, std::string_view source) {
  return std::string(column).append(".").append(source);
}

// A column by its name; a name that is not in the table does not compile.
class LogName {
 public:
  consteval LogName(const char* name) {
    while (log_columns[index_].name != name) ++index_;
  }
  explicit LogName(const LogColumn& column) : index_(static_cast<size_t>(&column - log_columns)) {}
  size_t index() const { return index_; }
  std::string text() const { return std::string(log_columns[index_].name); }
  bool operator==(const LogName&) const = default;

 private:
  size_t index_ = 0;
};

class LogRow {
 public:
  struct Value {
    LogName name;
    double value;
  };
  explicit LogRow(int64_t at = 0, std::initializer_list<Value> values = {}) : step(at) {
    values_.fill(not_measured);
    for (const Value& value : values) (*this)[value.name] = value.value;
  }
  double operator[](LogName name) const { return values_[name.index()]; }
  double& operator[](LogName name) { return values_[name.index()]; }
  bool has(LogName name) const { return !std::isnan((*this)[name]); }

  int64_t step;                                              // 1 = after the first optimizer step
  double unix_time = not_measured;                           // seconds since 1970; log.jsonl has it, as the time of day
  std::vector<std::pair<std::string, double>> sources = {};  // source_column(), in the order of the file

  double of_source(std::string_view column) const {  // not_measured where there is none
    const auto at = std::ranges::find(sources, column, &std::pair<std::string, double>::first);
    return at == sources.end() ? not_measured : at->second;
  }
  void set_source(std::string_view column, double value);
  // Takes over the values that the other row has.
  void update(const LogRow& row);

 private:
  std::array<double, std::size(log_columns)> values_;
};

// `kind`: of the data, "text", "images" or "preferences"; "": a file with rows of several.
std::string_view kind_of(const LogRow& row);
// source_columns: of the file, of a mixture. Lines have their line end, and shortest decimals that read back to the
// same values.
std::string csv_header(std::string_view kind, const std::vector<std::string>& source_columns = {});
std::string csv_line(const LogRow& row, std::string_view kind, const std::vector<std::string>& source_columns = {});
std::string json_line(const LogRow& row, std::string_view kind);

class RunLog {
 public:
  // Opens or creates both files in `folder` and cuts off every row after `step`, the step that the run continues from
  // (0: a new run). Rows that log.csv lacks and log.jsonl has, because the first was moved away, are put back.
  // Error(input) if a file there is not such a log, Error(output) if it cannot be written.
  RunLog(const std::filesystem::path& folder, int64_t step, std::string_view kind = "text",
         const std::vector<std::string>& source_columns = {});

  const std::vector<LogRow>& earlier_rows() const { return earlier_rows_; }  // found on opening, in order
  void append_event(const std::string& json);  // a line {"step":N,"event":...} of log.jsonl, with line end
  // Error(output), for example on a full disk; the row is then written with the next one. A file that was moved away is
  // begun anew, so logs may be rotated.
  void append(const LogRow& row);
  // Puts the row in the place of the last one, which is of the same step and lacks values. At once: a process that is
  // killed meanwhile leaves the one row or the other.
  void complete(const LogRow& row);
  std::function<void()> sync_later();  // as AppendFile's; what it returns goes before a checkpoint

 private:
  void open_files(int64_t csv, int64_t json);  // the first so many bytes of each stay
  int64_t read_csv(const std::filesystem::path& path, int64_t step);

  std::filesystem::path folder_;
  std::string_view kind_;
  std::vector<std::string> source_columns_;
  std::optional<io::AppendFile> csv_, json_;
  std::vector<LogRow> earlier_rows_;
};

// Rows of a log.csv, or of any CSV with a header line that names at least `step` and `loss`; other columns are taken if
// they are known. A torn last line is left out; where steps go back, the later rows replace the earlier ones.
// `source` is a run folder or a file. Error(input) names the line and column.
std::vector<LogRow> read_log(const std::filesystem::path& source);
// The same, and no error when there is no row yet.
std::vector<LogRow> read_log_so_far(const std::filesystem::path& source);
struct NamedLog {
  std::string run;  // "": the file does not say
  std::vector<LogRow> rows;
};
// The same of a file with the rows of several runs and their names in the column `run`, as braid plot writes it, in the
// order in which the names appear; without that column one log.
std::vector<NamedLog> read_logs(const std::filesystem::path& source);
// log.csv of a run folder, or the file itself.
std::filesystem::path log_file(const std::filesystem::path& source);
// The last row, with val_loss and task_acc from the newest row that has them; reads from the end. None without a row.
std::optional<LogRow> last_row(const std::filesystem::path& source);

}  // namespace braid::apps
