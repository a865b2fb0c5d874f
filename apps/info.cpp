// braid info: settings, parameters and cost of a model, without building it.
#include "apps/info.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "apps/cli/commands.h"
#include "apps/cli/memory_text.h"
#include "apps/cli/model_flags.h"
#include "apps/cli/text.h"
#include "apps/train/plan/memory.h"
#include "braid/models/cost/size.h"
#include "braid/models/folders/pretrained.h"
#include "braid/models/registry.h"
#include "braid/tensor/io/path_status.h"
#include "braid/tensor/io/reader.h"

namespace braid::apps {
namespace {

namespace fs = std::filesystem;
using models::InfoRow;
using models::InfoSection;
using models::InfoUnit;

// 13191296 -> "13 191 296"
std::string grouped(int64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3;) text.insert(at -= 3, " ");
  return text;
}

std::string value_of(const InfoRow& row) {
  switch (row.unit) {
    case InfoUnit::bytes:
      return bytes_text(row.value);
    case InfoUnit::flops:
      return human(row.value, 4);
    default:
      return grouped(static_cast<int64_t>(row.value));
  }
}

// A total count also in short form: "419.5M".
std::string note_of(const InfoRow& row) {
  return row.note.empty() && row.unit == InfoUnit::count && row.key == "total" ? human(row.value, 3) : row.note;
}

template <class... Args>
void append(std::string& text, const char* format, Args... args) {
  char line[1024];
  std::snprintf(line, sizeof line, format, args...);
  text += line;
}

std::string table(const std::string& name, const models::ModelSpec& spec, const std::vector<InfoSection>& sections,
                  const std::vector<std::string>& notes) {
  std::string text = name + "\n\nConfiguration\n";
  for (const models::ModelSetting& setting : spec.settings()) {
    if (!setting.in_use) continue;
    const std::string value = setting.value.size() > 25 ? preview(setting.value, 22) : setting.value;
    append(text, "  %-28s %-26s %s\n", setting.name.c_str(), value.c_str(), setting.help.c_str());
  }
  for (const InfoSection& section : sections) {
    text += "\n" + section.title + "\n";
    for (const InfoRow& row : section.rows) {
      const std::string note = note_of(row);
      append(text, "  %-30s %18s", row.label.c_str(), value_of(row).c_str());
      text += note.empty() ? "\n" : "   " + note + "\n";
    }
  }
  if (!notes.empty()) text += "\nNotes\n";
  for (const std::string& note : notes) text += "  " + note + "\n";
  return text;
}

std::string json(const models::ModelSpec& spec, const models::InfoRequest& request,
                 const std::vector<InfoSection>& sections, const std::vector<std::string>& notes) {
  std::string text = "{\n\"config\": " + spec.config_json();
  if (request.seq_len > 0) text += str(",\n\"seq_len\": ", request.seq_len);
  text += str(",\n\"batch\": ", request.batch);
  for (const InfoSection& section : sections) {
    text += ",\n\"" + section.key + "\": {";
    for (size_t i = 0; i < section.rows.size(); ++i)
      text += (i ? ", \"" : "\"") + section.rows[i].key + "\": " + decimal(section.rows[i].value);
    text += "}";
  }
  text += ",\n\"notes\": " + nlohmann::json(notes).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return text + "\n}\n";
}

// The weights of a folder, whose names, shapes and types have been checked; no data is read.
InfoSection weight_section(const models::WeightFormat& format) {
  int64_t bytes = 0;
  std::set<std::string> files;
  for (const models::StoredTensor& t : format.tensors) {
    bytes += numel(t.shape) * size_of(t.dtype);
    files.insert(t.file);
  }
  return {"stored_weights",
          "Weights in the folder",
          {{"tensors", "tensors", static_cast<double>(format.tensors.size()), InfoUnit::count, format.describe()},
           {"files", "files", static_cast<double>(files.size())},
           {"bytes", "size", static_cast<double>(bytes), InfoUnit::bytes}}};
}

// Whether the model can be trained and can generate here, by the bytes that `sections` say for f32.
InfoSection machine_section(const models::ModelSpec& spec, const models::InfoRequest& request,
                            const std::vector<InfoSection>& sections) {
  TrainConfig config;
  config.train.batch_size = request.batch;
  const int64_t T = std::max<int64_t>(1, request.seq_len);
  const double there = memory_of_this_machine(), train = memory_needed(config, spec, T);
  InfoSection machine{"machine", "This machine", {{"memory", "memory", there, InfoUnit::bytes}}};
  const auto add = [&](const char* key, const char* label, double bytes, const std::string& advice) {
    machine.rows.push_back({key, label, bytes, InfoUnit::bytes, bytes <= there ? "fits" : "DOES NOT FIT" + advice});
  };
  add("train", "training, f32, AdamW", train, memory_advice(config, spec, T, there));
  for (const InfoSection& section : sections)
    for (const InfoRow& row : section.rows)
      if (section.key == "inference_memory" && (row.key == "total" || section.rows.size() == 1))
        add("generate", "generation, f32", row.value, "; --dtype bf16 needs half");
  return machine;
}

// A preset's name, a config.json, a model folder, or a run folder with checkpoints. Where there are weights, they are
// checked against their configuration and described in `sections`. notes: on what the folder says.
std::unique_ptr<const models::ModelSpec> load(const std::string& model, const models::SettingTexts& settings,
                                              const fs::path& base, std::vector<InfoSection>& sections,
                                              std::vector<std::string>& notes) {
  const std::vector<std::string> names = models::model_presets();
  const bool preset = std::find(names.begin(), names.end(), model) != names.end();
  const bool looks_like_file = model.find('/') != std::string::npos || model.ends_with(".json");
  if (preset || (!io::exists(model) && !looks_like_file)) return models::configure_model(model, settings);
  if (!io::is_folder(model) && model.ends_with(".json")) {
    const std::string text = io::read_text_file(model, 1 << 20);
    const auto spec = models::read_model_spec(text, model);
    notes = spec->config_notes(text, model);
    return spec->with(settings);
  }
  models::ModelFolder folder = models::inspect_model(model_folder(model), base);
  notes = folder.notes;
  if (folder.format) sections.push_back(weight_section(*folder.format));
  return folder.spec->with(settings);
}

std::string difference(int64_t parameters, int64_t target) {
  char text[48];
  std::snprintf(text, sizeof text, "%+.3f %%", 100 * (double(parameters) / double(target) - 1));
  return text;
}

// How this model becomes as large as another, so that a comparison of the two is fair.
InfoSection match_section(const models::ModelSpec& spec, const std::string& match) {
  int64_t target = 0;
  std::string title = "Same number of parameters";
  if (const std::optional<int64_t> number = parse_int(match)) {
    check(*number > 0, ErrorKind::setting,
          [&] { return "bad value for --match-params: expected a positive number or a model, found '" + match + "'"; });
    target = *number;
  } else {
    std::vector<InfoSection> unused;
    std::vector<std::string> notes;
    try {
      target = models::model_size(*load(match, {}, {}, unused, notes)).parameters;
    } catch (const Error& e) {
      fail(e.kind(), str("bad value for --match-params: expected an integer or a model; ", e.what()));
    }
    title += " as " + match;
  }
  const int64_t now = models::model_size(spec).parameters;
  InfoSection s{"match", title, {{"target", "to match", double(target)}}};
  s.rows.push_back({"now", "this model", double(now), InfoUnit::count, difference(now, target)});
  const models::SettingTexts settings = models::matching_settings(spec, target);
  if (settings.empty()) return s;
  std::vector<std::string> words;
  for (const auto& [key, value] : settings) words.push_back(key + "=" + value);
  const int64_t matched = models::model_size(*spec.with(settings)).parameters;
  s.rows.push_back({"matched", join(words, " "), double(matched), InfoUnit::count, difference(matched, target)});
  return s;
}

int run_info(const Arguments& arguments) {
  InfoOptions options{.settings = model_keys(arguments),
                      .batch = arguments.get_int("batch"),
                      .json = arguments.has("json"),
                      .base = base_of(arguments)};
  if (arguments.has("match-params")) options.match_params = arguments.get("match-params");
  if (arguments.has("seq-len")) options.seq_len = arguments.get_int("seq-len");
  std::fputs(info_text(arguments.list("MODEL").at(0), options).c_str(), stdout);
  return 0;
}

// The presets and every key of config.json, for --help.
std::string details() {
  std::string text = "presets: " + join(models::model_presets(), ", ") + "\n\nkeys:\n";
  for (const models::ModelSetting& setting : models::model_settings()) {
    std::string row = "  " + setting.name;
    row.resize(std::max<size_t>(row.size() + 2, 30), ' ');
    text += row + setting.help + "\n";
  }
  text.pop_back();
  return text;
}

}  // namespace

