#include "braid/models/training/checkpoint/manifest.h"

#include <algorithm>
#include <ctime>
#include <exception>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "braid/distributed/job/run_on_all_ranks.h"
#include "braid/distributed/sharding/partition.h"
#include "braid/models/training/checkpoint/checkpoint.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/checksum.h"
#include "braid/tensor/io/json.h"
#include "braid/tensor/io/path_status.h"
#include "braid/tensor/io/reader.h"

namespace braid::models {

namespace fs = std::filesystem;

namespace {

struct Entry {
  std::string file, crc32c;
  uint64_t bytes = 0;
};

// The contribution of the bytes [begin, end) to the checksum of the file, which is the exclusive or of the
// contributions of its slices.
uint32_t checksum_of_slice(const fs::path& path, dist::Range slice) {
  io::Reader reader(path.string());
  reader.seek(slice.begin);
  std::vector<char> block(static_cast<size_t>(std::min<int64_t>(1 << 20, slice.end - slice.begin)));
  uint32_t crc = 0;
  for (int64_t at = slice.begin; at < slice.end;) {
    int64_t n = std::min(static_cast<int64_t>(block.size()), slice.end - at);
    reader.read(block.data(), n);
    crc = io::crc32c(block.data(), n, crc);
    at += n;
  }
  return io::crc32c_share(crc, reader.size() - slice.end);
}

// Every regular file below `folder`, by relative path, sorted.
std::vector<std::string> names_below(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::path& file : io::files_below(folder))
    names.push_back(file.lexically_relative(folder).generic_string());
  return names;
}

// A copy of step-20 under the name step-40 is not the state after 40 steps.
void check_step(const fs::path& checkpoint, const char* file, int64_t step) {
  const std::optional<int64_t> name = step_of_name(checkpoint.filename().string());
  check(!name || *name == step, ErrorKind::input,
        [&] { return str(file, " is of step ", step, ", but the folder's name is of step ", *name); });
}

std::vector<Entry> read_manifest(const fs::path& checkpoint) {
  nlohmann::json manifest = io::read_json_file((checkpoint / kManifestFile).string(), 16 << 20);
  const bool lists = manifest.is_object() && manifest.contains("files") && manifest["files"].is_object();
  check(lists, ErrorKind::input, "its manifest lists no files");
  check(manifest.at("format") == 1, ErrorKind::input, "its manifest is not of format 1");
  check_step(checkpoint, kManifestFile, manifest.at("step").get<int64_t>());
  std::vector<Entry> entries;
  for (const auto& [name, entry] : manifest["files"].items())
    entries.push_back({name, entry.at("crc32c").get<std::string>(), entry.at("bytes").get<uint64_t>()});
  for (const char* needed : {"config.json", kWeightsFile, kOptimizerFile, kStateFile}) {
    check(manifest["files"].contains(needed), ErrorKind::input,
          [&] { return str("its manifest does not list ", needed); });
  }
  return entries;
}

// Size, inode and times of every file of a checkpoint. Empty when a file is missing, and when one was modified in the
// clock tick that is now: another change within the same tick would leave no trace.
std::string stamps_of(const fs::path& checkpoint) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);  // the clock of file times
  std::ostringstream stamps;
  try {
    for (const std::string& name : names_below(checkpoint)) {
      const auto found = io::path_status(checkpoint / name);
      if (!found) return "";
      const struct stat& s = *found;
      const bool older =
          s.st_mtim.tv_sec < now.tv_sec || (s.st_mtim.tv_sec == now.tv_sec && s.st_mtim.tv_nsec < now.tv_nsec);
      if (!older) return "";
      stamps << name << ' ' << s.st_size << ' ' << s.st_ino << ' ' << s.st_mtim.tv_sec << '.' << s.st_mtim.tv_nsec
             << ' ' << s.st_ctim.tv_sec << '.' << s.st_ctim.tv_nsec << '\n';
    }
  } catch (const io::SystemError&) {
    return "";
  }
  return stamps.str();
}

}  // namespace

void write_manifest(const fs::path& folder, int64_t step, const std::map<std::string, uint32_t>& known_checksums) {
  nlohmann::ordered_json files = nlohmann::ordered_json::object();
  for (const std::string& name : names_below(folder)) {
    if (name == kManifestFile) continue;
    fs::path path = folder / name;
    const int64_t bytes = io::Reader(path.string()).size();
    auto known = known_checksums.find(name);
    uint32_t crc = known == known_checksums.end() ? checksum_of_slice(path, {0, bytes}) : known->second;
    files[name] = {{"bytes", bytes}, {"crc32c", detail::hex(crc, 8)}};
  }
  nlohmann::ordered_json manifest{{"format", 1}, {"step", step}, {"files", files}};
  io::write_file((folder / kManifestFile).string(), manifest.dump(1) + "\n");
}

std::optional<std::string> find_damage(const fs::path& checkpoint, const dist::Communicator& world) {
  // Each rank sends either what is wrong, or " " and the contributions of its slices to the checksums.
  std::vector<Entry> entries;
  std::string mine;
  std::exception_ptr unreadable;  // which says nothing about damage
  try {
    entries = read_manifest(checkpoint);
    std::string shares;
    for (const Entry& entry : entries) {
      fs::path path = checkpoint / entry.file;
      const auto found = io::path_status(path);
      check(found && S_ISREG(found->st_mode), ErrorKind::input, [&] { return entry.file + " is missing"; });
      const auto bytes = static_cast<uint64_t>(found->st_size);
      check(bytes == entry.bytes, ErrorKind::input,
            [&] { return str(entry.file, " has ", bytes, " bytes, expected ", entry.bytes); });
      dist::Partition slices = dist::even_partition(static_cast<int64_t>(bytes), world.size());
      shares += str(" ", checksum_of_slice(path, slices.single(world.rank())));
    }
    check_step(checkpoint, kStateFile, io::read_json_file((checkpoint / kStateFile).string(), 1 << 20).at("step"));
    mine = shares;
  } catch (const io::SystemError&) {
    unreadable = std::current_exception();
  } catch (const Error& e) {
    mine = e.what();
  } catch (const nlohmann::json::exception& e) {
    mine = str("its manifest cannot be read: ", e.what());
  }
  dist::run_on_all_ranks(world, [&] {
    if (unreadable) std::rethrow_exception(unreadable);
  });
  const std::vector<std::string> all = world.gather_text(mine);
  for (const std::string& text : all)
    if (!text.starts_with(' ')) return text;
  std::vector<uint32_t> crcs(entries.size());
  for (const std::string& text : all) {
    std::istringstream shares(text);
    uint32_t share = 0;
    for (size_t i = 0; shares >> share; ++i) crcs.at(i) ^= share;
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    if (detail::hex(crcs[i], 8) != entries[i].crc32c)
      return entries[i].file + " has checksum " + detail::hex(crcs[i], 8) + ", expected " + entries[i].crc32c;
  }
  return std::nullopt;
}

std::optional<std::string> VerdictCache::find_damage(const fs::path& checkpoint, const dist::Communicator& world) {
  Verdict& verdict = verdicts_[checkpoint];
  const std::string stamps = world.rank() == 0 ? stamps_of(checkpoint) : "";
  const bool changed = world.rank() == 0 && (stamps.empty() || stamps != verdict.stamps);
  if (world.any(changed)) verdict = {stamps, models::find_damage(checkpoint, world)};
  return verdict.damage;
}

}  // namespace braid::models
