#include "apps/prepare/images.h"

#include <cstdio>

#include "apps/cli/model_flags.h"
#include "apps/cli/progress.h"
#include "apps/cli/signals.h"
#include "apps/cli/text.h"
#include "braid/models/data/vision/prepare.h"
#include "braid/models/data/vision/preprocessing.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/reader.h"

namespace braid::apps {

namespace {

struct Stopped {};

std::string images(int64_t n) { return str(n, n == 1 ? " image" : " images"); }

std::string list(const std::vector<double>& values) {
  std::string text;
  for (const double v : values) text += (text.empty() ? "" : ", ") + human(v, 4);
  return text;
}

// The lines of a text file, without the end of the last one.
std::vector<std::string> lines_of(const std::string& file) {
  constexpr int64_t kMaxBytes = 1 << 24;
  std::string text = io::read_text_file(file, kMaxBytes);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  std::vector<std::string> lines;
  for (const std::string& line : split(text, '\n')) lines.emplace_back(trim(line));
  return lines;
}

// As the images of the model --like get their size.
models::vision::Sizing sizing_of(const Arguments& arguments) {
  check(!arguments.has("size"), ErrorKind::setting,
        "--size has no effect beside --like, whose model says how images are resized; give one");
  const std::filesystem::path folder = model_folder(arguments.get("like"));
  const auto preprocessing = models::vision::read_preprocessing(folder);
  check(preprocessing.has_value(), ErrorKind::input, [&] {
    return str("no ", models::vision::kPreprocessorFile, " in ", folder.string(),
               ": expected a model that says how its images are resized; give --size instead of --like");
  });
  return preprocessing->sizing;
}

}  // namespace

int prepare_images(const Arguments& arguments) {
  for (const char* name : {"dedup", "tasks", "tokenizer", "train-bpe", "bpe-form", "invalid", "answers", "chat"})
    check(!arguments.has(name), ErrorKind::setting,
          [&] { return str("--", name, " is for text: expected without --images; leave one of them out"); });
  models::vision::PrepareImagesOptions options;
  options.inputs = arguments.list("INPUT");
  options.val_inputs = arguments.list("val");
  if (arguments.has("classes")) options.classes = lines_of(arguments.get("classes"));
  options.output = arguments.get("out");
  options.replace = arguments.has("replace");
  options.seed = static_cast<uint64_t>(arguments.get_int("seed"));
  options.size = arguments.get_int("size");
  if (arguments.has("like")) options.sizing = sizing_of(arguments);
  if (arguments.has("val-fraction")) options.val_fraction = arguments.get_float("val-fraction");
  check(options.val_inputs.empty() || !arguments.has("val-fraction"), ErrorKind::setting,
        "--val-fraction has no effect beside --val, whose files are the validation split; give one");
  const StopSignals listening;
  models::vision::PrepareImagesSummary made;
  try {
    Progress progress(stdout);
    made = models::vision::prepare_images(options, [&](int64_t n, const std::string& name) {
      if (StopSignals::requested()) throw Stopped();
      if (n % 256 == 0) progress.update(0, images(n) + "  " + preview(name, 60), false);
    });
  } catch (const Stopped&) {
    std::printf("stopped by %s; nothing was written to %s, run the same command again\n", StopSignals::name(),
                options.output.c_str());
    return exit_stopped;
  }
  const models::vision::ImageManifest& m = made.manifest;
  std::printf("wrote %s with images of %lld x %lld x %lld (channels x height x width) in %zu classes\n",
              options.output.c_str(), static_cast<long long>(m.channels), static_cast<long long>(m.height),
              static_cast<long long>(m.width), m.classes.size());
  std::printf("  %-12s %s, mean %s, deviation %s of pixels from 0 to 1\n", "training",
              images(m.train.documents).c_str(), list(m.mean).c_str(), list(m.std).c_str());
  std::printf("  %-12s %s\n", "validation", images(m.val.documents).c_str());
  if (made.unchanged) std::printf("the folder held the same data already (fingerprint %s)\n", m.fingerprint.c_str());
  return 0;
}

std::vector<Flag> image_flags() {
  return {
      {.name = "images",
       .help = "INPUT are images: IDX files with their labels beside them, CIFAR .bin files, or folders with a "
               "folder of PNG and JPEG files for each class"},
      {.name = "classes",
       .value = "FILE",
       .help = "with --images, of IDX and CIFAR files: names of the classes, a line each, in the order of the labels"},
      integer_flag("size", "N", "with --images: resize to N x N; 0: all have the same size", "0", 0, 16384),
      {.name = "like",
       .value = "MODEL",
       .help = "with --images: resize and crop as the preprocessor_config.json of this model says",
       .option = "sizing"}};
}

}  // namespace braid::apps
