#include "braid/models/inference/constraint/schema.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "braid/models/inference/constraint/schema_parts.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"

namespace braid::models {
namespace schema {
namespace {

using nlohmann::ordered_json;
using Op = Grammar::Op;

constexpr std::pair<const char*, const char*> kKeywords[] = {{"properties", "object"},
                                                             {"required", "object"},
                                                             {"additionalProperties", "object"},
                                                             {"items", "array"},
                                                             {"prefixItems", "array"},
                                                             {"minItems", "array"},
                                                             {"maxItems", "array"},
                                                             {"minLength", "string"},
                                                             {"maxLength", "string"},
                                                             {"minimum", "number"},
                                                             {"maximum", "number"},
                                                             {"exclusiveMinimum", "number"},
                                                             {"exclusiveMaximum", "number"},
                                                             {"type", ""}};
constexpr const char* kTypes[] = {"object", "array", "string", "number", "integer", "boolean", "null"};
constexpr int kMaxDepth = 200;
constexpr size_t kMaxWords = 1000, kMaxReferences = 500;

class SchemaCompiler {
 public:
  SchemaCompiler(GrammarWriter& writer, const ordered_json& root) : w_(writer), root_(root) {}

  void value(const SchemaAt& at) {
    const Deeper deeper(depth_, at);
    if (at.schema == true || at.schema == ordered_json::object()) return w_.json_value();
    if (at.schema == false) at.fail("permits no value: expected another schema than false");
    if (!at.schema.is_object()) at.fail(str("is no schema: expected an object or true, found ", at.schema.type_name()));
    for (const char* whole : {"$ref", "const", "enum", "anyOf", "oneOf", "allOf"})
      if (at.schema.contains(whole)) return combined(whole, at);
    by_type(at);
  }

 private:
  struct Deeper {
    Deeper(int& depth, const SchemaAt& at) : depth_(depth) {
      if (++depth_ > kMaxDepth) at.fail(str("is too deep: at most ", kMaxDepth, " schemas inside one another"));
    }
    ~Deeper() { --depth_; }
    int& depth_;
  };

  // Nothing but annotations stands beside a keyword, or those that are named.
  void only(const SchemaAt& at, const char* keyword, std::initializer_list<std::string_view> others = {}) {
    for (const auto& [name, value] : at.schema.items())
      if (name != keyword && !is_annotation(name) && std::ranges::count(others, name) == 0)
        at.fail(str("'", detail::preview(name), "' is not supported beside '", keyword, "'"));
  }

  void combined(const std::string& keyword, const SchemaAt& at) {
    const ordered_json& value = at.schema.at(keyword);
    if (keyword == "$ref") return only(at, "$ref"), reference(at);
    if (keyword == "const") return only(at, "const", {"type"}), constants(at, ordered_json::array({value}));
    if (keyword == "enum") return only(at, "enum", {"type"}), constants(at, value);
    if (!value.is_array() || value.empty()) at.fail(str("'", keyword, "' must be a list of schemas, not empty"));
    if (keyword == "allOf") return only(at, "allOf"), all_of(at, value);
    only(at, keyword.c_str());
    if (keyword == "oneOf") check_exclusive(at, root_);
    w_.either(value.size(), [&](size_t i) { this->value(at.below(keyword, i)); });
  }

  void reference(const SchemaAt& at) {
    const SchemaAt target = resolve(at, root_);
    if (const auto known = references_.find(target.path); known != references_.end()) return w_.call(known->second);
    if (references_.size() == kMaxReferences)
      at.fail(str("has too many references: at most ", kMaxReferences, " different ones"));
    const uint32_t rule =
        w_.rule([&] { value(target); }, [&](uint32_t begin) { references_[target.path] = begin; }, target.path);
    w_.call(rule);
  }

  void constants(const SchemaAt& at, const ordered_json& values) {
    if (!values.is_array() || values.empty()) at.fail("'enum' must be a list of values, not empty");
    if (values.size() > kMaxWords)
      at.fail(str("'enum' has too many values: at most ", kMaxWords, ", found ", values.size()));
    const std::vector<std::string> types = types_of(at);
    std::vector<std::string> words;
    for (const ordered_json& value : values)
      if (types.empty() || std::ranges::any_of(types, [&](const std::string& t) { return has_type(value, t); }))
        words.push_back(value.dump());
    if (words.empty()) at.fail("permits no value: none of its values has the type");
    std::ranges::sort(words);
    words.erase(std::unique(words.begin(), words.end()), words.end());
    w_.words(words);
  }

