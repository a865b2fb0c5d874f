// braid analyze: a report on what happens inside a model while it reads a text.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "apps/analyze/images.h"
#include "apps/analyze/page.h"
#include "apps/chart/chart_files.h"
#include "apps/cli/commands.h"
#include "apps/cli/loaded_model.h"
#include "apps/cli/model_flags.h"
#include "apps/cli/output_name.h"
#include "apps/cli/progress.h"
#include "apps/cli/prompt.h"
#include "apps/cli/text.h"
#include "apps/cli/text_model.h"
#include "braid/models/folders/pretrained.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/path_status.h"
#include "braid/tensor/io/reader.h"

namespace braid::apps {
namespace {

namespace fs = std::filesystem;
using analyze::AnalysedModel, analyze::Figure;
using models::AnalysisSection, models::kAnalysisSections;

constexpr int64_t kDefaultWindow = 128;

struct Loaded {
  std::string name;
  std::unique_ptr<models::LanguageModel> model;
  std::shared_ptr<const models::text::Tokenizer> tokenizer;
  models::AnalysisRequest request = {};
};

Loaded load(const Arguments& arguments, const std::string& path) {
  const fs::path folder = model_folder(path);
  models::LoadedModel loaded = load_on_device(arguments, folder, {.dtype = dtype_of(arguments)});
  Loaded result{model_name(path), models::as_language_model(std::move(loaded.model)), std::move(loaded.tokenizer)};
  nn::freeze(*result.model);
  check_tokenizer(result.tokenizer.get(), folder, "analyze reads text");
  return result;
}

// At least `count` tokens of a file, or all that it has. No more of it is read than that needs: a token at the end of
// what was read may be another than in the whole file, so some more are read.
std::vector<int32_t> tokens_of_file(const Loaded& loaded, const std::string& file, int64_t count, bool parse_specials) {
  constexpr int64_t kMargin = 64;
  const auto found = io::path_status(file);
  const int64_t size = found && S_ISREG(found->st_mode) ? int64_t{found->st_size} : 0;
  for (int64_t bytes = 8 * (count + kMargin); bytes < size; bytes *= 4) {
    std::string text = io::Reader(file).read_string(bytes);
    while (!text.empty() && !valid_utf8(text) && static_cast<int64_t>(text.size()) > bytes - 4) text.pop_back();
    std::vector<int32_t> tokens = encode_prompt(*loaded.tokenizer, *loaded.model, text, parse_specials);
    if (std::ssize(tokens) >= count + kMargin) return tokens;
  }
  return encode_prompt(*loaded.tokenizer, *loaded.model, read_whole_text(file), parse_specials);
}

// The text, where it is no file: the prompt, or standard input, which can be read once.
std::optional<std::string> given_text(const Arguments& arguments) {
  if (arguments.has("prompt")) return prompt_text(arguments);
  if (arguments.get("text") == "-") return read_whole_text("-");
  return std::nullopt;
}

std::vector<int32_t> tokens_of(const Arguments& arguments, const std::optional<std::string>& text,
                               const Loaded& loaded) {
  const int64_t count = arguments.get_int("tokens");
  const bool specials = arguments.has("parse-specials");
  std::vector<int32_t> tokens = text ? encode_prompt(*loaded.tokenizer, *loaded.model, *text, specials)
                                     : tokens_of_file(loaded, arguments.get("text"), count, specials);
  if (std::ssize(tokens) > count) tokens.resize(static_cast<size_t>(count));
  return tokens;
}

std::set<AnalysisSection> sections(const Arguments& arguments, const models::LanguageModel& model) {
  std::set<AnalysisSection> result;
  if (!arguments.has("sections")) {
    for (const AnalysisSection section : kAnalysisSections)
      if (section != AnalysisSection::mixing || models::mixes_heads(model)) result.insert(section);
    return result;
  }
  std::vector<std::string> names;
  for (const AnalysisSection section : kAnalysisSections) names.push_back(name_of(section));
  for (const std::string& item : split(arguments.get("sections"), ',')) {
    const auto at = std::ranges::find(names, std::string(trim(item)));
    check(at != names.end(), ErrorKind::setting, [&] {
      return "--sections: expected some of " + join(names, ", ") + ", found '" + preview(item) + "'" +
             did_you_mean(item, names);
    });
    result.insert(kAnalysisSections[static_cast<size_t>(at - names.begin())]);
  }
  return result;
}

// The request for one model; Error, with the model's name, where it does not fit the text or the model.
models::AnalysisRequest request_of(const Arguments& arguments, const std::optional<std::string>& text,
                                   const Loaded& loaded, int64_t longest) {
  models::AnalysisRequest r{.tokens = tokens_of(arguments, text, loaded),
                            .sections = sections(arguments, *loaded.model)};
  const int64_t T = std::ssize(r.tokens);
  check(T >= 2, ErrorKind::setting,
        [&] { return str("the text of the analysis: expected at least 2 tokens, found ", T, "; give a longer text"); });
  r.window = arguments.has("window") ? arguments.get_int("window") : std::min(longest, kDefaultWindow);
  if (!arguments.has("window") && T < r.window) {
    std::fprintf(stderr, "note: the text has %lld tokens, fewer than a window of %lld: one window of %lld is read\n",
                 static_cast<long long>(T), static_cast<long long>(r.window), static_cast<long long>(T));
    r.window = T;
  }
  r.shown = std::min(arguments.get_int("show"), r.window);
  try {
    models::check_analysis(*loaded.model, r);
  } catch (const Error& e) {
    fail(e.kind(), loaded.name + ": " + e.what());
  }
  return r;
}

AnalysedModel analysed(Loaded& loaded) {
  Progress progress(stderr);
  int shown = -1;
  const auto words = [&](double done, const std::string& what) {
    const int percent = static_cast<int>(done * 100);
    progress.update(done, loaded.name + ": " + what, percent != shown && line_due(percent, 100));
    shown = percent;
  };
  return {loaded.name, models::analyze(*loaded.model, loaded.request, words), loaded.tokenizer};
}

int run_analyze(const Arguments& arguments) {
  check_output_name("--out", arguments.get("out"));
  if (arguments.has("pictures")) return analyze::analyze_images(arguments);
  for (const char* flag : {"heads", "show-pictures", "limit"})
    check(!arguments.has(flag), ErrorKind::setting,
          [&] { return str("--", flag, " is for images: expected --pictures DATA beside it"); });
  check(arguments.has("text") != arguments.has("prompt"), ErrorKind::setting,
        "expected one of --text FILE and --prompt TEXT, found both or none");
  const fs::path out = arguments.get("out");
  const Medium medium = medium_of(arguments);
  analyze::check_report_folder(out);
  std::vector<Loaded> loaded;
  loaded.push_back(load(arguments, arguments.get("MODEL")));
  if (arguments.has("compare")) loaded.push_back(load(arguments, arguments.get("compare")));
  int64_t longest = loaded[0].model->max_sequence_length();
  for (const Loaded& l : loaded) longest = std::min(longest, l.model->max_sequence_length());
  if (loaded.size() == 2 && loaded[0].name == loaded[1].name) loaded[0].name += " (1)", loaded[1].name += " (2)";
  const std::optional<std::string> text = given_text(arguments);
  for (Loaded& l : loaded) l.request = request_of(arguments, text, l, longest);
  io::make_folder(out / "figures");

  std::vector<AnalysedModel> models;
  std::set<AnalysisSection> shown;
  for (Loaded& l : loaded) {
    models.push_back(analysed(l));
    shown.insert(l.request.sections.begin(), l.request.sections.end());
    l.model.reset();
  }
  std::vector<Figure> figures;
  int64_t written = 0;
  const analyze::FigureSink sink = [&](const Figure& f) {
    if (!shown.contains(f.section)) return;
    write_chart(out / "figures" / f.id, f.chart, f.csv, medium);
    ++written;
    if (f.on_page) figures.push_back(f);
  };
  analyze::map_figures(models, sink);
  analyze::mixing_figures(models, sink);
  analyze::head_figures(models, sink);
  analyze::circuit_figures(models, sink);
  analyze::ablation_figures(models, sink);
  analyze::lens_figures(models, sink);

  const models::Analysis& a = models[0].analysis;
  const std::string source = arguments.has("text") ? arguments.get("text") : "the prompt",
                    about =
                        str(a.windows, " window", a.windows == 1 ? "" : "s", " of ", a.window, " tokens of ", source,
                            ", each read from its beginning; maps show the first ", a.shown.size(), " tokens.");
  io::write_file((out / "index.html").string(), analyze::report_page(models, figures, about));
  for (const analyze::SummaryRow& row : analyze::summary(models)) {
    std::printf("%-50s", row.name.c_str());
    for (const std::string& value : row.values) std::printf("  %s", value.c_str());
    std::printf("\n");
  }
  std::printf("wrote %s and %lld figures beside it; open it in a browser\n", (out / "index.html").c_str(),
              static_cast<long long>(written));
  return 0;
}

}  // namespace

namespace analyze {

std::string AnalysedModel::text_of(int32_t id) const {
  const std::string text = tokenizer && id < tokenizer->vocab_size() ? tokenizer->decode(std::vector<int32_t>{id}) : "";
  return text.empty() ? str("#", id) : detail::replace_invalid_utf8(text);
}

std::string slug(const std::vector<AnalysedModel>& models, size_t m) {
  return models.size() < 2 ? "" : std::string(1, static_cast<char>('a' + m)) + "-";
}

std::vector<std::string> numbered(const std::string& word, int64_t count) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i) names.push_back(str(word, i));
  return names;
}

