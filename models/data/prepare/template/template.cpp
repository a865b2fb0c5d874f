#include "braid/models/data/prepare/template/template.h"

#include <algorithm>
#include <deque>
#include <optional>

#include "braid/models/data/prepare/template/functions.h"
#include "braid/models/data/prepare/template/syntax.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"

namespace braid::models::text::jinja {

struct Scope {
  std::shared_ptr<Scope> parent;
  std::vector<std::pair<std::string, Value>> names;

  Value* find(const std::string& name) {
    for (auto& [key, value] : names)
      if (key == name) return &value;
    return nullptr;
  }
  void set(const std::string& name, Value value) {
    if (Value* known = find(name))
      *known = std::move(value);
    else
      names.emplace_back(name, std::move(value));
  }
};

namespace {

using Kind = Node::Kind;

class Interpreter {
 public:
  Interpreter(const std::string& name, const std::map<std::string, Value>& variables) {
    context_.name = name;
    scope_ = std::make_shared<Scope>();
    for (const char* function : kGlobals)
      scope_->set(function, object({.kind = Object::Kind::function, .name = function}));
    for (const auto& [key, value] : variables) scope_->set(key, value);
    scope_ = std::make_shared<Scope>(Scope{scope_, {}});
  }
  Text run(const Nodes& nodes) {
    Text out;
    execute(nodes, out);
    return out;
  }

 private:
  enum class Flow { on, leave, proceed };

  // Walks over the tree recurse: macros may call each other.
  struct Level {
    explicit Level(Interpreter& interpreter) : n(interpreter.level_) {
      if (++n > max_level) interpreter.context_.fail("the template is nested too deeply: macros call each other");
    }
    ~Level() { --n; }
    int& n;
  };
  static constexpr int max_level = 600;

  Value object(Object made) {
    context_.spend(50);
    return {&objects_.emplace_back(std::move(made))};
  }
  // A scope inside the present one, until the end of the block.
  struct Inside {
    Inside(Interpreter& of, std::shared_ptr<Scope> parent)
        : interpreter(of), outer(std::exchange(of.scope_, std::make_shared<Scope>(Scope{std::move(parent), {}}))) {}
    ~Inside() { interpreter.scope_ = std::move(outer); }
    Interpreter& interpreter;
    std::shared_ptr<Scope> outer;
  };

  // --- statements
  void write(Text& out, const Text& text) {
    context_.spend(1 + text.size() / 8);
    out += text;
    if (out.size() > Context::max_text) context_.fail("the text of the template is too long");
  }
  Flow execute(const Nodes& nodes, Text& out) {
    for (const auto& node : nodes)
      if (const Flow flow = execute(*node, out); flow != Flow::on) return flow;
    return Flow::on;
  }
  Flow execute(const Node& node, Text& out) {
    const Level level(*this);
    context_.line = node.line;
    context_.spend(1);
    switch (node.kind) {
      case Kind::data:
        write(out, *node.value.text());
        return Flow::on;
      case Kind::output:
        write(out, context_.str(evaluate(*node.kids[0])));
        return Flow::on;
      case Kind::branch:
        return execute(evaluate(*node.kids[0]).true_in_python() ? node.body : node.other, out);
      case Kind::loop:
        return loop(node, out);
      case Kind::assign:
        assign(node, evaluate(*node.kids[0]));
        return Flow::on;
      case Kind::capture:
        capture(node);
        return Flow::on;
      case Kind::macro:
        scope_->set(node.name,
                    object({.kind = Object::Kind::macro, .name = node.name, .macro = &node, .scope = scope_}));
        return Flow::on;
      case Kind::generation: {
        const size_t begin = out.size();
        const Flow flow = execute(node.body, out);
        const auto mark = static_cast<char>((1 + generations_++ % 127) << 1);
        for (size_t i = begin; i < out.size(); ++i)
          out.marks[i] = static_cast<char>((out.marks[i] & kOfMessage) | mark);
        return flow;
      }
      case Kind::leave:
        return Flow::leave;
      default:
        return Flow::proceed;
    }
  }
  void bind(const Node& node, const Value& value) {
    if (!node.unpacks) return scope_->set(node.names[0], value);
    const std::vector<Value> items = context_.iterate(value);
    if (items.size() != node.names.size())
      context_.fail(str("expected ", node.names.size(), " values, found ", items.size()));
    for (size_t i = 0; i < items.size(); ++i) assign(node.names[i], items[i]);
  }
  void assign(const Node& node, const Value& value) {
    if (node.unpacks) return bind(node, value);
    assign(node.names[0], value);
  }
  void assign(const std::string& name, const Value& value) {
    const size_t dot = name.find('.');
    if (dot == std::string::npos) return scope_->set(name, value);
    const Value space = lookup(name.substr(0, dot));
    if (!space.object() || space.object()->kind != Object::Kind::name_space)
      context_.fail(str("cannot set '", name, "': ", name.substr(0, dot), " is no namespace"));
    space.object()->fields[name.substr(dot + 1)] = value;
  }
  void capture(const Node& node) {
    Text text;
    {
      const Inside inside(*this, scope_);
      execute(node.body, text);
    }
    const Value captured = context_.string(std::move(text));
    assign(node, node.kids[0] ? filtered(*node.kids[0], captured) : captured);
  }
  Flow loop(const Node& node, Text& out) {
    std::vector<Value> items = context_.iterate(evaluate(*node.kids[0]));
    if (node.kids[1])
      std::erase_if(items, [&](const Value& item) {
        const Inside inside(*this, scope_);
        bind(node, item);
        return !evaluate(*node.kids[1]).true_in_python();
      });
    if (items.empty()) {
      const Inside inside(*this, scope_);
      return execute(node.other, out);
    }
    const Value state = object({.kind = Object::Kind::loop, .items = std::move(items)});
    Object& loop = *state.object();
    loop.length = loop.items.size();
    for (; loop.index < loop.length; ++loop.index) {
      const Inside inside(*this, scope_);
      context_.spend(1);
      scope_->set("loop", state);
      bind(node, loop.items[loop.index]);
      if (execute(node.body, out) == Flow::leave) break;
    }
    loop.items.clear();
    return Flow::on;
  }