  // One schema, or objects whose properties differ.
  void all_of(const SchemaAt& at, const ordered_json& parts) {
    if (parts.size() == 1) return value(at.below("allOf", 0));
    const ordered_json merged = merged_objects(at, root_);
    value({merged, at.path + "/allOf"});
  }

  // The types that a schema names; none: it does not say.
  std::vector<std::string> types_of(const SchemaAt& at) {
    const auto type = at.schema.find("type");
    if (type == at.schema.end()) return {};
    const ordered_json list = type->is_array() ? *type : ordered_json::array({*type});
    std::vector<std::string> types;
    for (const ordered_json& one : list) {
      if (!one.is_string() || std::ranges::count(kTypes, one.get<std::string>()) == 0)
        at.fail("'type' must be object, array, string, number, integer, boolean or null, or a list of these");
      types.push_back(one.get<std::string>());
    }
    if (types.empty()) at.fail("'type' must name a type: expected one or a list, found an empty list");
    return types;
  }

  void by_type(const SchemaAt& at) {
    std::vector<std::string> types = types_of(at), implied;
    for (const auto& [name, value] : at.schema.items()) {
      if (is_annotation(name)) continue;
      const auto known = std::ranges::find(kKeywords, name, [](const auto& k) { return std::string(k.first); });
      if (known == std::end(kKeywords))
        at.fail(str("has the keyword '", detail::preview(name), "', which is not supported"));
      if (*known->second && std::ranges::count(implied, known->second) == 0) implied.push_back(known->second);
    }
    if (types.empty() && implied.size() > 1) at.fail("has keywords of several types: expected 'type' beside them");
    if (types.empty()) types = implied;
    if (types.empty()) return w_.json_value();
    w_.either(types.size(), [&](size_t i) { typed(types[i], at); });
  }

  void typed(const std::string& type, const SchemaAt& at) {
    if (type == "object") return object(at);
    if (type == "array") return array(at);
    if (type == "string") {
      const auto [min, max] = at.counts("minLength", "maxLength");
      return w_.json_string(min, max);
    }
    if (type == "boolean") return w_.words({"false", "true"});
    if (type == "null") return w_.text("null");
    write_number(w_, at, type == "integer");
  }

  void object(const SchemaAt& at) {
    const ObjectParts parts = object_parts(at);
    if (parts.any) return w_.json_object();
    write_object(w_, parts, [&](const SchemaAt& property) { value(property); });
  }

  void array(const SchemaAt& at) {
    const auto [min, max] = at.counts("minItems", "maxItems");
    const ordered_json prefix = at.schema.value("prefixItems", ordered_json::array());
    if (!prefix.is_array()) at.fail("'prefixItems' must be a list of schemas");
    const auto items = at.schema.find("items");
    if (items != at.schema.end() && items->is_array()) at.fail("'items' must be a schema; a list is 'prefixItems'");
    const auto fixed = static_cast<uint32_t>(prefix.size());
    const bool rest = items != at.schema.end() ? *items != false : (fixed == 0 || min > fixed);
    const uint32_t most = rest ? max : std::min(max, fixed);
    if (min > most) at.fail(str("permits no value: at least ", min, " items, of which ", most, " have a schema"));
    w_.text("[");
    w_.white_space();
    uint32_t item = 0;
    if (rest && most > fixed) {
      item = w_.rule([&] {
        if (items == at.schema.end())
          w_.json_value();
        else
          value(at.below("items"));
        w_.white_space();
      });
    }
    std::vector<GrammarWriter::Label> ends;  // where the list may end before
    for (uint32_t i = 0; i < std::min(most, fixed + (item ? 1 : 0)); ++i) {
      if (i >= min) ends.push_back(w_.add(Op::split, w_.here() + 1));
      if (i > 0) w_.text(","), w_.white_space();
      if (i < fixed)
        value(at.below("prefixItems", i)), w_.white_space();
      else
        w_.call(item);
    }
    if (item && most > fixed + 1) {
      const uint32_t next = w_.rule([&] {
        w_.text(",");
        w_.white_space();
        w_.call(item);
      });
      w_.repeat(next, min > fixed ? min - fixed - 1 : 0, most == Grammar::unlimited ? most : most - fixed - 1);
    }
    for (const GrammarWriter::Label end : ends) w_.at(end).b = w_.here();
    w_.text("]");
  }

