// Rules by name: those of the files that the build lists (cmake/braid-rules.cmake), then those that a program
// registers.
#pragma once
#include <string>
#include <vector>

#include "braid/tensor/error.h"

namespace braid::nn {

template <class Rule>  // has a name
class RuleList {
 public:
  // kinds: of the message "two <kinds> are called NAME".
  RuleList(const char* kinds, std::vector<Rule> built_in) : kinds_(kinds), all_(std::move(built_in)) {}

  const std::vector<Rule>& all() const { return all_; }
  // Throws Error(setting) when the name is taken. Not thread-safe.
  void add(const Rule& rule) {
    check(!find(rule.name), ErrorKind::setting, [&] { return str("two ", kinds_, " are called ", rule.name); });
    all_.push_back(rule);
  }
  const Rule* find(const std::string& name) const {  // or null
    for (const Rule& rule : all_)
      if (rule.name == name) return &rule;
    return nullptr;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const Rule& rule : all_) names.push_back(rule.name);
    return names;
  }

 private:
  const char* kinds_;
  std::vector<Rule> all_;
};

}  // namespace braid::nn
