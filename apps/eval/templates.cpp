#include "apps/eval/templates.h"

#include <algorithm>
#include <cmath>

#include "apps/cli/config_file.h"
#include "apps/cli/text.h"
#include "braid/tensor/error.h"

namespace braid::apps {
namespace {

using models::eval::FormatString;
using models::eval::TaskKind;
using models::eval::TaskTemplate;

// The entries of one template, taken one by one.
class Entries {
 public:
  explicit Entries(const TemplateText& text) : name_(text.name), entries_(parse_config(text.toml, text.name)) {
    static const std::vector<std::string> keys = {
        "kind",   "text",  "context",   "contexts",      "target",      "context_filter", "choices", "choice_filter",
        "labels", "gold",  "delimiter", "separator",     "description", "text_filter",    "stop",    "max_tokens",
        "filter", "match", "ignore",    "target_filter", "samples",     "temperature",    "top_p"};
    for (const ConfigEntry& entry : entries_) {
      if (std::ranges::find(keys, entry.key) == keys.end())
        fail(ErrorKind::setting, "unknown task field '" + preview(entry.key) + "' in " + at(entry) +
                                     ": expected one of " + join(keys, ", ") + did_you_mean(entry.key, keys));
      check(entry.problem.empty(), ErrorKind::setting,
            [&] { return "bad value for " + place(entry.key) + ": " + entry.problem; });
    }
  }

  bool has(const std::string& key) const { return find(key) != nullptr; }
  std::string place(const std::string& key) const { return key + " in " + at(*find(key)); }
  bool is_list(const std::string& key) const {
    return std::holds_alternative<std::vector<std::string>>(find(key)->value);
  }

  // One text, or where `list` several of them.
  std::vector<std::string> texts(const std::string& key, bool list) const {
    const ConfigEntry* entry = find(key);
    check(entry != nullptr, ErrorKind::setting,
          [&] { return "bad task " + name_ + ": expected the field '" + key + "', found none"; });
    if (const auto* text = std::get_if<std::string>(&entry->value)) return {*text};
    const auto* several = std::get_if<std::vector<std::string>>(&entry->value);
    check(list && several && !several->empty(), ErrorKind::setting, [&] {
      return "bad value for " + place(key) + ": expected " + (list ? "a text, or a list of texts" : "a text") +
             ", found " + preview(plain_text(entry->value));
    });
    return *several;
  }
  std::string text(const std::string& key) const { return texts(key, false)[0]; }
  std::vector<FormatString> formats(const std::string& key, bool list) const {
    std::vector<FormatString> formats;
    for (const std::string& text : texts(key, list)) formats.emplace_back(text, place(key));
    return formats;
  }
  // A number of the range, of the type of `value`, which stays where the key is not there.
  template <class T>
  void read_number(const std::string& key, T lowest, T highest, T& value) const {
    if (!has(key)) return;
    const models::Value& given = find(key)->value;
    models::ValueRule rule = between(static_cast<double>(lowest), static_cast<double>(highest));
    rule.type = models::kTypeOf<T>;
    const auto* integer = std::get_if<int64_t>(&given);
    const auto* decimal = std::is_same_v<T, double> ? std::get_if<double>(&given) : nullptr;
    const double number = integer ? static_cast<double>(*integer) : decimal ? *decimal : NAN;
    check(number >= static_cast<double>(lowest) && number <= static_cast<double>(highest), ErrorKind::setting,
          [&] { return models::bad_value(place(key), rule, plain_text(given)); });
    value = integer ? static_cast<T>(*integer) : static_cast<T>(number);
  }
  // The index of the text among the names.
  int64_t one_of_names(const std::string& key, const std::vector<std::string>& names, const std::string& text) const {
    const auto found = std::ranges::find(names, text);
    check(found != names.end(), ErrorKind::setting,
          [&] { return models::bad_value(place(key), one_of(names), "'" + preview(text) + "'", text); });
    return found - names.begin();
  }
  void read_filter(const std::string& key, models::eval::Filters& filters) const {
    if (has(key)) filters = models::eval::Filters(text(key), place(key));
  }
  // Fields that this kind of task does not have.
  void exclude(const std::string& kind, const std::vector<std::string>& keys) const {
    for (const std::string& key : keys)
      check(!has(key), ErrorKind::setting,
            [&] { return "bad task " + name_ + ": a task of kind " + kind + " has no field '" + key + "'"; });
  }

 private:
  std::string at(const ConfigEntry& entry) const { return str(name_, " line ", entry.line); }
  const ConfigEntry* find(const std::string& key) const {
    const auto found = std::ranges::find(entries_, key, &ConfigEntry::key);
    return found == entries_.end() ? nullptr : &*found;
  }

