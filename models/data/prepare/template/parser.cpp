#include <algorithm>

#include "braid/models/data/prepare/template/expression_parser.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"

namespace braid::models::text::jinja {
namespace {

using Words = std::initializer_list<std::string_view>;

class Parser : ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Nodes whole() {
    Nodes nodes = body({});
    if (now().kind != Token::Kind::end) fail("unexpected " + shown(now()));
    return nodes;
  }

 private:
  // Up to a block of one of the names, whose name is left to be taken.
  Nodes body(Words ends) {
    const Level level(*this);
    Nodes nodes;
    for (;;) {
      if (now().kind == Token::Kind::data) {
        NodePtr node = make(Kind::data);
        node->value = Value::string(take().text);
        nodes.push_back(std::move(node));
      } else if (now().kind == Token::Kind::variable_begin) {
        take();
        nodes.push_back(make(Kind::output, "", tuple(false, true)));
        if (now().kind != Token::Kind::variable_end) fail("expected }}, found " + shown(now()));
        take();
      } else if (now().kind == Token::Kind::block_begin) {
        take();
        if (now().kind != Token::Kind::name) fail("expected the name of a statement, found " + shown(now()));
        if (std::ranges::count(ends, now().text) > 0) return nodes;
        nodes.push_back(statement());
      } else {
        if (ends.size() > 0) fail(str("expected {% ", *(ends.end() - 1), " %}, found ", shown(now())));
        return nodes;
      }
    }
  }
  NodePtr statement() {
    const std::string word = now().text;
    if (word == "if") return branch();
    if (word == "for") return loop();
    if (word == "set") return assignment();
    if (word == "macro") return macro();
    if (word == "generation") {
      NodePtr node = make(Kind::generation);
      take();
      expect_end_of_block();
      node->body = body({"endgeneration"});
      return end(std::move(node));
    }
    if (word == "break" || word == "continue") {
      if (loops_ == 0) fail("{% " + word + " %} outside of a loop");
      NodePtr node = make(word == "break" ? Kind::leave : Kind::proceed);
      return end(std::move(node));
    }
    unsupported("the statement {% " + detail::preview(word) + " %}");
  }
  NodePtr end(NodePtr node) {
    take();
    expect_end_of_block();
    return finish(std::move(node));
  }
  NodePtr branch() {
    const Level level(*this);
    NodePtr node = make(Kind::branch);
    take();  // if, or elif
    node->kids.push_back(tuple(false, false));
    expect_end_of_block();
    node->body = body({"elif", "else", "endif"});
    if (is_word("elif")) {
      node->other.push_back(branch());
      return finish(std::move(node));
    }
    if (take_word("else")) {
      expect_end_of_block();
      node->other = body({"endif"});
    }
    return end(std::move(node));
  }
  // NAME, NAME.NAME where that may be, or several.
  void targets(Node& node, bool attributes) {
    const bool brackets = take_sign("(");
    do {
      if (is_word("in") || now().kind == Token::Kind::block_end || is_sign("=") || is_sign(")")) break;
      std::string name = expect_name();
      for (const char* word : {"true", "false", "none", "True", "False", "None"})
        if (name == word) fail("cannot assign to " + name);
      if (attributes && take_sign(".")) name += "." + expect_name();
      node.names.push_back(name);
      node.unpacks = node.unpacks || is_sign(",") || brackets;
    } while (take_sign(","));
    if (brackets) expect_sign(")");
    if (node.names.empty()) fail("expected a name, found " + shown(now()));
  }
  NodePtr loop() {
    NodePtr node = make(Kind::loop);
    take();
    targets(*node, false);
    if (!take_word("in")) fail("expected 'in', found " + shown(now()));
    node->kids.push_back(tuple(false, false));
    node->kids.push_back(take_word("if") ? expression() : nullptr);
    if (is_word("recursive")) unsupported("a recursive loop");
    expect_end_of_block();
    ++loops_;
    node->body = body({"else", "endfor"});
    --loops_;
    if (take_word("else")) {
      expect_end_of_block();
      node->other = body({"endfor"});
    }
    return end(std::move(node));
  }
  NodePtr assignment() {
    NodePtr node = make(Kind::assign);
    take();
    targets(*node, true);
    if (take_sign("=")) {
      node->kids.push_back(tuple(false, true));
      expect_end_of_block();
      return finish(std::move(node));
    }
    if (node->names.size() > 1) fail("expected '=', found " + shown(now()));
    node->kind = Kind::capture;
    NodePtr after;
    while (take_sign("|")) after = filter(std::move(after));
    node->kids.push_back(std::move(after));
    expect_end_of_block();
    node->body = body({"endset"});
    return end(std::move(node));
  }
  NodePtr macro() {
    NodePtr node = make(Kind::macro);
    take();
    node->name = expect_name();
    expect_sign("(");
    for (bool first = true; !take_sign(")"); first = false) {
      if (!first) expect_sign(",");
      const std::string name = expect_name();
      node->named.emplace_back(name, take_sign("=") ? expression() : nullptr);
    }
    expect_end_of_block();
    const int loops = std::exchange(loops_, 0);
    node->body = body({"endmacro"});
    loops_ = loops;
    return end(std::move(node));
  }

  int loops_ = 0;
};

}  // namespace

Nodes parse(std::string_view source, const std::string& name) {
  return Parser(read_tokens(source, name), name).whole();
}

}  // namespace braid::models::text::jinja
