// Base, rotated part and scaling of the rotary position embedding. transformers 4 keeps base and part beside the object
// rope_scaling; 5 keeps all in the object rope_parameters. Where a file says the same thing twice, versions differ in
// which place counts, so the places must agree.
#include <algorithm>
#include <cmath>

#include "braid/models/families/config_file.h"
#include "braid/models/families/dcformer/config_keys.h"
#include "braid/models/families/dcformer/huggingface/config.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"

namespace braid::models {
namespace {

using nlohmann::json;

constexpr const char* kObjects[] = {"rope_parameters", "rope_scaling"};

struct NamedValue {
  std::string name;
  const json* value;
};

const json* object_at(const json& config, const std::string& name, const std::string& file) {
  const json* value = find_key(config, name);
  if (!value || value->is_null()) return nullptr;
  if (!value->is_object()) bad_config("bad value for " + name, file, "an object", shown(*value));
  return value;
}

// The places of the keys `outside` of the objects and of `inside` in them.
std::vector<NamedValue> named_values(const json& config, const std::vector<std::string>& outside,
                                     const std::string& inside, const std::string& file) {
  std::vector<NamedValue> found;
  const auto add = [&](const json& object, const std::string& name, const std::string& full) {
    const json* value = find_key(object, name);
    if (value && !value->is_null()) found.push_back({full, value});
  };
  for (const std::string& name : outside) add(config, name, name);
  for (const char* object : kObjects)
    if (const json* dict = object_at(config, object, file)) add(*dict, inside, str(object, ".", inside));
  return found;
}

double number_at(const NamedValue& named, const ValueRule& rule, const std::string& file) {
  double number = 0;
  read_setting(Setting("", &number, "", rule), named.name, *named.value, file);
  return number;
}

// The value that all places agree on; `absent` without any.
double agreed(const std::vector<NamedValue>& all, const ValueRule& rule, double absent, const std::string& file) {
  if (all.empty()) return absent;
  const double first = number_at(all[0], rule, file);
  for (const NamedValue& other : all) {
    if (number_at(other, rule, file) != first)
      bad_config(all[0].name + " and " + other.name + " contradict each other", file, "one value",
                 shown(*all[0].value) + " and " + shown(*other.value),
                 "versions of transformers differ in which one counts; remove the wrong one");
  }
  return first;
}

RopeScaling read_scaling(const json& dict, const std::string& name, const std::string& file) {
  static const std::vector<std::string> known = {"rope_type",        "type",
                                                 "factor",           "low_freq_factor",
                                                 "high_freq_factor", "original_max_position_embeddings",
                                                 "rope_theta",       "partial_rotary_factor",
                                                 "beta_fast",        "beta_slow",
                                                 "attention_factor"};
  const json *type = find_key(dict, "rope_type"), *older = find_key(dict, "type");
  if (!type || type->is_null()) type = older;
  RopeScaling scaling;
  using Kind = RopeScaling::Kind;
  if (!type || type->is_null() || *type == "default")
    scaling.kind = Kind::none;
  else if (*type == "linear")
    scaling.kind = Kind::linear;
  else if (*type == "llama3")
    scaling.kind = Kind::llama3;
  else if (*type == "yarn")
    scaling.kind = Kind::yarn;
  else
    bad_config("bad value for the type of " + name, file, "default, linear, llama3 or yarn", shown(*type),
               "other kinds of scaling are not supported");
  if (older && !older->is_null() && *older != *type)
    bad_config(name + ".rope_type and " + name + ".type contradict each other", file, "one kind of scaling",
               shown(*type) + " and " + shown(*older));
  for (const auto& [key, value] : dict.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end() && !value.is_null())
      bad_config("unknown key '" + name + "." + detail::preview(key) + "'", file, detail::join(known, ", "),
                 shown(value), "it could change the rotation of queries and keys");
  }
  const auto number = [&](const char* key) {
    const json* value = find_key(dict, key);
    if (!value || value->is_null())
      bad_config("missing key", file, "'" + name + "." + key + "' with type " + shown(*type), "none");
    return number_at({name + "." + key, value}, {.type = ValueType::number, .min = 0, .max = 1e9, .min_open = true},
                     file);
  };
  if (scaling.kind != Kind::none) scaling.factor = number("factor");
  if (scaling.kind == Kind::yarn) {  // each may be absent
    const auto optional = [&](const char* key, double& into) {
      if (const json* value = find_key(dict, key); value && !value->is_null()) into = number(key);
    };
    optional("beta_fast", scaling.beta_fast);
    optional("beta_slow", scaling.beta_slow);
    optional("attention_factor", scaling.attention_factor);
    if (scaling.beta_slow >= scaling.beta_fast)
      bad_config("bad value for " + name + ".beta_slow", file,
                 "less than beta_fast = " + detail::shortest(scaling.beta_fast), detail::shortest(scaling.beta_slow));
  }
  if (scaling.kind == Kind::llama3) {
    scaling.low_freq_factor = number("low_freq_factor");
    scaling.high_freq_factor = number("high_freq_factor");
    if (scaling.low_freq_factor >= scaling.high_freq_factor)
      bad_config("bad value for " + name + ".low_freq_factor", file,
                 "less than high_freq_factor = " + detail::shortest(scaling.high_freq_factor),
                 detail::shortest(scaling.low_freq_factor));
  }
  if (scaling.kind == Kind::llama3 || scaling.kind == Kind::yarn) {
    const double original = number("original_max_position_embeddings");
    if (original != std::floor(original))
      bad_config("bad value for " + name + ".original_max_position_embeddings", file, "an integer",
                 detail::shortest(original));
    scaling.original_block_size = static_cast<int64_t>(original);
  }
  return scaling;
}

}  // namespace

