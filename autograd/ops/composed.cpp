#include "braid/autograd/composed.h"

#include <algorithm>

#include "braid/autograd/detail/check.h"

namespace braid {

Tensor select(const Tensor& x, int axis, int64_t index) {
  const CalledOp called("select");
  const int a = axis < 0 ? axis + x.rank() : axis;
  check(a >= 0 && a < x.rank(), "select",
        [&] { return str(x.shape(), " has no axis ", axis, ": give one that it has"); });
  const int64_t n = x.dim(a), i = index < 0 ? index + n : index;
  check(i >= 0 && i < n, "select", [&] { return str("axis ", axis, " of ", x.shape(), " has no entry ", index); });
  return squeeze(slice(x, a, i, i + 1), a);
}

double at(const Tensor& x, std::initializer_list<int64_t> indices) {
  const CalledOp called("at");
  check(std::ssize(indices) == x.rank(), "at",
        [&] { return str(x.shape(), " needs ", x.rank(), " indices, got ", indices.size()); });
  Tensor entry = x.detach();
  for (const int64_t i : indices) entry = select(entry, 0, i);
  return entry.item();
}

Tensor one_hot(const Tensor& ids, int64_t classes, DType dtype) {
  const CalledOp called("one_hot");
  check(classes >= 1 && ids.rank() < Shape::max_rank, "one_hot",
        [&] { return str("needs at least one class and at most 5 axes, got ", classes, " and ids ", ids.shape()); });
  check_ids("one_hot", "id", ids, classes);
  return eq(unsqueeze(ids, -1), arange(classes, ids.dtype(), ids.device())).to(dtype);
}

// Through log_softmax of (x, 0) = (log sigmoid(x), log(1 - sigmoid(x))), which keeps its digits at any size of x.
Tensor binary_cross_entropy(const Tensor& logits, const Tensor& targets) {
  const CalledOp called("binary_cross_entropy");
  check_same("binary_cross_entropy", logits, targets);
  check(logits.shape() == targets.shape(), "binary_cross_entropy", [&] {
    return str("needs one target per logit, got targets ", targets.shape(), " for logits ", logits.shape());
  });
  const Tensor logs = log_softmax(stack({logits, zeros_like(logits)}, logits.rank()));
  return -mean(targets * select(logs, -1, 0) + (1 - targets) * select(logs, -1, 1));
}

namespace {

// Axes named by letters.
struct Named {
  Tensor x;
  std::string letters;

  bool has(char c) const { return letters.find(c) != std::string::npos; }
  int64_t size(const std::string& some) const {  // of these axes together
    int64_t n = 1;
    for (const char c : some) n *= x.dim(static_cast<int>(letters.find(c)));
    return n;
  }
  // The axes in this order.
  Named ordered(const std::string& order) const {
    Named y = *this;
    for (size_t i = 0; i < order.size(); ++i) {
      const size_t j = y.letters.find(order[i]);
      if (j == i) continue;
      y.x = transpose(y.x, static_cast<int>(i), static_cast<int>(j));
      std::swap(y.letters[i], y.letters[j]);
    }
    return y;
  }
  // Without the axes that nobody else has.
  Named summed(const std::string& others) const {
    Named y = *this;
    for (const char c : letters) {
      if (others.find(c) != std::string::npos) continue;
      const size_t axis = y.letters.find(c);
      y.x = sum(y.x, {static_cast<int>(axis)});
      y.letters.erase(axis, 1);
    }
    return y;
  }
};

void check_subscripts(const std::string& text, const Named& x, const Named& y, const std::string& result) {
  const auto wrong = [&](const std::string& why) {
    fail("einsum", why + " in \"" + text + "\": expected two operands and a result, such as \"bik,bkj->bij\"");
  };
  for (const std::string* part : {&x.letters, &y.letters, &result}) {
    for (const char c : *part) {
      if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) wrong(str("'", c, "' is no letter"));
      if (std::count(part->begin(), part->end(), c) > 1) wrong(str("'", c, "' is twice in one part"));
    }
  }
  for (const char c : result)
    if (!x.has(c) && !y.has(c)) wrong(str("'", c, "' of the result is in no operand"));
  for (const Named* operand : {&x, &y})
    if (std::ssize(operand->letters) != operand->x.rank())
      wrong(str("\"", operand->letters, "\" names the axes of ", operand->x.shape()));
  for (const char c : x.letters)
    if (y.has(c) && x.size({c}) != y.size({c})) wrong(str("'", c, "' is ", x.size({c}), " and ", y.size({c})));
}

}  // namespace

Tensor einsum(const std::string& subscripts, const Tensor& x, const Tensor& y) {
  const CalledOp called("einsum");
  const size_t comma = subscripts.find(','), arrow = subscripts.find("->");
  check(comma < arrow && arrow != std::string::npos, "einsum",
        [&] { return "cannot read \"" + subscripts + "\": expected two operands, such as \"bik,bkj->bij\""; });
  const std::string result = subscripts.substr(arrow + 2);
  Named left{x, subscripts.substr(0, comma)}, right{y, subscripts.substr(comma + 1, arrow - comma - 1)};
  check_same("einsum", x, y);
  check_float("einsum", x);
  check_subscripts(subscripts, left, right, result);
  left = left.summed(right.letters + result);
  right = right.summed(left.letters + result);

  std::string batch, rows, inner, columns;
  for (const char c : left.letters) (!right.has(c) ? rows : result.find(c) != std::string::npos ? batch : inner) += c;
  for (const char c : right.letters)
    if (!left.has(c)) columns += c;
  const Named a = left.ordered(batch + rows + inner), b = right.ordered(batch + inner + columns);
  const int64_t B = a.size(batch), M = a.size(rows), K = a.size(inner), N = b.size(columns);
  Shape shape;
  for (const char c : batch + rows) shape.push_back(a.size({c}));
  for (const char c : columns) shape.push_back(b.size({c}));
  const Tensor product = matmul(reshape(a.x, {B, M, K}), reshape(b.x, {B, K, N}));
  return Named{reshape(product, shape), batch + rows + columns}.ordered(result).x;
}

// y = x   dx = f(dy), or dy
Tensor tap(const Tensor& x, std::function<Tensor(const Tensor&)> f) {
  check(bool(f), "tap", "needs a function");
  return record(
      "tap", x.detach(), {x}, differentiable([f = std::move(f), shape = x.shape()](const Tensor& dy) -> Grads {
        const Tensor replaced = f(dy);
        check(!replaced || replaced.shape() == shape, "tap",
              [&] { return str("the function returned ", replaced.shape(), " for a gradient of shape ", shape); });
        return {replaced ? replaced : dy};
      }));
}

}  // namespace braid
