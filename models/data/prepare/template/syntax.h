// A template as a tree of nodes. Trees are of bounded depth, since walks over them recurse.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "braid/models/data/prepare/template/value.h"

namespace braid::models::text::jinja {

struct Node;
using Nodes = std::vector<std::unique_ptr<Node>>;

struct Node {
  enum class Kind {
    // expressions
    constant,     // value
    name,         // name
    list,         // kids
    tuple,        // kids
    dict,         // kids: key, value, key, value ...
    attribute,    // kids[0] . name
    item,         // kids[0] [ kids[1] ]
    slice,        // kids[0] [ kids[1] : kids[2] : kids[3] ], where null is none
    call,         // kids[0] ( kids[1] ..., named )
    filter,       // kids[0] | name ( kids[1] ..., named ); kids[0] is null in {% set x | name %}
    test,         // kids[0] is name ( kids[1] ..., named )
    unary,        // name kids[0]: - + not
    binary,       // kids[0] name kids[1]
    compare,      // kids[0] names[0] kids[1] names[1] kids[2] ...
    conditional,  // kids[0] if kids[1] else kids[2], which may be null
    // statements
    data,        // value
    output,      // {{ kids[0] }}
    branch,      // if kids[0] body, else other, in which an elif is a branch
    loop,        // for names in kids[0] if kids[1] (may be null), body, else other
    assign,      // set names = kids[0]
    capture,     // set names[0], body, kids[0]: filters of it, or null
    macro,       // name, named: parameters with defaults (may be null), body
    generation,  // body
    leave,       // break
    proceed,     // continue
  };
  static constexpr int max_depth = 200;

  Kind kind;
  int line = 1;
  int depth = 1;
  std::string name = "";
  Value value = {};
  Nodes kids = {};
  std::vector<std::pair<std::string, std::unique_ptr<Node>>> named = {};
  std::vector<std::string> names = {};  // of assign: NAME, or SPACE.NAME of a namespace
  Nodes body = {}, other = {};
  bool unpacks = false;  // names are those of a tuple, even where there is one
};

// Error(input) names the line and what is not supported.
Nodes parse(std::string_view source, const std::string& name);

}  // namespace braid::models::text::jinja
