#include "apps/train/log/log.h"

#include <exception>
#include <unordered_set>

#include "apps/cli/text.h"
#include "apps/cli/version.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/line_reader.h"
#include "braid/tensor/io/path_status.h"
#include "braid/tensor/io/reader.h"

namespace braid::apps {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kMaxLog = int64_t{1} << 30;  // bytes

struct Line {
  std::string_view text;  // without line end
  size_t end;             // offset behind the line end
  bool complete;          // has a line end
};

std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t stop = text.find('\n', begin);
    const bool complete = stop != std::string_view::npos;
    const size_t end = complete ? stop + 1 : text.size();
    std::string_view line = text.substr(begin, (complete ? stop : end) - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back({line, end, complete});
    begin = end;
  }
  return lines;
}

// The text of a regular file: a pipe of that name would keep the program waiting for its other end.
std::string regular_text(const std::string& path) {
  io::Reader file(path);
  if (file.size() > kMaxLog)
    file.fail("the file is too large", -1, str("at most ", kMaxLog, " bytes"), std::to_string(file.size()),
              "check that it is the right file");
  return file.read_string(file.size());
}

// The fields of a line of CSV. One in quotes may hold commas, and quotes written twice.
std::vector<std::string> csv_fields(std::string_view line) {
  if (line.find('"') == std::string_view::npos) return split(line, ',');
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const bool quote = line[i] == '"';
    if (line[i] == ',' && !quoted)
      fields.emplace_back();
    else if (!quote || (quoted && line.substr(i + 1).starts_with('"')))
      fields.back() += line[i], i += quote;
    else
      quoted = !quoted;
  }
  return fields;
}

bool is_source_column(std::string_view name) { return name.starts_with("loss.") || name.starts_with("val_loss."); }

// One data line. Columns without a LogColumn are `step` (at `step_at`) or unknown and skipped.
LogRow parse_row(const std::vector<std::string>& fields, const std::vector<std::string>& names, size_t step_at,
                 const std::string& where) {
  check(fields.size() == names.size(), ErrorKind::input, [&] {
    return str("broken log in ", where, ": expected ", names.size(), " fields, found ", fields.size(),
               "; remove the line or move the file away");
  });
  LogRow row;
  for (size_t i = 0; i < fields.size(); ++i) {
    const std::string_view field = trim(fields[i]);
    const LogColumn* column = std::ranges::find(log_columns, names[i], &LogColumn::name);
    if (i == step_at || column == std::end(log_columns)) column = nullptr;
    const auto step = i == step_at ? parse_int(field) : std::nullopt;
    const bool source = is_source_column(names[i]);
    const auto number = column || source ? parse_float(field) : std::nullopt;
    const bool ok = i == step_at ? step && *step >= 0 : (!column && !source) || field.empty() || number;
    check(ok, ErrorKind::input, [&] {
      return "broken log in " + where + ", column " + names[i] + ": expected " +
             (i == step_at ? "an integer" : "a number") + ", found '" + preview(field) +
             "'; remove the line or move the file away";
    });
    if (step) row.step = *step;
    if (number && column) row[LogName(*column)] = *number;
    if (source) row.sources.emplace_back(names[i], number.value_or(not_measured));
  }
  return row;
}

// The step that a line of log.jsonl begins with, as json_line() writes it.
std::optional<int64_t> json_step(std::string_view line) {
  constexpr std::string_view head = "{\"step\":";
  if (!line.starts_with(head) || !line.ends_with('}')) return std::nullopt;
  return parse_int(line.substr(head.size(), line.find_first_of(",}") - head.size()));
}

