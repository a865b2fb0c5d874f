#include "apps/train/log/weight_hashes.h"

#include "apps/cli/text.h"
#include "braid/models/training/trainer.h"
#include "braid/models/whole_parameters.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/checksum.h"
#include "braid/tensor/io/line_reader.h"
#include "braid/tensor/io/path_status.h"

namespace braid::apps {

namespace fs = std::filesystem;

namespace {

constexpr const char* kHead = "step,crc32c\n";

struct Line {
  int64_t step;
  uint32_t hash;
};
// "40,0a1b2c3d"
std::optional<Line> parse_line(const std::string& text) {
  const size_t comma = text.find(',');
  if (comma == std::string::npos || text.size() != comma + 9) return std::nullopt;
  const std::optional<int64_t> step = parse_int(text.substr(0, comma));
  const std::string digits = text.substr(comma + 1);
  if (!step || digits.find_first_not_of("0123456789abcdef") != std::string::npos) return std::nullopt;
  return Line{*step, static_cast<uint32_t>(std::stoul(digits, nullptr, 16))};
}

// Bytes before the first line that is unfinished or of a later step; none where there is no file.
int64_t bytes_until(const fs::path& file, int64_t step) {
  if (!io::exists(file)) return INT64_MAX;
  io::LineReader lines(file.string());
  for (bool head = true; lines.next(); head = false) {
    const std::optional<Line> line = parse_line(lines.text());
    if (!lines.complete() || (!head && (!line || line->step > step))) return lines.begin();
  }
  return INT64_MAX;
}

}  // namespace

uint32_t weight_hash(const models::Trainer& trainer) {
  uint32_t hash = 0;
  const std::vector<nn::NamedTensor>& parameters = trainer.parameters();
  const std::vector<Tensor> whole = models::whole_parameters(trainer.model(), parameters, trainer.mesh().tensor);
  for (size_t i = 0; i < whole.size(); ++i) {
    const std::string& name = parameters[i].name;
    const Tensor values = whole[i].contiguous();
    hash = io::crc32c(name.data(), std::ssize(name), hash);
    hash = io::crc32c(values.raw(), values.numel() * size_of(values.dtype()), hash);
  }
  return hash;
}

std::map<int64_t, uint32_t> read_weight_hashes(const fs::path& file) {
  std::map<int64_t, uint32_t> hashes;
  io::LineReader lines(file.string());
  for (int64_t number = 1; lines.next() && lines.complete(); ++number) {
    const std::optional<Line> line = parse_line(lines.text());
    if (line) hashes[line->step] = line->hash;
    check(line || number == 1, ErrorKind::input, [&] {
      return str("line ", number, " of ", file.string(), " has no checksum: expected STEP,CRC32C, found '",
                 lines.text(), "'; take the file of the run as it was written");
    });
  }
  return hashes;
}

WeightHashes::WeightHashes(const fs::path& file, int64_t step) : file_(file.string(), bytes_until(file, step)) {
  file_.follow(kHead);
}

void WeightHashes::append(int64_t step, uint32_t hash) { file_.append(str(step, ",", detail::hex(hash, 8), "\n")); }

}  // namespace braid::apps