  // --- expressions
  Value lookup(const std::string& name) {
    for (Scope* scope = scope_.get(); scope; scope = scope->parent.get()) {
      context_.spend(1);
      if (const Value* found = scope->find(name)) return *found;
    }
    const bool clock = name == "strftime_now";
    return {Missing{"'" + detail::preview(name) + "' is undefined" +
                    (clock ? ": prompts must not depend on the clock" : "")}};
  }
  Value evaluate(const Node& node) {
    const Level level(*this);
    context_.line = node.line;
    context_.spend(1);
    Value value = compute(node);
    return value;
  }
  Value optional(const std::unique_ptr<Node>& node) { return node ? evaluate(*node) : Value::none(); }
  std::vector<Value> all(const Nodes& nodes) {
    std::vector<Value> values;
    for (const auto& node : nodes) values.push_back(evaluate(*node));
    return values;
  }
  // The values of kids[1] ... and named.
  Arguments arguments(const Node& node) {
    Arguments result;
    for (size_t i = 1; i < node.kids.size(); ++i) result.values.push_back(evaluate(*node.kids[i]));
    for (const auto& [name, kid] : node.named) result.named.emplace_back(name, evaluate(*kid));
    context_.line = node.line;
    return result;
  }
  Value compute(const Node& node) {
    switch (node.kind) {
      case Kind::constant:
        return node.value;
      case Kind::name:
        return lookup(node.name);
      case Kind::list:
      case Kind::tuple:
        return context_.list(all(node.kids), node.kind == Kind::tuple);
      case Kind::dict: {
        std::vector<std::pair<Value, Value>> items;
        for (size_t i = 0; i < node.kids.size(); i += 2) {
          Value key = evaluate(*node.kids[i]);
          items.emplace_back(std::move(key), evaluate(*node.kids[i + 1]));
        }
        return context_.dict(std::move(items));
      }
      case Kind::attribute: {
        const Value self = evaluate(*node.kids[0]);
        if (is_method(self, node.name)) return object({.kind = Object::Kind::method, .name = node.name, .self = self});
        return attribute(self, node.name, context_);
      }
      case Kind::item: {
        const Value self = evaluate(*node.kids[0]);
        return item(self, evaluate(*node.kids[1]), context_);
      }
      case Kind::slice: {
        const Value self = evaluate(*node.kids[0]), begin = optional(node.kids[1]), end = optional(node.kids[2]);
        return slice(self, begin, end, optional(node.kids[3]), context_);
      }
      case Kind::call:
        return call(node);
      case Kind::filter: {
        const Value value = evaluate(*node.kids[0]);
        return apply_filter(node.name, value, arguments(node), context_);
      }
      case Kind::test: {
        const Value value = evaluate(*node.kids[0]);
        return Value::boolean(apply_test(node.name, value, arguments(node), context_));
      }
      case Kind::unary: {
        const Value value = evaluate(*node.kids[0]);
        if (node.name == "not") return Value::boolean(!value.true_in_python());
        if (!value.is_number()) context_.fail(str("cannot compute ", node.name, value.kind()));
        return operate("*", value, Value::integer(node.name == "-" ? -1 : 1), context_);
      }
      case Kind::binary: {
        Value left = evaluate(*node.kids[0]);
        if (node.name == "or") return left.true_in_python() ? left : evaluate(*node.kids[1]);
        if (node.name == "and") return left.true_in_python() ? evaluate(*node.kids[1]) : left;
        const Value right = evaluate(*node.kids[1]);
        context_.line = node.line;
        return operate(node.name, left, right, context_);
      }
      case Kind::compare:
        return compare(node);
      default: {  // conditional
        if (evaluate(*node.kids[1]).true_in_python()) return evaluate(*node.kids[0]);
        if (node.kids[2]) return evaluate(*node.kids[2]);
        return {Missing{"an inline if without else is undefined"}};
      }
    }
  }
  Value compare(const Node& node) {
    Value left = evaluate(*node.kids[0]);
    for (size_t i = 0; i < node.names.size(); ++i) {
      Value right = evaluate(*node.kids[i + 1]);
      context_.line = node.line;
      const std::string& sign = node.names[i];
      const bool is = sign == "in"       ? context_.contains(right, left)
                      : sign == "not in" ? !context_.contains(right, left)
                                         : apply_test(sign, left, {{right}, {}}, context_);
      if (!is) return Value::boolean(false);
      left = std::move(right);
    }
    return Value::boolean(true);
  }
  // A chain of filters, of which the first has no value of its own.
  Value filtered(const Node& node, const Value& value) {
    const Value before = node.kids[0] ? filtered(*node.kids[0], value) : value;
    return apply_filter(node.name, before, arguments(node), context_);
  }
  Value call(const Node& node) {
    const Node& callee = *node.kids[0];
    if (callee.kind == Kind::attribute) {
      const Value self = evaluate(*callee.kids[0]);
      if (is_method(self, callee.name)) return call_method(self, callee.name, arguments(node), context_);
      const Value found = attribute(self, callee.name, context_);
      if (self.object() && self.object()->kind == Object::Kind::loop && callee.name == "cycle") {
        const Arguments given = arguments(node);
        if (given.values.empty()) context_.fail("loop.cycle needs a value");
        return given.values[self.object()->index % given.values.size()];
      }
      if (!found.object() && !self.dict())
        context_.fail(str(self.kind(), " has no method '", detail::preview(callee.name), "' here"));
      return call(node, found);
    }
    return call(node, evaluate(callee));
  }
  Value call(const Node& node, const Value& callee) {
    const Object* object = callee.object();
    if (callee.missing()) context_.fail("cannot call a function: " + callee.missing()->what);
    if (!object || object->kind < Object::Kind::macro) context_.fail(str("cannot call ", callee.kind()));
    const Arguments given = arguments(node);
    if (object->kind == Object::Kind::method) return call_method(object->self, object->name, given, context_);
    if (object->kind == Object::Kind::macro) return call_macro(*object, given);
    return call_function(object->name, given);
  }
  Value call_macro(const Object& macro, const Arguments& given) {
    const Node& node = *macro.macro;
    const std::string what = "the macro '" + macro.name + "'";
    check_arguments({given.values, {}}, node.named.size(), {}, what, context_);
    for (const auto& argument : given.named)
      if (std::ranges::none_of(node.named, [&](const auto& x) { return x.first == argument.first; }))
        context_.fail(str(what, " has no parameter '", detail::preview(argument.first), "'"));
    const Inside inside(*this, macro.scope);
    for (size_t i = 0; i < node.named.size(); ++i) {
      const std::string& name = node.named[i].first;
      const Node* fallback = node.named[i].second.get();
      Value value = given.get(i, name, {Missing{"the parameter '" + name + "' is undefined"}});
      const bool absent =
          i >= given.values.size() && std::ranges::none_of(given.named, [&](const auto& x) { return x.first == name; });
      scope_->set(name, absent && fallback ? evaluate(*fallback) : std::move(value));
    }
    Text text;
    execute(node.body, text);
    return context_.string(std::move(text));
  }
  Value call_function(const std::string& name, const Arguments& given) {
    const Value result = call_global(name, given, context_);
    if (name != "namespace") return result;
    Object space{.kind = Object::Kind::name_space};
    for (const auto& [key, value] : result.dict()->items)
      if (key.text()) space.fields[key.text()->bytes] = value;
    return object(std::move(space));
  }

  Context context_;
  std::deque<Object> objects_;
  std::shared_ptr<Scope> scope_;
  int level_ = 0;
  int generations_ = 0;
};

bool any_generation(const Nodes& nodes) {
  return std::ranges::any_of(nodes, [](const auto& node) {
    return node->kind == Kind::generation || any_generation(node->body) || any_generation(node->other);
  });
}

}  // namespace

Template::Template(std::string_view source, std::string name) : name_(std::move(name)), nodes_(parse(source, name_)) {
  has_generation_ = any_generation(nodes_);
}
Template::~Template() = default;

Text Template::render(const std::map<std::string, Value>& variables) const {
  return Interpreter(name_, variables).run(nodes_);
}

}  // namespace braid::models::text::jinja
