#include "apps/eval/tasks.h"

#include <algorithm>
#include <filesystem>

#include "apps/cli/text.h"
#include "apps/eval/templates.h"
#include "braid/models/eval/document_tasks.h"
#include "braid/models/eval/generate_task.h"
#include "braid/models/eval/in_context_task.h"
#include "braid/models/eval/text_task.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/checksum.h"
#include "braid/tensor/io/reader.h"

namespace braid::apps {
namespace {

using namespace models::eval;
using models::text::TaskSet;
using models::text::Vocabulary;

constexpr const char *kInContext = "in-context", *kInContextSeen = "in-context-seen", *kRecall = "recall";
constexpr int64_t kSamples = 4, kRecallSamples = 64;  // of each built-in task, by default
constexpr int64_t kLargestTemplate = 1 << 20;

std::string checksum(const std::string& bytes) { return detail::hex(io::crc32c(bytes.data(), std::ssize(bytes)), 8); }

std::vector<models::text::TaskSample> built_in_samples(const std::string& name, const TaskSettings& settings) {
  const Vocabulary vocabulary = name == kInContextSeen ? Vocabulary::train : Vocabulary::held_out;
  const TaskSet set = name == kRecall ? TaskSet::recall : TaskSet::in_context;
  const int64_t of_each = set == TaskSet::recall ? kRecallSamples : kSamples;
  const int64_t n = settings.limit > 0 ? settings.limit : of_each * models::text::task_count(set);
  std::vector<models::text::TaskSample> samples;
  for (int64_t i = 0; i < n; ++i) samples.push_back(models::text::make_task_sample(vocabulary, settings.seed, i, set));
  return samples;
}

}  // namespace

std::vector<std::string> task_names() {
  std::vector<std::string> names = {kInContext, kInContextSeen, kRecall};
  for (const TemplateText& text : built_in_templates()) names.push_back(text.name);
  return names;
}

TaskArgument::TaskArgument(const std::string& argument) : argument_(argument) {
  const size_t toml = argument.find(".toml:");
  const size_t colon = toml == std::string::npos ? argument.find(':') : toml + 5;
  form_name_ = argument.substr(0, colon);
  if (colon != std::string::npos) file_ = argument.substr(colon + 1);
  const bool generated = form_name_ == kInContextSeen || form_name_ == kRecall;  // and from no file
  const bool in_context = form_name_ == kInContext || generated;
  check(!file_.empty() || (in_context && colon == std::string::npos), ErrorKind::setting, [&] {
    return "bad task '" + preview(argument) + "': expected NAME:FILE, with one of " + join(task_names(), ", ") +
           " or the file of a template (.toml) as NAME, found no file" + did_you_mean(form_name_, task_names());
  });
  check(file_.empty() || !generated, ErrorKind::setting,
        [&] { return "bad task '" + preview(argument) + "': " + form_name_ + " has no file; give in-context:FILE"; });
  if (in_context) return;
  TemplateText text{form_name_, ""};
  if (form_name_.ends_with(".toml")) {
    text.toml = io::read_text_file(form_name_, kLargestTemplate);
  } else {
    const TemplateText* built_in = find_template(form_name_);
    check(built_in != nullptr, ErrorKind::setting, [&] {
      return "unknown task '" + preview(form_name_) + "': expected one of " + join(task_names(), ", ") +
             ", or the file of a template (.toml)" + did_you_mean(form_name_, task_names());
    });
    text = *built_in;
  }
  toml_ = text.toml;
  form_ = parse_template(text);
}

std::string TaskArgument::file_stem() const {
  const auto stem = [](const std::string& path) {
    std::string name = std::filesystem::path(path).filename().string();
    return name.substr(0, name.find('.', 1));
  };
  return stem(form_name_) + (file_.empty() ? "" : "-" + stem(file_));
}

bool TaskArgument::takes_shots() const { return !toml_.empty() && form_.kind != TaskKind::text; }

std::unique_ptr<EvalTask> TaskArgument::make(const TaskSettings& settings, PairEncoder& encoder,
                                             const std::vector<int32_t>& ends) const {
  if (toml_.empty()) {
    if (file_.empty()) return make_in_context_task(built_in_samples(form_name_, settings), encoder);
    std::vector<models::text::TaskSample> samples = read_in_context_samples(file_);
    if (settings.limit > 0 && std::ssize(samples) > settings.limit) samples.resize(static_cast<size_t>(settings.limit));
    return make_in_context_task(samples, encoder);
  }
  if (form_.kind == TaskKind::text)
    return make_text_task(read_texts(form_, file_), encoder, settings.stride, settings.limit);
  Shots shots{.count = settings.shots, .seed = settings.seed};
  if (shots.count > 0 && !settings.shots_from.empty()) shots.pool = read_documents(form_, settings.shots_from);
  if (form_.kind == TaskKind::generate)
    return make_generate_task(form_, read_documents(form_, file_), shots, settings.limit, encoder, ends);
  return make_document_task(form_, read_documents(form_, file_), shots, settings.limit, encoder);
}

Fingerprint TaskArgument::fingerprint(const TaskSettings& settings) const {
  Fingerprint print = {{"task", form_name_}, {"template", toml_.empty() ? "built in" : checksum(toml_)}};
  print.emplace_back("file", file_.empty() ? "none" : checksum(read_decompressed(file_)));
  print.emplace_back("limit", std::to_string(settings.limit));
  if (takes_shots()) {
    print.emplace_back("shots", std::to_string(settings.shots));
    if (settings.shots > 0 || form_.generate.temperature > 0) print.emplace_back("seed", std::to_string(settings.seed));
    if (settings.shots > 0)
      print.emplace_back("shots_from",
                         settings.shots_from.empty() ? "the task" : checksum(read_decompressed(settings.shots_from)));
  } else if (!toml_.empty()) {
    print.emplace_back("stride", settings.stride == 0 ? "disjoint" : std::to_string(settings.stride));
  } else if (file_.empty()) {
    print.emplace_back("seed", std::to_string(settings.seed));
  }
  return print;
}

}  // namespace braid::apps
