#include "braid/nn/optim/groups.h"

#include <algorithm>

#include "braid/nn/name_pattern.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"

namespace braid::nn {

namespace {

constexpr const char* kSetting = "optimizer.groups";

[[noreturn]] void reject(const std::string& text, const std::string& why) {
  fail(ErrorKind::setting, str("bad value for ", kSetting, ": '", detail::preview(text), "' ", why,
                               "; expected PATTERN [lr=FACTOR] [tail=linear | tail=1-sqrt | tail=cosine] "
                               "[weight_decay=W] [update=matrix | update=elements] [frozen_until=N | frozen | "
                               "trained]"));
}

double number(const std::string& group, const std::string& word, const std::string& value) {
  const std::optional<double> x = detail::parse_float(value);
  if (!x || !(*x >= 0) || *x > 1e6) reject(group, "has '" + word + "', not a number from 0 to 1e6");
  return *x;
}

}  // namespace

ParameterGroup parse_group(const std::string& text) {
  ParameterGroup group;
  const auto freeze = [&](int64_t until) {
    if (group.frozen_until) reject(text, "says twice until when it is frozen");
    group.frozen_until = until;
  };
  for (const std::string& word : detail::split(text, ' ')) {
    if (detail::trim(word).empty()) continue;
    const size_t equals = word.find('=');
    const std::string key = word.substr(0, equals), value = equals == word.npos ? "" : word.substr(equals + 1);
    if (group.pattern.empty()) {
      if (equals != word.npos) reject(text, "begins with '" + word + "' instead of a pattern of names");
      group.pattern = word;
    } else if (word == "frozen") {
      freeze(kNeverTrained);
    } else if (word == "trained") {
      freeze(0);
    } else if (key == "frozen_until") {
      const std::optional<int64_t> updates = detail::parse_int(value);
      if (!updates || *updates < 0 || *updates > int64_t{1'000'000'000'000})
        reject(text, "has '" + word + "', not a number of steps");
      freeze(*updates);
    } else if (key == "lr" && !group.lr) {
      group.lr = number(text, word, value);
    } else if (key == "tail" && !group.tail) {
      if (value != "linear" && value != "1-sqrt" && value != "cosine")
        reject(text, "has '" + word + "', not tail=linear, tail=1-sqrt or tail=cosine");
      group.tail = parse_schedule_tail(value);
    } else if (key == "weight_decay" && !group.weight_decay) {
      group.weight_decay = number(text, word, value);
    } else if (key == "update" && !group.elementwise) {
      if (value != "matrix" && value != "elements")
        reject(text, "has '" + word + "', not update=matrix or update=elements");
      group.elementwise = value == "elements";
    } else {
      reject(text, "has the unexpected '" + word + "'");
    }
  }
  if (group.pattern.empty()) reject(text, "has no pattern");
  if (!group.lr && !group.tail && !group.weight_decay && !group.elementwise && !group.frozen_until)
    reject(text, "sets nothing");
  return group;
}

ParameterRule rule_of(const std::vector<ParameterGroup>& groups, const std::string& name) {
  ParameterRule rule;
  for (const ParameterGroup& group : groups) {
    if (!matches(group.pattern, name)) continue;
    if (group.lr) rule.lr = *group.lr;
    if (group.tail) rule.tail = group.tail;
    if (group.weight_decay) rule.weight_decay = group.weight_decay;
    if (group.elementwise) rule.elementwise = *group.elementwise;
    if (group.frozen_until) rule.frozen_until = *group.frozen_until;
  }
  return rule;
}

bool is_matrix(const std::vector<ParameterGroup>& groups, const NamedTensor& parameter) {
  return parameter.value.rank() == 2 && !rule_of(groups, parameter.name).elementwise;
}

void check_groups(const std::vector<ParameterGroup>& groups, const std::vector<NamedTensor>& parameters) {
  std::vector<std::string> names;
  for (const NamedTensor& p : parameters) names.push_back(p.name);
  for (const ParameterGroup& group : groups) check_pattern(kSetting, group.pattern, names);
  const bool trained =
      std::ranges::any_of(names, [&](const std::string& name) { return rule_of(groups, name).frozen_until == 0; });
  check(trained || names.empty(), ErrorKind::setting, [&] {
    return str(
        kSetting,
        ": every parameter is frozen in the first step: expected at least one that is trained; add a group such as "
        "'PATTERN trained' behind the others");
  });
}

}  // namespace braid::nn
