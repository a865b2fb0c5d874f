#include "apps/train/log/run_files.h"

#include "apps/cli/text.h"
#include "braid/tensor/error.h"

namespace braid::apps {

void RunFiles::open(const std::filesystem::path& out, int64_t step, std::string_view kind,
                    const std::vector<std::string>& source_columns) {
  out_ = out;
  kind_ = kind;
  log_.emplace(out, step, kind, source_columns);
  samples_.emplace(out / "samples.txt", step);
}

void RunFiles::start(const std::string& event, bool tensorboard, int64_t events_step, const std::string& command) {
  log_->append_event(event);
  if (!command.empty()) {
    command_.emplace(command, [this](const std::string& note) { progress_.note(note); });
    command_->send(event);
  }
  if (tensorboard) events_.emplace(out_ / "tensorboard", events_step);
}

void RunFiles::start_prometheus(const std::string& path, int64_t steps) {
  prometheus_.emplace(path, out_.string(), steps, earlier_rows());
}

void RunFiles::append(const LogRow& row) {
  if (log_) attempt(log_warned_, [&] { log_->append(row); });
  if (events_) attempt(events_warned_, [&] { events_->append(row); });
  if (prometheus_) attempt(prometheus_warned_, [&] { prometheus_->update(row); });
  if (command_) command_->send(json_line(row, kind_));
}

void RunFiles::append_event(const std::string& json) {
  if (log_) attempt(log_warned_, [&] { log_->append_event(json); });
  if (command_) command_->send(json);
}

void RunFiles::append_sample(int64_t step, const std::string& text) {
  if (samples_) attempt(samples_warned_, [&] { samples_->append(step, text); });
}

void RunFiles::complete(const LogRow& row, bool measured) {
  if (measured) attempt(log_warned_, [&] { log_->complete(row); });
  if (events_) attempt(events_warned_, [&] { events_->append(row); });
  if (prometheus_) attempt(prometheus_warned_, [&] { prometheus_->update(row); });
  if (command_ && measured) command_->send(json_line(row, kind_));
}

void RunFiles::sync() {
  log_->sync(), samples_->sync();
  if (events_) events_->sync();
  if (prometheus_) attempt(prometheus_warned_, [&] { prometheus_->write(); });
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