  std::string name_;
  std::vector<ConfigEntry> entries_;
};

void read_choices(const Entries& entries, TaskTemplate& form) {
  entries.exclude("choices", {entries.has("contexts") ? "context" : "contexts"});
  entries.exclude("choices", {entries.has("target") ? "choices" : "target"});
  form.contexts = entries.has("contexts") ? entries.formats("contexts", true) : entries.formats("context", false);
  form.choices = entries.formats(entries.has("target") ? "target" : "choices", !entries.has("target"));
  form.choice_list = entries.has("choices") && !entries.is_list("choices");
  form.gold = entries.formats("gold", false)[0];
  if (entries.has("labels") && entries.is_list("labels")) form.labels = entries.texts("labels", true);
  form.has_label_list = entries.has("labels") && !entries.is_list("labels");
  if (form.has_label_list) form.label_list = entries.formats("labels", false)[0];
}

const std::vector<std::string> kKindNames = {"text", "last_word", "choices", "generate"};  // in the order of TaskKind
const std::vector<std::string> kGenerateKeys = {"stop",          "max_tokens", "filter",      "match", "ignore",
                                                "target_filter", "samples",    "temperature", "top_p"};

void read_generate(const Entries& entries, TaskTemplate& form) {
  form.contexts = entries.formats("context", false);
  form.choices = entries.formats("target", true);
  models::eval::GenerateForm& g = form.generate;
  if (entries.has("stop")) g.stops = entries.texts("stop", true);
  check(std::ranges::count(g.stops, "") == 0, ErrorKind::setting,
        [&] { return models::bad_value(entries.place("stop"), {}, "an empty string among the stop strings"); });
  entries.read_number<int64_t>("max_tokens", 1, 1 << 20, g.max_tokens);
  entries.read_number<int64_t>("samples", 1, 10000, g.samples);
  entries.read_number<double>("temperature", 0, 100, g.temperature);
  entries.read_number<double>("top_p", 0, 1, g.top_p);
  check(g.samples == 1 || g.temperature > 0, ErrorKind::setting, [&] {
    return "bad task " + form.name + ": samples above 1 expect a temperature above 0, found 0, which makes them equal";
  });
  entries.read_filter("filter", g.filter);
  entries.read_filter("target_filter", g.target_filter);
  if (entries.has("match"))
    g.rule.kind = static_cast<models::eval::MatchKind>(
        entries.one_of_names("match", {"exact", "contains", "regex"}, entries.text("match")));
  if (!entries.has("ignore")) return;
  bool* const ignored[] = {&g.rule.ignore_case, &g.rule.ignore_punctuation, &g.rule.ignore_commas};
  for (const std::string& name : entries.texts("ignore", true))
    *ignored[entries.one_of_names("ignore", {"case", "punctuation", "commas"}, name)] = true;
  check(g.rule.kind != models::eval::MatchKind::regex || !(g.rule.ignore_punctuation || g.rule.ignore_commas),
        ErrorKind::setting, [&] {
          return "bad task " + form.name + ": match = \"regex\" expects ignore = \"case\" or none; let the pattern " +
                 "or the filter allow for punctuation and commas";
        });
}

}  // namespace

const TemplateText* find_template(const std::string& name) {
  const auto found = std::ranges::find(built_in_templates(), name, &TemplateText::name);
  return found == built_in_templates().end() ? nullptr : &*found;
}

TaskTemplate parse_template(const TemplateText& text) {
  const Entries entries(text);
  TaskTemplate form{.name = text.name};
  const std::string kind = entries.text("kind");
  form.kind = static_cast<TaskKind>(entries.one_of_names("kind", kKindNames, kind));
  const std::vector<std::string> of_choices = {"contexts", "choices", "choice_filter", "labels", "gold"};
  if (form.kind != TaskKind::generate) entries.exclude(kind, kGenerateKeys);
  if (form.kind == TaskKind::text) {
    entries.exclude(kind, of_choices);
    entries.exclude(kind, {"description", "context", "context_filter", "target", "delimiter", "separator"});
    form.text = entries.formats("text", false)[0];
    entries.read_filter("text_filter", form.text_filter);
    return form;
  }
  if (form.kind == TaskKind::last_word) {
    entries.exclude(kind, of_choices);
    form.contexts = entries.formats("context", false);
    form.choices = entries.formats("target", false);
    form.delimiter = "";
  } else if (form.kind == TaskKind::generate) {
    entries.exclude(kind, of_choices);
    read_generate(entries, form);
  } else {
    read_choices(entries, form);
  }
  entries.exclude(kind, {"text", "text_filter"});
  entries.read_filter("context_filter", form.context_filter);
  entries.read_filter("choice_filter", form.choice_filter);
  if (entries.has("description")) form.description = entries.formats("description", false)[0];
  if (entries.has("delimiter")) form.delimiter = entries.text("delimiter");
  if (entries.has("separator")) form.separator = entries.text("separator");
  return form;
}

}  // namespace braid::apps