std::vector<std::string> texts_of(const AnalysedModel& model, const std::vector<int32_t>& ids) {
  std::vector<std::string> names;
  for (const int32_t id : ids) names.push_back(model.text_of(id));
  return names;
}

std::vector<std::string> labels_of(const AnalysedModel& model, const std::vector<int32_t>& ids) {
  std::vector<std::string> names;
  for (const int32_t id : ids) {
    std::string& name = names.emplace_back();
    for (const char c : model.text_of(id)) name += c == ' ' ? "\u00b7" : c == '\n' ? "\u21b5" : std::string(1, c);
  }
  return names;
}

}  // namespace analyze

Command analyze_command() {
  std::vector<Flag> flags = {{.name = "text", .value = "FILE", .help = "the text to read"}};
  for (Flag& flag : prompt_flags("a text instead of --text; - reads it from standard input"))
    flags.push_back(std::move(flag));
  const Flag rest[] = {
      {.name = "compare", .value = "MODEL", .help = "a second model on the same text, side by side"},
      {.name = "out", .alias = 'o', .value = "DIR", .help = "folder of the report", .fallback = "report"},
      integer_flag("window", "T", "tokens read at a time (default: 128, or the model's context if that is shorter)", "",
                   2, 65536),
      integer_flag("tokens", "N", "most tokens read in all", "1024", 2, 1e9),
      integer_flag("show", "N", "tokens of the maps", "64", 2, 512),
      value_flag("sections", "LIST",
                 "some of maps, mixing, rank, diversity, patterns, circuits, ablation, lens (default: all there are)"),
      medium_flag(),
      dtype_flag("arithmetic"),
      device_flag()};
  flags.insert(flags.end(), std::begin(rest), std::end(rest));
  for (Flag& flag : analyze::image_flags()) flags.push_back(std::move(flag));
  return {.name = "analyze",
          .summary = "a report on heads, their mixing, circuits and what the model needs, as a page of charts",
          .positionals = {{.name = "MODEL", .help = "model folder, run folder or RUN/best, with a tokenizer"}},
          .flags = std::move(flags),
          .details =
              "Writes DIR/index.html, which needs no network, and DIR/figures with every chart as SVG and its\n"
              "numbers as CSV. The text is read in windows; memory does not grow with its length.\n"
              "--for paper changes the files in DIR/figures, not the page.\n"
              "With --pictures DATA a ViT is shown: its attention over images before and after Compose, and mistakes.",
          .examples = {"braid analyze out/demo --text README.md -o report",
                       "braid analyze out/demo --compare out/demo-transformer --text README.md",
                       "braid analyze out/demo --prompt 'The fox' --sections maps,mixing --for paper",
                       "braid analyze out/fashion-mnist --pictures out/fashion-mnist-data --heads 3.0,3.1"},
          .run = run_analyze};
}

}  // namespace braid::apps
