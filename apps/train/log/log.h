// The log of a run: log.csv and log.jsonl with one row a step. A row is written by one call, so a killed run leaves at
// most one torn last line, which the next open removes.
#pragma once
#include <array>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "braid/tensor/io/append_file.h"

namespace braid::apps {

inline constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();  // an empty field, null in JSON

struct LogRow {
  int64_t step = 0;  // 1 = after the first optimizer step
  double loss = not_measured;
  double val_loss = not_measured;
  double task_acc = not_measured;  // share of held-out tasks answered correctly, 0..1
  double val_top1 = not_measured;  // share of validation images whose class is the likeliest, 0..1
  double val_top5 = not_measured;  // ... is among the five likeliest
  double val_ece = not_measured;   // expected calibration error, 0..1
  double lr = not_measured;
  double grad_norm = not_measured;  // before clipping
  double tokens = not_measured;     // seen since step 0
  double tok_per_s = not_measured;
  double images = not_measured;  // seen since step 0
  double images_per_s = not_measured;
  double mfu = not_measured;  // share of the machine's peak arithmetic, 0..1
  double memory_mb = not_measured;
  double elapsed_s = not_measured;  // of training, pauses between resumes not counted
  double eta_s = not_measured;
  double unix_time = not_measured;  // seconds since 1970; log.jsonl has it, as the time of day
};

// The kind of data that a run trains on; both: a file with rows of both.
enum class LogKind : unsigned char { text = 1, images = 2, both = 3 };
LogKind kind_of(const LogRow& row);

// The columns after `step`, in file order. Measured ones differ from run to run on the same machine; all others of a
// resumed run equal those of an uninterrupted one.
struct LogColumn {
  const char* name;
  double LogRow::*member;
  bool measured;
  LogKind kind = LogKind::both;
  bool in(LogKind log) const { return (static_cast<int>(kind) & static_cast<int>(log)) != 0; }
};
inline constexpr std::array<LogColumn, 16> log_columns = {
    {{"loss", &LogRow::loss, false},
     {"val_loss", &LogRow::val_loss, false},
     {"task_acc", &LogRow::task_acc, false, LogKind::text},
     {"val_top1", &LogRow::val_top1, false, LogKind::images},
     {"val_top5", &LogRow::val_top5, false, LogKind::images},
     {"val_ece", &LogRow::val_ece, false, LogKind::images},
     {"lr", &LogRow::lr, false},
     {"grad_norm", &LogRow::grad_norm, false},
     {"tokens", &LogRow::tokens, false, LogKind::text},
     {"tok_per_s", &LogRow::tok_per_s, true, LogKind::text},
     {"pictures", &LogRow::images, false, LogKind::images},
     {"pictures_per_s", &LogRow::images_per_s, true, LogKind::images},
     {"mfu", &LogRow::mfu, true},
     {"memory_mb", &LogRow::memory_mb, true},
     {"elapsed_s", &LogRow::elapsed_s, true},
     {"eta_s", &LogRow::eta_s, true}}};

std::string csv_header(LogKind kind);                   // with line end
std::string csv_line(const LogRow& row, LogKind kind);  // shortest decimals that read back to the same values
std::string json_line(const LogRow& row, LogKind kind);

class RunLog {
 public:
  // Opens or creates both files in `folder` and cuts off every row after `step`, the step that the run continues from
  // (0: a new run). Error(input) if a file there is not such a log, Error(output) if it cannot be written.
  RunLog(const std::filesystem::path& folder, int64_t step, LogKind kind = LogKind::text);

  const std::vector<LogRow>& earlier_rows() const { return earlier_rows_; }  // found on opening, in order
  void append_event(const std::string& json);  // a line {"step":N,"event":...} of log.jsonl, with line end
  // Error(output), for example on a full disk; the row is then written with the next one.
  void append(const LogRow& row);
  // Puts the row in the place of the last one, which is of the same step and lacks values. At once: a process that is
  // killed meanwhile leaves the one row or the other.
  void complete(const LogRow& row);
  void sync();  // to the disk; call it before a checkpoint is written

 private:
  int64_t read_csv(const std::filesystem::path& path, int64_t step);

  std::filesystem::path folder_;
  LogKind kind_;
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