  GrammarWriter& w_;
  const ordered_json& root_;
  std::map<std::string, uint32_t> references_;  // rules by their paths
  int depth_ = 0;
};

ordered_json parsed(std::string_view schema, const std::string& path) {
  ordered_json root = ordered_json::parse(schema, nullptr, false);
  if (root.is_discarded()) SchemaAt{root, path}.fail("is no JSON");
  return root;
}

// Free text up to and with the mark, or the end of the answer. Reads like the search of Knuth, Morris and Pratt: the
// state is the longest end of the text that the mark begins with.
void write_text_up_to(GrammarWriter& w, const std::string& mark) {
  std::vector<GrammarWriter::Label> labels;
  std::vector<std::pair<GrammarWriter::Label, size_t>> jumps;
  for (size_t k = 0; k < mark.size(); ++k) {
    std::map<size_t, ByteSet> targets;
    for (int b = 0; b < kNoText; ++b) {
      const std::string read = mark.substr(0, k) + static_cast<char>(b);
      size_t next = read.size();
      while (next > 0 && read.compare(read.size() - next, next, mark, 0, next) != 0) --next;
      targets[next].set(static_cast<size_t>(b));
    }
    targets[0].set(kNoText);
    labels.push_back(w.here());
    w.optional([&] { w.add(Op::accept); });
    w.either(targets.size(), [&](size_t i) {
      const auto& [next, set] = *std::next(targets.begin(), static_cast<std::ptrdiff_t>(i));
      w.bytes(set);
      jumps.emplace_back(w.add(Op::jump), next);
    });
  }
  labels.push_back(w.here());
  for (const auto& [jump, target] : jumps) w.at(jump).a = labels[target];
}

}  // namespace
}  // namespace schema

Grammar json_schema_grammar(std::string_view schema) {
  const nlohmann::ordered_json root = schema::parsed(schema, "#");
  GrammarWriter writer;
  writer.white_space();
  schema::SchemaCompiler(writer, root).value({root, "#"});
  writer.add(Grammar::Op::accept);
  return writer.finish();
}

Grammar tool_call_grammar(const std::vector<CallableTool>& tools, const CallRules& rules) {
  GrammarWriter w;
  const uint32_t call = w.rule([&] {
    w.either(tools.size(), [&](size_t i) {
      const nlohmann::ordered_json root =
          tools[i].parameters.empty() ? nlohmann::ordered_json{{"type", "object"}, {"additionalProperties", false}}
                                      : schema::parsed(tools[i].parameters, str("tools[", i, "]"));
      w.text("{");
      w.white_space();
      w.text("\"name\"");
      w.white_space();
      w.text(":");
      w.white_space();
      w.text(nlohmann::ordered_json(tools[i].name).dump());
      w.white_space();
      w.text(",");
      w.white_space();
      w.text("\"arguments\"");
      w.white_space();
      w.text(":");
      w.white_space();
      schema::SchemaCompiler(w, root).value({root, str("tools[", i, "]")});
      w.white_space();
      w.text("}");
    });
    w.text(rules.end);
  });
  if (rules.text_first)
    schema::write_text_up_to(w, rules.begin);
  else
    w.text(rules.begin);
  w.call(call);
  if (!rules.several) {
    w.add(Grammar::Op::accept);
    return w.finish();
  }
  const GrammarWriter::Label again = w.here();
  const bool marked = !rules.answer_end.empty();  // by text, which may be white space
  if (!marked) w.white_space();
  w.optional([&] { w.add(Grammar::Op::accept); });
  if (marked) w.optional([&] { w.text(rules.answer_end), w.add(Grammar::Op::accept); });
  w.text(rules.begin);
  w.call(call);
  w.add(Grammar::Op::jump, again);
  return w.finish();
}

}  // namespace braid::models
