#include "apps/train/log/event_file.h"

#include <unistd.h>

#include <cstdio>

#include "apps/cli/version.h"
#include "braid/distributed/comm/mpi_session.h"
#include "braid/tensor/io/checksum.h"
#include "braid/tensor/io/path_status.h"
#include "braid/tensor/io/reader.h"

namespace braid::apps {
namespace fs = std::filesystem;
namespace {

constexpr const char* prefix = "events.out.tfevents.";  // the name that TensorBoard looks for

template <class T>
std::string raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};  // little-endian, as every machine that Braid runs on
}

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

// Fields of a protocol buffer: the key is the number and the wire type.
std::string key(int number, int wire) { return varint(static_cast<uint64_t>(number << 3 | wire)); }
std::string whole_field(int number, int64_t value) { return key(number, 0) + varint(static_cast<uint64_t>(value)); }
std::string f64_field(int number, double value) { return key(number, 1) + raw(value); }
std::string f32_field(int number, double value) { return key(number, 5) + raw(static_cast<float>(value)); }
std::string bytes_field(int number, const std::string& bytes) { return key(number, 2) + varint(bytes.size()) + bytes; }

std::string event_head(int64_t step) { return f64_field(1, unix_time()) + whole_field(2, step); }

uint64_t take_varint(const std::string& bytes, size_t& at) {
  uint64_t value = 0;
  for (int shift = 0; at < bytes.size() && shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes[at++]);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) break;
  }
  return value;
}

// The step of an Event; 0 when it has none.
int64_t step_of(const std::string& event) {
  for (size_t at = 0; at < event.size();) {
    const uint64_t field = take_varint(event, at);
    if (field == (2 << 3 | 0)) return static_cast<int64_t>(take_varint(event, at));
    const uint64_t wire = field & 7;
    if (wire == 0) take_varint(event, at);
    if (wire == 1) at += 8;
    if (wire == 5) at += 4;
    if (wire == 2) {
      const uint64_t size = take_varint(event, at);
      if (size > event.size() - at) break;
      at += size;
    }
    if (wire == 3 || wire == 4 || wire > 5) break;
  }
  return 0;
}

// Bytes of the file up to the first event after `step`, or up to what a killed process left half written.
int64_t bytes_up_to(const std::string& path, int64_t step) {
  io::Reader file(path);
  int64_t keep = 0;
  while (file.remaining() >= 16) {
    const auto length = file.read<uint64_t>();
    const auto length_crc = file.read<uint32_t>();
    if (length_crc != masked_crc(raw(length)) || length > static_cast<uint64_t>(file.remaining())) break;
    const std::string event = file.read_string(static_cast<int64_t>(length));
    if (file.remaining() < 4 || file.read<uint32_t>() != masked_crc(event) || step_of(event) > step) break;
    keep = file.position();
  }
  return keep;
}

}  // namespace

uint32_t masked_crc(const std::string& bytes) {
  const uint32_t crc = io::crc32c(bytes.data(), static_cast<int64_t>(bytes.size()));
  return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

std::string event_record(const std::string& event) {
  const std::string length = raw(static_cast<uint64_t>(event.size()));
  return length + raw(masked_crc(length)) + event + raw(masked_crc(event));
}

EventFile::EventFile(const fs::path& folder, int64_t step) {
  io::make_folder(folder);
  int64_t files = 0;
  for (const fs::path& path : io::list_folder(folder, ErrorKind::output)) {
    if (!path.filename().string().starts_with(prefix)) continue;
    ++files;
    io::AppendFile(path.string(), bytes_up_to(path.string(), step));
  }
  // TensorBoard reads the files of a folder in the order of their names, which begin with the time.
  char name[400];
  std::snprintf(name, sizeof name, "%s%010lld.%s.%d.%lld", prefix, static_cast<long long>(unix_time()),
                dist::host_name().c_str(), static_cast<int>(::getpid()), static_cast<long long>(files));
  file_.emplace((folder / name).string(), 0);
  file_->append(event_record(event_head(0) + bytes_field(3, "brain.Event:2")));
  if (files > 0)  // SessionLog with status = 1 (START): what is known of this step and later ones does not count
    file_->append(event_record(event_head(step + 1) + bytes_field(7, whole_field(1, 1))));
}

void EventFile::append(const LogRow& row) {
  std::string values;
  for (const LogColumn& column : log_columns) {
    const LogName name(column);
    if (row.has(name) && !column.tag.empty())
      values += bytes_field(1, bytes_field(1, std::string(column.tag)) + f32_field(2, row[name]));
  }
  for (const auto& [column, value] : row.sources)
    if (!std::isnan(value)) values += bytes_field(1, bytes_field(1, "sources/" + column) + f32_field(2, value));
  file_->append(event_record(event_head(row.step) + bytes_field(5, values)));
}

}  // namespace braid::apps
