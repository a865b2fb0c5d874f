#include "braid/models/data/prepare/template/expression_parser.h"

#include <algorithm>

#include "braid/models/data/prepare/template/functions.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"

namespace braid::models::text::jinja {
namespace {

using Ptr = std::unique_ptr<Node>;
using Words = std::initializer_list<std::string_view>;

}  // namespace

std::string ExpressionParser::shown(const Token& token) {
  switch (token.kind) {
    case Token::Kind::end:
      return "the end of the template";
    case Token::Kind::block_end:
    case Token::Kind::variable_end:
      return "the end of the tag";
    default:
      return "'" + detail::preview(token.text) + "'";
  }
}

void ExpressionParser::fail(const std::string& message) const {
  braid::fail(ErrorKind::input, str(name_, ", line ", now().line, ": ", message));
}

Ptr ExpressionParser::finish(NodePtr node) const {
  for (const Nodes* nodes : {&node->kids, &node->body, &node->other})
    for (const NodePtr& kid : *nodes)
      if (kid) node->depth = std::max(node->depth, 1 + kid->depth);
  for (const auto& [key, kid] : node->named)
    if (kid) node->depth = std::max(node->depth, 1 + kid->depth);
  if (node->depth > Node::max_depth) too_deep();
  return node;
}

void ExpressionParser::too_deep() const {
  fail(str("the template is nested too deeply: at most ", Node::max_depth, " levels"));
}

// --- expressions, the loosest binding first
Ptr ExpressionParser::expression() {
  const Level level(*this);
  NodePtr node = any_of(0);
  while (take_word("if")) {
    NodePtr condition = any_of(0), otherwise = take_word("else") ? expression() : nullptr;
    node = make(Kind::conditional, "", std::move(node), std::move(condition), std::move(otherwise));
  }
  return node;
}

// or, and, not and comparisons, + -, ~, * / // %, **
Ptr ExpressionParser::any_of(int tightness) {
  static constexpr std::string_view signs[][4] = {{}, {}, {}, {"+", "-"}, {"~"}, {"*", "/", "//", "%"}, {"**"}};
  if (tightness == 2) return negation();
  if (tightness == 7) return unary(true);
  NodePtr node = any_of(tightness + 1);
  for (;;) {
    std::string sign;
    if (tightness < 2) {
      sign = tightness == 0 ? "or" : "and";
      if (!take_word(sign)) return node;
    } else {
      if (now().kind != Token::Kind::sign || std::ranges::count(signs[tightness], now().text) == 0) return node;
      sign = take().text;
    }
    node = make(Kind::binary, sign, std::move(node), any_of(tightness + 1));
  }
}

Ptr ExpressionParser::negation() {
  const Level level(*this);
  if (take_word("not")) return make(Kind::unary, "not", negation());
  NodePtr first = any_of(3);
  std::vector<std::string> signs;
  Nodes kids;
  kids.push_back(std::move(first));
  for (;;) {
    const Token next = tokens_[std::min(at_ + 1, tokens_.size() - 1)];
    if (now().kind == Token::Kind::sign && std::ranges::count(Words{"==", "!=", "<", "<=", ">", ">="}, now().text) > 0)
      signs.push_back(take().text);
    else if (take_word("in"))
      signs.push_back("in");
    else if (is_word("not") && next.kind == Token::Kind::name && next.text == "in")
      take(), take(), signs.push_back("not in");
    else
      break;
    kids.push_back(any_of(3));
  }
  if (signs.empty()) return std::move(kids[0]);
  NodePtr node = make(Kind::compare, "", std::move(kids));
  node->names = std::move(signs);
  return node;
}

Ptr ExpressionParser::unary(bool with_filters) {
  const Level level(*this);
  NodePtr node;
  if (is_sign("-") || is_sign("+")) {
    const std::string sign = take().text;
    node = make(Kind::unary, sign, unary(false));
  } else {
    node = primary();
  }
  node = postfix(std::move(node));
  return with_filters ? filters(std::move(node)) : std::move(node);
}

Ptr ExpressionParser::primary() {
  const Level level(*this);
  if (now().kind == Token::Kind::name) {
    const std::string word = take().text;
    if (word == "true" || word == "True") return constant(Value::boolean(true));
    if (word == "false" || word == "False") return constant(Value::boolean(false));
    if (word == "none" || word == "None") return constant(Value::none());
    return make(Kind::name, word);
  }
  if (now().kind == Token::Kind::string) {
    std::string text;
    while (now().kind == Token::Kind::string) text += take().text;
    return constant(Value::string(text));
  }
  if (now().kind == Token::Kind::integer) return constant(Value::integer(take().integer));
  if (now().kind == Token::Kind::number) return constant(Value::number(take().number));
  if (take_sign("(")) {
    NodePtr node = tuple(true, true);
    expect_sign(")");
    return node;
  }
  if (take_sign("[")) return make(Kind::list, "", until("]", [&](Nodes& kids) { kids.push_back(expression()); }));
  if (take_sign("{"))
    return make(Kind::dict, "", until("}", [&](Nodes& kids) {
                  kids.push_back(expression());
                  expect_sign(":");
                  kids.push_back(expression());
                }));
  fail("expected an expression, found " + shown(now()));
}

template <class Each>
Nodes ExpressionParser::until(std::string_view end, const Each& each) {
  Nodes kids;
  while (!take_sign(end)) {
    if (!kids.empty()) {
      expect_sign(",");
      if (take_sign(end)) break;
    }
    each(kids);
  }
  return kids;
}

Ptr ExpressionParser::tuple(bool in_brackets, bool conditional) {
  Nodes kids;
  bool commas = false;
  for (;;) {
    const Token::Kind kind = now().kind;
    if (kind == Token::Kind::variable_end || kind == Token::Kind::block_end || is_sign(")")) break;
    kids.push_back(conditional ? expression() : any_of(0));
    if (!take_sign(",")) break;
    commas = true;
  }
  if (kids.size() == 1 && !commas) return std::move(kids[0]);
  if (kids.empty() && !in_brackets) fail("expected an expression, found " + shown(now()));
  return make(Kind::tuple, "", std::move(kids));
}

Ptr ExpressionParser::postfix(NodePtr node) {
  for (;;) {
    if (take_sign(".")) {
      if (now().kind == Token::Kind::integer)
        node = make(Kind::item, "", std::move(node), constant(Value::integer(take().integer)));
      else
        node = make(Kind::attribute, expect_name(), std::move(node));
    } else if (take_sign("[")) {
      node = subscript(std::move(node));
    } else if (is_sign("(")) {
      node = call(make(Kind::call, "", std::move(node)));
    } else {
      return node;
    }
  }
}

Ptr ExpressionParser::subscript(NodePtr node) {
  NodePtr bounds[3];
  int colons = 0;
  while (!is_sign("]")) {
    if (take_sign(":")) {
      if (++colons > 2) fail("a slice has at most two colons");
    } else if (bounds[colons]) {
      is_sign(",") ? unsupported("an index of several values") : fail("expected ']', found " + shown(now()));
    } else {
      bounds[colons] = expression();
    }
  }
  take();
  if (colons == 0 && !bounds[0]) fail("expected an index, found ']'");
  if (colons == 0) return make(Kind::item, "", std::move(node), std::move(bounds[0]));
  return make(Kind::slice, "", std::move(node), std::move(bounds[0]), std::move(bounds[1]), std::move(bounds[2]));
}

// Adds the arguments in brackets.
Ptr ExpressionParser::call(NodePtr node) {
  expect_sign("(");
  for (bool first = true; !take_sign(")"); first = false) {
    if (!first) {
      expect_sign(",");
      if (take_sign(")")) break;
    }
    if (is_sign("*") || is_sign("**")) unsupported("an argument with '" + now().text + "'");
    const Token& next = tokens_[std::min(at_ + 1, tokens_.size() - 1)];
    if (now().kind == Token::Kind::name && next.kind == Token::Kind::sign && next.text == "=") {
      const std::string name = take().text;
      take();
      node->named.emplace_back(name, expression());
    } else {
      if (!node->named.empty()) fail("an argument without a name stands behind one with a name");
      node->kids.push_back(expression());
    }
  }
  return finish(std::move(node));
}

Ptr ExpressionParser::filters(NodePtr node) {
  for (;;) {
    if (take_sign("|")) {
      node = filter(std::move(node));
    } else if (is_word("is")) {
      take();
      const bool negated = take_word("not");
      node = test(std::move(node));
      if (negated) node = make(Kind::unary, "not", std::move(node));
    } else if (is_sign("(")) {
      node = call(make(Kind::call, "", std::move(node)));
    } else {
      return node;
    }
  }
}

Ptr ExpressionParser::filter(NodePtr node) {
  const std::string name = dotted_name();
  if (!is_filter(name)) unsupported("the filter '" + detail::preview(name) + "'");
  node = make(Kind::filter, name, std::move(node));
  return is_sign("(") ? call(std::move(node)) : std::move(node);
}

Ptr ExpressionParser::test(NodePtr node) {
  const std::string name = dotted_name();
  if (!is_test(name)) unsupported("the test '" + detail::preview(name) + "'");
  node = make(Kind::test, name, std::move(node));
  if (is_sign("(")) return call(std::move(node));
  const bool value = now().kind == Token::Kind::name || now().kind == Token::Kind::string ||
                     now().kind == Token::Kind::integer || now().kind == Token::Kind::number || is_sign("[") ||
                     is_sign("{");
  if (value && !is_word("else") && !is_word("or") && !is_word("and")) {
    if (is_word("is")) fail("a test cannot follow a test: put the first into brackets");
    node->kids.push_back(postfix(primary()));
  }
  return finish(std::move(node));
}

std::string ExpressionParser::dotted_name() {
  std::string name = expect_name();
  while (take_sign(".")) name += "." + expect_name();
  return name;
}

}  // namespace braid::models::text::jinja