json with_one_rotary(const Dialect& d, const json& object, const std::string& file) {
  const auto local = std::ranges::find(d.keys, "rope_local_base", &KeyName::setting);
  const json* both = object_at(object, kObjects[0], file);
  if (local == d.keys.end() || !both || !both->contains("full_attention")) return object;
  json one = object;
  one[kObjects[0]] = *object_at(*both, "full_attention", file);
  for (const auto& [name, value] : both->items()) {
    if (name == "full_attention") continue;
    const std::string full = str(kObjects[0], ".", detail::preview(name));
    if (name != "sliding_attention" || !value.is_object())
      bad_config("bad value for " + full, file, "an object full_attention and an object sliding_attention",
                 shown(value));
    if (read_scaling(value, full, file).kind != RopeScaling::Kind::none)
      bad_config("bad value for the type of " + full, file, "default", shown(value), "only full layers are scaled");
    if (const json* base = find_key(value, "rope_theta")) {
      const json* older = find_key(object, local->key);
      if (older && *older != *base)
        bad_config(full + ".rope_theta and " + local->key + " contradict each other", file, "one value",
                   shown(*base) + " and " + shown(*older));
      one[local->key] = *base;
    }
  }
  return one;
}

void read_rotary(const Dialect& d, const json& object, DcformerConfig& c, const std::string& file) {
  const std::vector<Setting> table = key_table(c);
  std::vector<std::string> outside = {d.theta_key};
  if (d.theta_key != "rope_theta") outside.emplace_back("rope_theta");
  c.rope_base = agreed(named_values(object, outside, "rope_theta", file), find_setting(table, "rope_base")->rule,
                       d.theta_absent, file);

  outside = {"partial_rotary_factor"};
  if (!d.partial_key.empty()) outside.insert(outside.begin(), d.partial_key);
  const std::vector<NamedValue> partial = named_values(object, outside, "partial_rotary_factor", file);
  c.rotary_pct = agreed(partial, find_setting(table, "rotary_pct")->rule, *detail::parse_float(d.partial_absent), file);
  if (d.partial_key.empty() && c.rotary_pct != 1)
    bad_config("bad value for " + partial[0].name, file, "1", shown(*partial[0].value),
               "transformers ignores it or fails, depending on the kind of scaling");

  std::vector<std::pair<std::string, RopeScaling>> scalings;
  for (const char* name : kObjects)
    if (const json* dict = object_at(object, name, file)) scalings.emplace_back(name, read_scaling(*dict, name, file));
  if (!scalings.empty()) c.rope_scaling = scalings[0].second;
  if (scalings.size() > 1 && !(scalings[0].second == scalings[1].second))
    bad_config("rope_parameters and rope_scaling contradict each other", file, "one scaling",
               shown(object["rope_parameters"]) + " and " + shown(object["rope_scaling"]),
               "versions of transformers differ in which one counts; remove the wrong one");
}

// Floats stay floats (10000.0): transformers checks the types.
void write_rotary(const Dialect& d, const DcformerConfig& c, nlohmann::ordered_json& object) {
  object[d.theta_key] = c.rope_base;
  if (!d.partial_key.empty()) object[d.partial_key] = c.rotary_pct;
  const RopeScaling& s = c.rope_scaling;
  using Kind = RopeScaling::Kind;
  if (s.kind == Kind::none)
    object["rope_scaling"] = nullptr;
  else if (s.kind == Kind::linear)  // the older versions read "type" and these two keys only
    object["rope_scaling"] = {{"type", "linear"}, {"factor", s.factor}};
  else if (s.kind == Kind::yarn)
    object["rope_scaling"] = {
        {"rope_type", "yarn"},
        {"factor", s.factor},
        {"beta_fast", s.beta_fast},
        {"beta_slow", s.beta_slow},
        {"attention_factor", s.attention_factor > 0 ? nlohmann::ordered_json(s.attention_factor) : nullptr},
        {"original_max_position_embeddings", s.original_block_size}};
  else
    object["rope_scaling"] = {{"rope_type", "llama3"},
                              {"factor", s.factor},
                              {"low_freq_factor", s.low_freq_factor},
                              {"high_freq_factor", s.high_freq_factor},
                              {"original_max_position_embeddings", s.original_block_size}};
}

}  // namespace braid::models
