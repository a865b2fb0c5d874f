// The values of a run as an event file, which TensorBoard shows: TFRecords of Event messages, written by hand (the
// formats are small, and their library is not).
//
//   record   u64 length, u32 masked CRC-32C of the 8 bytes of it, the bytes of the Event, u32 their masked CRC-32C
//   Event    wall_time = 1 (f64), step = 2 (varint), file_version = 3 (text), summary = 5, session_log = 7
//   Summary  value = 1, repeated: tag = 1 (text), simple_value = 2 (f32)
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "apps/train/log/log.h"
#include "braid/tensor/io/append_file.h"

namespace braid::apps {

class EventFile {
 public:
  // A new file in `folder`. Events after `step`, from which the run continues, are cut off the files that are there,
  // and the new one says so to a TensorBoard that shows them already. Error(input) when such a file cannot be read,
  // Error(output) when one cannot be written.
  EventFile(const std::filesystem::path& folder, int64_t step);

  // The values that the row has, under "loss/train", "loss/validation", "optimizer/learning_rate", ...; of a
  // mixture under "sources/loss.NAME" and "sources/val_loss.NAME".
  void append(const LogRow& row);
  std::function<void()> sync_later() { return file_->sync_later(); }  // as AppendFile's

 private:
  std::optional<io::AppendFile> file_;
};

// The parts, for tests.
std::string event_record(const std::string& event);  // an Event with its frame
uint32_t masked_crc(const std::string& bytes);

}  // namespace braid::apps
