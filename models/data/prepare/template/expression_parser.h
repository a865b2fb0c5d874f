// The tokens of a template as expressions. parser.cpp adds the statements.
#pragma once
#include "braid/models/data/prepare/template/lexer.h"
#include "braid/models/data/prepare/template/syntax.h"

namespace braid::models::text::jinja {

class ExpressionParser {
 public:
  ExpressionParser(std::vector<Token> tokens, const std::string& name) : tokens_(std::move(tokens)), name_(name) {}

 protected:
  using Kind = Node::Kind;
  using NodePtr = std::unique_ptr<Node>;

  // --- tokens
  const Token& now() const { return tokens_[at_]; }
  bool is_sign(std::string_view sign) const { return now().kind == Token::Kind::sign && now().text == sign; }
  bool is_word(std::string_view word) const { return now().kind == Token::Kind::name && now().text == word; }
  static std::string shown(const Token& token);  // for messages
  [[noreturn]] void fail(const std::string& message) const;
  [[noreturn]] void unsupported(const std::string& what) const { fail(what + " is not supported"); }
  Token take() { return tokens_[now().kind == Token::Kind::end ? at_ : at_++]; }
  bool take_sign(std::string_view sign) { return is_sign(sign) && (take(), true); }
  bool take_word(std::string_view word) { return is_word(word) && (take(), true); }
  void expect_sign(std::string_view sign) {
    if (!take_sign(sign)) fail("expected '" + std::string(sign) + "', found " + shown(now()));
  }
  std::string expect_name() {
    if (now().kind != Token::Kind::name) fail("expected a name, found " + shown(now()));
    return take().text;
  }
  void expect_end_of_block() {
    if (now().kind != Token::Kind::block_end) fail("expected %}, found " + shown(now()));
    take();
  }

  // --- nodes
  NodePtr make(Kind kind, std::string name = "", Nodes kids = {}) const {
    auto node = std::make_unique<Node>(Node{.kind = kind, .line = now().line, .name = std::move(name)});
    node->kids = std::move(kids);
    return finish(std::move(node));
  }
  template <class... Kid>
  NodePtr make(Kind kind, std::string name, NodePtr first, Kid... rest) const {
    Nodes kids;
    kids.push_back(std::move(first));
    (kids.push_back(std::move(rest)), ...);
    return make(kind, std::move(name), std::move(kids));
  }
  NodePtr constant(Value value) const {
    NodePtr node = make(Kind::constant);
    node->value = std::move(value);
    return node;
  }
  NodePtr finish(NodePtr node) const;  // called when all that is below a node is there
  [[noreturn]] void too_deep() const;
  // Nesting while parsing, which recurses.
  struct Level {
    explicit Level(ExpressionParser& parser) : n(parser.level_) {
      if (++n > Node::max_depth / 2) parser.too_deep();
    }
    ~Level() { --n; }
    int& n;
  };

  // --- expressions
  NodePtr expression();
  // One expression, or several with commas. A tuple may be empty between brackets only.
  NodePtr tuple(bool in_brackets, bool conditional);
  NodePtr filter(NodePtr node);  // behind its bar

 private:
  NodePtr any_of(int tightness);
  NodePtr negation();
  NodePtr unary(bool with_filters);
  NodePtr primary();
  template <class Each>
  Nodes until(std::string_view end, const Each& each);
  NodePtr postfix(NodePtr node);
  NodePtr subscript(NodePtr node);
  NodePtr call(NodePtr node);
  NodePtr filters(NodePtr node);
  NodePtr test(NodePtr node);
  std::string dotted_name();

  std::vector<Token> tokens_;
  const std::string& name_;
  size_t at_ = 0;
  int level_ = 0;
};

}  // namespace braid::models::text::jinja