// The row in such a line; none: it is an event.
std::optional<LogRow> json_row(const std::string& line, int64_t step, const std::string& where) {
  LogRow row(step);
  for (const std::string& field : split(std::string_view(line).substr(1, line.size() - 2), ',')) {
    const size_t colon = field.find(':');
    const std::string name = field.substr(0, colon);
    if (name == "\"event\"") return std::nullopt;
    const auto is_name = [&](const LogColumn& column) { return name == "\"" + std::string(column.name) + "\""; };
    const auto column = std::ranges::find_if(log_columns, is_name);
    const std::string bare = name.size() > 2 ? name.substr(1, name.size() - 2) : "";
    const bool source = is_source_column(bare);
    if ((column == std::end(log_columns) && !source) || field.substr(colon + 1) == "null") continue;
    const auto value = parse_float(field.substr(colon + 1));
    check(value.has_value(), ErrorKind::input,
          [&] { return "broken log in " + where + ": expected a number for " + name + "; remove the line"; });
    if (source)
      row.set_source(bare, *value);
    else
      row[LogName(*column)] = *value;
  }
  return row;
}

// How many bytes of log.jsonl stay when rows after `step` are cut off. `rows` gets those of steps that it lacks.
int64_t kept_json(const fs::path& path, int64_t step, std::vector<LogRow>& rows) {
  if (!io::exists(path)) return 0;
  std::unordered_set<int64_t> known;
  for (const LogRow& row : rows) known.insert(row.step);
  io::LineReader lines(path.string());
  int64_t keep = 0;
  while (lines.next() && lines.intact()) {
    const auto line_step = json_step(lines.text());
    check(line_step.has_value(), ErrorKind::input, [&] {
      return str("broken log in ", path.string(), " line ", lines.number(), ": expected {\"step\":N,...}, found '",
                 preview(lines.text()), "'; remove the line or move the file away");
    });
    if (*line_step > step) break;
    keep = lines.end();
    if (known.contains(*line_step)) continue;
    if (auto row = json_row(lines.text(), *line_step, str(path.string(), " line ", lines.number()))) {
      rows.push_back(*row);
      known.insert(*line_step);
    }
  }
  return keep;
}

}  // namespace

std::string_view kind_of(const LogRow& row) {
  return row.has("pictures") ? "images" : row.has("accuracy") ? "preferences" : "text";
}

void LogRow::set_source(std::string_view column, double value) {
  const auto at = std::ranges::find(sources, column, &std::pair<std::string, double>::first);
  if (at == sources.end())
    sources.emplace_back(column, value);
  else
    at->second = value;
}

void LogRow::update(const LogRow& row) {
  for (const LogColumn& column : log_columns)
    if (row.has(LogName(column))) (*this)[LogName(column)] = row[LogName(column)];
  for (const auto& [column, value] : row.sources)
    if (!std::isnan(value)) set_source(column, value);
}

std::string csv_header(std::string_view kind, const std::vector<std::string>& source_columns) {
  std::string text = "step";
  for (const LogColumn& column : log_columns)
    if (column.in(kind)) text.append(",").append(column.name);
  for (const std::string& column : source_columns) text.append(",").append(column);
  return text + "\n";
}

std::string csv_line(const LogRow& row, std::string_view kind, const std::vector<std::string>& source_columns) {
  std::string text = std::to_string(row.step);
  const auto add = [&](double value) { text.append(",").append(std::isnan(value) ? "" : shortest(value)); };
  for (const LogColumn& column : log_columns)
    if (column.in(kind)) add(row[LogName(column)]);
  for (const std::string& column : source_columns) add(row.of_source(column));
  return text + "\n";
}

std::string json_line(const LogRow& row, std::string_view kind) {
  std::string text = str("{\"step\":", row.step);
  const auto add = [&](std::string_view name, double value) {
    text.append(",\"").append(name).append("\":").append(std::isfinite(value) ? shortest(value) : "null");
  };
  for (const LogColumn& column : log_columns)
    if (column.in(kind)) add(column.name, row[LogName(column)]);
  for (const auto& [column, value] : row.sources) add(column, value);
  if (!std::isnan(row.unix_time)) text.append(",\"time\":\"").append(time_text(row.unix_time)).append("\"");
  return text + "}\n";
}

