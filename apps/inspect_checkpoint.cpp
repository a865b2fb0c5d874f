#include "apps/inspect_checkpoint.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <map>
#include <set>

#include "apps/cli/memory_text.h"
#include "apps/cli/text.h"
#include "braid/models/training/checkpoint/checkpoint.h"
#include "braid/models/training/checkpoint/find_model.h"
#include "braid/models/training/checkpoint/manifest.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/path_status.h"
#include "braid/tensor/io/reader.h"
#include "braid/tensor/io/safetensors.h"

namespace braid::apps {
namespace {

namespace fs = std::filesystem;

// What the files of a checkpoint and of a run folder hold, beside those of tensors.
const std::map<std::string, const char*> kContents = {
    {"config.json", "settings of the model"},
    {"generation_config.json", "end of text and defaults of sampling"},
    {"tokenizer.json", "words and merges of the tokenizer"},
    {"tokenizer_config.json", "kind of the tokenizer, chat template"},
    {"preprocessor_config.json", "size and normalisation of images"},
    {models::kManifestFile, "bytes and CRC-32C of every other file; written last"},
    {models::kStateFile, "position of the run"},
    {models::kSettingsFile, "settings of the run"},
    {"config.resolved.toml", "every setting of the run"},
    {"log.csv", "a row for each logged step: braid plot"},
    {"log.jsonl", "the same and all events, as JSON"},
    {"status.json", "what the run does now: braid status"},
    {models::kLatestFile, "name of the newest checkpoint"},
    {models::kBestFile, "name of the checkpoint with the lowest validation loss"},
};

std::string tensors_text(const fs::path& file) {
  const io::SafetensorsFile tensors(file.string());
  std::set<std::string> types;
  int64_t elements = 0;
  for (const io::TensorInfo& tensor : tensors.tensors()) {
    types.insert(tensor.dtype_name);
    elements += numel(tensor.shape);
  }
  return str(tensors.tensors().size(), " tensors of ", join({types.begin(), types.end()}, ", "), ", ",
             human(static_cast<double>(elements), 3), " numbers");
}

void print_files(const fs::path& folder, const std::vector<fs::path>& files) {
  size_t width = 0;
  for (const fs::path& file : files) width = std::max(width, file.lexically_relative(folder).string().size());
  for (const fs::path& file : files) {
    const std::string name = file.lexically_relative(folder).string();
    const auto known = kContents.find(name);
    const std::string contents = name.ends_with(".safetensors") ? tensors_text(file)
                                 : known != kContents.end()     ? known->second
                                                                : "";
    std::printf("  %-*s  %10s  %s\n", static_cast<int>(width), name.c_str(),
                bytes_text(static_cast<double>(io::path_status(file)->st_size)).c_str(), contents.c_str());
  }
}

// The first 64 bytes: 8 of the header's length, then JSON.
void print_first_bytes(const fs::path& file) {
  unsigned char bytes[64];
  io::Reader(file.string()).read(bytes, sizeof bytes);
  int64_t length = 0;
  for (size_t i = 8; i-- > 0;) length = length * 256 + bytes[i];
  std::printf("\nfirst bytes of %s\n", file.filename().c_str());
  for (size_t row = 0; row < sizeof bytes; row += 16) {
    std::printf("  %08zx ", row);
    for (size_t i = row; i < row + 16; ++i) std::printf(" %02x", bytes[i]);
    std::printf("  |");
    for (size_t i = row; i < row + 16; ++i) std::putchar(std::isprint(bytes[i]) != 0 ? bytes[i] : '.');
    std::printf("|\n");
  }
  std::printf(
      "  bytes 0 to 7 are the length of the header, %lld, the lowest byte first; then the header, as JSON: names,\n"
      "  types, shapes and positions of the tensors; then their elements, from byte %lld on\n",
      static_cast<long long>(length), static_cast<long long>(8 + length));
}

std::string newest_text(const fs::path& run) {
  std::vector<std::string> notes;
  const models::StepFolder newest = models::newest_checkpoint(run, notes);
  for (const std::string& note : notes) std::printf("%s\n", note.c_str());
  return newest.path.empty() ? "none is complete" : str("a resume takes ", newest.path.filename().string());
}

}  // namespace

bool holds_checkpoints(const fs::path& path) {
  return io::is_file(path / models::kManifestFile) || (io::is_folder(path) && models::is_run_folder(path));
}

void inspect_checkpoint(const fs::path& path) {
  if (!io::is_file(path / models::kManifestFile)) {
    const std::vector<models::StepFolder> steps = models::step_folders(path);
    std::printf("%s: a run folder with %zu checkpoint%s; %s\n\n", path.c_str(), steps.size(),
                steps.size() == 1 ? "" : "s", newest_text(path).c_str());
    std::vector<fs::path> files = io::list_folder(path);
    std::erase_if(files,
                  [](const fs::path& file) { return !io::is_file(file) || file.filename().string().starts_with("."); });
    print_files(path, files);
    for (const models::StepFolder& step : steps)
      std::printf("  %s/  braid inspect %s\n", step.path.filename().c_str(), shell_quote(step.path.string()).c_str());
    return;
  }
  const std::optional<std::string> damage = models::find_damage(path);
  check(!damage, ErrorKind::no_checkpoint, [&] {
    return str("damaged checkpoint ", path.string(), ": ", *damage, "; a resume takes the newest one that is complete");
  });
  std::printf("%s: a checkpoint; every file matches the manifest\n\n", path.c_str());
  print_files(path, io::files_below(path));
  const models::RunState state = models::read_state(path);
  std::printf("\nstep %lld, after %lld sequences of %lld tokens and %s of training, seed %lld\n",
              static_cast<long long>(state.step), static_cast<long long>(state.samples),
              static_cast<long long>(state.seq_len), duration(state.elapsed_s).c_str(),
              static_cast<long long>(state.seed));
  print_first_bytes(path / models::kWeightsFile);
}

}  // namespace braid::apps