std::string info_text(const std::string& model, const InfoOptions& options) {
  std::vector<InfoSection> stored;
  std::vector<std::string> notes;
  const auto spec = load(model, options.settings, options.base, stored, notes);
  const int64_t longest = spec->max_sequence_length();
  check(options.seq_len <= longest || longest == 0, ErrorKind::setting, [&] {
    return str("--seq-len is longer than the model's sequences: expected at most block_size = ", longest, ", found ",
               options.seq_len, "; add block_size=", options.seq_len);
  });
  const models::InfoRequest request{.batch = options.batch,
                                    .seq_len = longest > 0 && options.seq_len > 0 ? options.seq_len : longest};
  std::vector<InfoSection> sections = spec->info(request);
  if (!options.match_params.empty()) sections.push_back(match_section(*spec, options.match_params));
  sections.push_back(machine_section(*spec, request, sections));
  sections.insert(sections.end(), stored.begin(), stored.end());
  return options.json ? json(*spec, request, sections, notes) : table(model, *spec, sections, notes);
}

static std::vector<std::string> setting_names() {
  std::vector<std::string> names;
  for (const models::ModelSetting& setting : models::model_settings()) names.push_back(setting.name);
  return names;
}

Command info_command() {
  return {
      .name = "info",
      .summary = "parameters, FLOPs and memory of a model, without building it",
      .positionals = {{.name = "MODEL", .help = "a preset, a config.json, a model folder, a run folder or RUN/best"}},
      .flags = {integer_flag("seq-len", "T", "tokens per sequence (default: the model's block_size)", "", 1, 1 << 30),
                integer_flag("batch", "B", "sequences at a time", "1", 1, 1 << 30),
                base_flag(),
                profile_flag(),
                value_flag("match-params", "N|MODEL",
                           "also the setting that gives this model as many parameters, for a fair comparison"),
                {.name = "json", .help = "print JSON"}},
      .overrides = kModelOverrides,
      .keys = setting_names,
      .details = details(),
      .examples = {"braid info dcformer-405m", "braid info dcformer-tiny dim=512 n_layer=8 --seq-len 256 --batch 8",
                   "braid info transformer-405m --match-params dcformer-405m",
                   "braid info out/run/step-00001000 --json"},
      .run = run_info};
}

}  // namespace braid::apps