RunLog::RunLog(const fs::path& folder, int64_t step, std::string_view kind,
               const std::vector<std::string>& source_columns)
    : folder_(folder), kind_(kind), source_columns_(source_columns) {
  io::make_folder(folder);
  const int64_t csv = read_csv(folder / "log.csv", step);
  std::vector<LogRow> rows = earlier_rows_;
  const int64_t json = kept_json(folder / "log.jsonl", step, rows);
  // Everything has been read and understood; only now change the files.
  if (rows.size() > earlier_rows_.size()) {  // log.csv was moved away, or cut
    std::ranges::sort(rows, {}, &LogRow::step);
    earlier_rows_ = std::move(rows);
    std::string text = csv_header(kind_, source_columns_);
    for (const LogRow& row : earlier_rows_) text += csv_line(row, kind_, source_columns_);
    io::write_file((folder / "log.csv").string(), text);
    open_files(INT64_MAX, json);
  } else {
    open_files(csv, json);
    if (csv == 0) csv_->append(csv_header(kind_, source_columns_));
  }
}

void RunLog::open_files(int64_t csv, int64_t json) {
  csv_.emplace((folder_ / "log.csv").string(), csv);
  json_.emplace((folder_ / "log.jsonl").string(), json);
  csv_->follow(csv_header(kind_, source_columns_));
  json_->follow("");
}

// Fills earlier_rows_; returns how many bytes of the file stay.
int64_t RunLog::read_csv(const fs::path& path, int64_t step) {
  if (!io::exists(path)) return 0;
  std::string header = csv_header(kind_, source_columns_);
  header.pop_back();
  io::LineReader lines(path.string());
  if (!lines.next()) return 0;
  if (lines.text().find('\0') != std::string::npos) return 0;
  const bool fits = lines.complete() ? lines.text() == header : header.starts_with(lines.text());
  check(fits, ErrorKind::input, [&] {
    return "cannot continue " + path.string() + " line 1: expected '" + header + "', found '" +
           preview(lines.text(), 200) + "'; move the file away to start a new log";
  });
  if (!lines.complete()) return 0;
  int64_t keep = lines.end();
  const std::vector<std::string> names = split(header, ',');
  while (lines.next() && lines.intact()) {
    const LogRow row = parse_row(split(lines.text(), ','), names, 0, str(path.string(), " line ", lines.number()));
    if (row.step > step) break;
    earlier_rows_.push_back(row);
    keep = lines.end();
  }
  return keep;
}

void RunLog::append_event(const std::string& json) { json_->append(json); }

void RunLog::append(const LogRow& row) {
  std::exception_ptr failure;
  try {
    csv_->append(csv_line(row, kind_, source_columns_));
  } catch (const Error&) {  // the row is kept for later; the other file gets its own all the same
    failure = std::current_exception();
  }
  json_->append(json_line(row, kind_));
  if (failure) std::rethrow_exception(failure);
}

void RunLog::complete(const LogRow& row) {
  sync_later()();
  const std::string step = std::to_string(row.step), csv = step + ",", json = "{\"step\":" + step;
  const auto replace = [&](const char* name, const auto& is_row, const std::string& text) {
    const std::string path = (folder_ / name).string();
    io::AtomicFile file(path);
    for (io::LineReader lines(path); lines.next();)
      if (!is_row(lines.text())) file.write(lines.text() + "\n");
    file.write(text);
    file.commit();
  };
  const auto is_json_row = [&](const std::string& line) {
    return line.starts_with(json + ",") && line.find("\"event\":") == std::string::npos;
  };
  replace("log.jsonl", is_json_row, json_line(row, kind_));
  const auto is_csv_row = [&](const std::string& line) { return line.starts_with(csv); };
  replace("log.csv", is_csv_row,
          csv_line(row, kind_, source_columns_));  // last: a row that is complete here is not measured again
  open_files(INT64_MAX, INT64_MAX);
}

std::function<void()> RunLog::sync_later() {
  return [csv = csv_->sync_later(), json = json_->sync_later()] { csv(), json(); };
}

fs::path log_file(const fs::path& source) { return io::is_folder(source) ? source / "log.csv" : source; }

std::vector<LogRow> read_log(const fs::path& source) {
  std::vector<LogRow> rows = read_log_so_far(source);
  check(!rows.empty(), ErrorKind::input, [&] {
    return "no rows in " + log_file(source).string() +
           ": expected at least one step after the header, found none; let the run make "
           "a step first";
  });
  return rows;
}

