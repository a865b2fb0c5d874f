#include "apps/train/log/run_files.h"

#include "apps/cli/text.h"
#include "braid/tensor/error.h"

namespace braid::apps {

void RunFiles::open(const std::filesystem::path& out, int64_t step, std::string_view kind,
                    const std::vector<std::string>& source_columns, bool hashes) {
  out_ = out;
  kind_ = kind;
  log_.emplace(out, step, kind, source_columns);
  samples_.emplace(out / "samples.txt", step);
  if (hashes) hashes_.emplace(out / kWeightHashesFile, step);
}

void RunFiles::start(const std::string& event, bool tensorboard, int64_t events_step, const std::string& command) {
  log_->append_event(event);
  if (!command.empty()) {
    command_.emplace(command, [this](const std::string& note) { progress_.note(note); });
    command_->send(event);
  }
  if (tensorboard) events_.emplace(out_ / "tensorboard", events_step);
}

void RunFiles::take_metrics_port(int64_t port) {
  try {
    if (port > 0) metrics_address_.emplace("127.0.0.1", static_cast<int>(port));
  } catch (const Error& e) {
    fail(e.kind(), str("log.metrics_port: ", e.what()));
  }
}

void RunFiles::start_metrics(const std::string& file, int64_t steps) {
  if (file.empty() && !metrics_address_) return;
  metrics_.emplace(out_.string(), steps, earlier_rows());
  if (!file.empty()) metrics_file_.emplace(file, *metrics_);
  if (!metrics_address_) return;
  const int port = metrics_address_->port();
  metrics_server_.emplace(std::move(*metrics_address_), [this] { return metrics_->text(); });
  progress_.note(str("metrics: http://127.0.0.1:", port, "/metrics"));
}

RunFiles::~RunFiles() {
  if (metrics_) metrics_->end();
}

void RunFiles::append(const LogRow& row) {
  if (log_) attempt(log_warned_, [&] { log_->append(row); });
  if (events_) attempt(events_warned_, [&] { events_->append(row); });
  if (metrics_) metrics_->update(row);
  if (metrics_file_) attempt(metrics_warned_, [&] { metrics_file_->update(row.has("val_loss")); });
  if (command_) command_->send(json_line(row, kind_));
}

void RunFiles::append_event(const std::string& json) {
  if (log_) attempt(log_warned_, [&] { log_->append_event(json); });
  if (command_) command_->send(json);
}

void RunFiles::append_sample(int64_t step, const std::string& text) {
  if (samples_) attempt(samples_warned_, [&] { samples_->append(step, text); });
}

void RunFiles::append_hash(int64_t step, uint32_t hash) {
  if (hashes_) attempt(hashes_warned_, [&] { hashes_->append(step, hash); });
}

void RunFiles::complete(const LogRow& row, bool measured) {
  if (measured) attempt(log_warned_, [&] { log_->complete(row); });
  if (events_) attempt(events_warned_, [&] { events_->append(row); });
  if (metrics_) metrics_->update(row);
  if (metrics_file_) attempt(metrics_warned_, [&] { metrics_file_->update(row.has("val_loss")); });
  if (command_ && measured) command_->send(json_line(row, kind_));
}

std::function<void()> RunFiles::sync_later() {
  std::vector<std::function<void()>> files = {log_->sync_later(), samples_->sync_later()};
  if (events_) files.push_back(events_->sync_later());
  if (hashes_) files.push_back(hashes_->sync_later());
  return [files = std::move(files)] {
    for (const std::function<void()>& sync : files) sync();
  };
}

void RunFiles::attempt(bool& warned, const std::function<void()>& write) {
  try {
    write();
    warned = false;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::output) throw;
    if (!warned) progress_.note(str("warning: ", e.what(), "; it is kept in memory and written later"));
    warned = true;
  }
}

}  // namespace braid::apps
