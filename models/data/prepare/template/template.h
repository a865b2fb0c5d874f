// A chat template of a model's folder: a program in Jinja, as transformers renders it. The subset of Jinja that chat
// templates use; all else is an error that names it and its line. A template comes from outside: its steps, its depth
// and the length of its texts are bounded, it reads nothing but its variables, and no clock.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "braid/models/data/prepare/template/value.h"

namespace braid::models::text::jinja {

struct Node;

class Template {
 public:
  // name: for messages, such as "chat_template of FILE". Error(input) names the line and what is not supported.
  Template(std::string_view source, std::string name);
  ~Template();

  // The text. Error(input) names the line; of raise_exception('...') it has the text.
  Text render(const std::map<std::string, Value>& variables) const;
  bool has_generation() const { return has_generation_; }  // has {% generation %} blocks
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::vector<std::unique_ptr<Node>> nodes_;
  bool has_generation_ = false;
};

}  // namespace braid::models::text::jinja