std::vector<LogRow> read_log_so_far(const fs::path& source) {
  std::vector<NamedLog> logs = read_logs(source);
  return logs.empty() ? std::vector<LogRow>() : std::move(logs.back().rows);
}

std::vector<NamedLog> read_logs(const fs::path& source) {
  io::check_readable(source);
  const fs::path file = log_file(source);
  check(file == source || io::exists(file), ErrorKind::input, [&] {
    return "no log in " + source.string() +
           ": expected a run folder with log.csv; name the folder that run.out of "
           "braid train named";
  });
  const std::string text = regular_text(file.string());
  const std::vector<Line> lines = lines_of(text);
  check(!lines.empty(), ErrorKind::input,
        [&] { return "empty log " + file.string() + ": expected a header line with step and loss, found nothing"; });
  std::vector<std::string> names;
  for (const std::string& name : split(lines[0].text, ',')) names.emplace_back(trim(name));
  const size_t step_at = static_cast<size_t>(std::find(names.begin(), names.end(), "step") - names.begin());
  const bool has_loss = std::find(names.begin(), names.end(), "loss") != names.end();
  check(step_at < names.size() && has_loss, ErrorKind::input, [&] {
    return "cannot read " + file.string() + " line 1: expected a header with the columns step and loss, found '" +
           preview(lines[0].text, 120) + "'";
  });
  const size_t run_at = static_cast<size_t>(std::find(names.begin(), names.end(), "run") - names.begin());
  std::vector<NamedLog> logs;
  for (size_t i = 1; i < lines.size(); ++i) {
    if (!lines[i].complete || trim(lines[i].text).empty()) continue;
    const std::vector<std::string> fields = csv_fields(lines[i].text);
    const LogRow row = parse_row(fields, names, step_at, str(file.string(), " line ", i + 1));
    const std::string run = run_at < fields.size() ? fields[run_at] : "";
    auto log = std::ranges::find(logs, run, &NamedLog::run);
    if (log == logs.end()) log = logs.insert(log, {run, {}});
    while (!log->rows.empty() && log->rows.back().step >= row.step) log->rows.pop_back();
    log->rows.push_back(row);
  }
  return logs;
}

std::optional<LogRow> last_row(const fs::path& source) {
  const std::string path = log_file(source).string();
  io::Reader file(path);
  constexpr int64_t first_window = 1 << 16, enough = 1 << 24;
  std::string begin;
  while (begin.find('\n') == std::string::npos && std::ssize(begin) < std::min(enough, file.size()))
    begin += file.read_string(std::min(first_window, file.remaining()));
  const int64_t header = static_cast<int64_t>(begin.find('\n')) + 1;  // 0: none
  if (header == 0) return {};
  std::vector<std::string> names;
  for (const std::string& name : split(begin.substr(0, static_cast<size_t>(header) - 1), ','))
    names.emplace_back(trim(name));
  const size_t step_at = static_cast<size_t>(std::find(names.begin(), names.end(), "step") - names.begin());
  if (step_at == names.size()) return {};
  for (int64_t window = first_window;; window *= 16) {
    const int64_t from = std::max(header, file.size() - window);
    std::string text(static_cast<size_t>(file.size() - from), '\0');
    file.read_at(from, text.data(), std::ssize(text));
    if (from > header) text.erase(0, std::min(text.find('\n'), text.size() - 1) + 1);  // the rest of a line
    std::optional<LogRow> last;
    const std::vector<Line> lines = lines_of(text);
    for (size_t i = lines.size(); i-- > 0;) {
      if (!lines[i].complete || trim(lines[i].text).empty()) continue;
      const LogRow row = parse_row(csv_fields(lines[i].text), names, step_at, path);
      if (!last) last = row;
      if (!last->has("val_loss")) (*last)["val_loss"] = row["val_loss"];
      if (!last->has("task_acc")) (*last)["task_acc"] = row["task_acc"];
      if (last->has("val_loss")) return last;
    }
    if (from == header || (last && window >= enough)) return last;
  }
}

}  // namespace braid::apps
