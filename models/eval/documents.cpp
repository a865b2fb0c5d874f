#include "braid/models/eval/documents.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "braid/models/data/prepare/byte_stream.h"
#include "braid/models/data/prepare/source.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/json.h"

namespace braid::models::eval {
namespace {

using nlohmann::json;

constexpr int64_t kLargestFile = int64_t{1} << 30;

std::vector<std::string> list_of_texts(const FormatString& form, const json& object, const Location& location,
                                       const std::string& name) {
  std::vector<std::string> texts;
  const json value = form.value(object, location);
  if (!value.is_array()) bad_line(location, "a list of strings as " + name, detail::preview(value.dump(-1, ' ', true)));
  for (const json& item : value) {
    if (!item.is_string())
      bad_line(location, "a list of strings as " + name, detail::preview(value.dump(-1, ' ', true)));
    texts.push_back(item.get<std::string>());
  }
  return texts;
}

int64_t gold_of(const TaskTemplate& form, const json& object, const Document& document) {
  const Location& location = document.location;
  const auto n = std::ssize(document.choices);
  const json gold = form.gold.value(object, location);
  std::vector<std::string> labels = form.labels;
  if (form.has_label_list) labels = list_of_texts(form.label_list, object, location, "labels");
  if (gold.is_boolean()) return gold.get<bool>() ? 1 : 0;
  const std::string text = text_of(gold);
  const auto position = [&](const std::vector<std::string>& of) { return std::ranges::find(of, text) - of.begin(); };
  if (!labels.empty()) {
    const int64_t at = position(labels);
    if (at < std::min<int64_t>(std::ssize(labels), n)) return at;
    bad_line(location, "one of the labels " + detail::preview(detail::join(labels, ", ")) + " as the right choice",
             detail::preview(text));
  }
  const auto index = detail::parse_int(text);
  if (index && *index >= 0 && *index < n) return *index;
  if (gold.is_string() && !index && position(document.choices) < n) return position(document.choices);
  bad_line(location, str("the right choice as an index from 0 to ", n - 1), detail::preview(text));
}

Document document_of(const TaskTemplate& form, const json& object, const Location& location) {
  Document document{.contexts = {}, .choices = {}, .gold = 0, .location = location};
  document.description = form.description.text(object, location);
  for (const FormatString& context : form.contexts) document.contexts.push_back(context.text(object, location));
  const bool list =
      form.kind == TaskKind::generate && form.choices.size() == 1 && form.choices[0].value(object, location).is_array();
  if (form.choice_list || list)
    document.choices = list_of_texts(form.choices[0], object, location, "choices");
  else
    for (const FormatString& choice : form.choices) document.choices.push_back(choice.text(object, location));
  for (std::string& context : document.contexts) context = form.context_filter(std::move(context), location);
  for (std::string& choice : document.choices) choice = form.choice_filter(std::move(choice), location);
  if (form.kind == TaskKind::generate) {
    if (document.choices.empty()) bad_line(location, "a right answer or more", "an empty list");
    return document;
  }
  const size_t n = std::max(document.contexts.size(), document.choices.size());
  if (form.kind == TaskKind::choices && n < 2) bad_line(location, "two choices or more", std::to_string(n));
  if (document.choices.empty()) bad_line(location, "two choices or more", "none");
  for (auto* texts : {&document.contexts, &document.choices}) {
    if (texts->size() != n && texts->size() != 1)
      bad_line(location, str("as many choices as contexts, ", document.contexts.size()),
               std::to_string(document.choices.size()));
    texts->resize(n, texts->front());
  }
  for (size_t i = 0; i < n; ++i)
    if (document.choices[i].empty()) bad_line(location, str("text as choice ", i), "an empty one");
  if (form.kind == TaskKind::choices) document.gold = gold_of(form, object, document);
  if (document.gold >= std::ssize(document.choices))
    bad_line(location, str("a right choice among ", n), std::to_string(document.gold));
  return document;
}

json object_of(const text::Piece& piece, const Location& location) {
  json object;
  try {
    object = io::parse_json(piece.bytes, location.file, piece.offset);
  } catch (const Error& error) {
    fail(ErrorKind::input, str("bad line ", location.line, " in ", location.file, ": ", error.what()));
  }
  if (!object.is_object()) bad_line(location, "a JSON object", detail::preview(piece.bytes));
  return object;
}

}  // namespace

std::string read_decompressed(const std::string& file) {
  const auto stream = text::open_stream(file);
  std::string bytes;
  std::vector<char> block(1 << 16);
  for (int64_t n; (n = stream->read(block.data(), std::ssize(block))) > 0;) {
    bytes.append(block.data(), static_cast<size_t>(n));
    check(std::ssize(bytes) <= kLargestFile, ErrorKind::input,
          [&] { return "cannot read " + file + ": expected at most 1 GiB, decompressed, found more; split the file"; });
  }
  check(!bytes.empty(), ErrorKind::input,
        [&] { return "nothing to evaluate in " + file + ": expected items or text, found an empty file"; });
  return bytes;
}

void for_each_line(const std::string& file, const std::function<void(const json&, const Location&)>& take) {
  text::TextSource source({file}, {.only_jsonl = true});
  int64_t items = 0;
  for (text::Piece piece; source.next(piece); ++items) {
    const Location location{file, piece.line};
    take(object_of(piece, location), location);
  }
  check(items > 0, ErrorKind::input,
        [&] { return "no item in " + file + ": expected a JSON object in each line, found empty lines"; });
}

std::vector<Document> read_documents(const TaskTemplate& form, const std::string& file) {
  std::vector<Document> documents;
  for_each_line(file, [&](const json& object, const Location& location) {
    documents.push_back(document_of(form, object, location));
  });
  return documents;
}

std::vector<TextDocument> read_texts(const TaskTemplate& form, const std::string& file) {
  text::TextSource source({file}, {});
  std::vector<TextDocument> texts;
  for (text::Piece piece; source.next(piece);) {
    if (!piece.jsonl) {
      if (piece.first) texts.push_back({"", file});
      texts.back().text += piece.bytes;
      continue;
    }
    const Location location{file, piece.line};
    std::string text = form.text.text(object_of(piece, location), location);
    if (!text.empty()) texts.push_back({std::move(text), str("line ", piece.line, " of ", file)});
  }
  check(!texts.empty(), ErrorKind::input,
        [&] { return "nothing to evaluate in " + file + ": expected text in a line, found empty texts"; });
  for (TextDocument& document : texts) {
    if (form.text_filter.empty()) break;
    document.unfiltered = document.text;
    document.text = form.text_filter(std::move(document.text), {file});
  }
  return texts;
}

}  // namespace braid::models::eval
