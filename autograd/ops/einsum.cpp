#include <algorithm>
#include <limits>

#include "braid/autograd/contract.h"
#include "braid/autograd/detail/check.h"
#include "braid/autograd/manipulate.h"

namespace braid {

namespace {

// The axes of "..." are the letters '0', '1', ... from the right.
bool names_ellipsis(char c) { return c >= '0' && c <= '9'; }

// Axes named by letters.
struct Named {
  Tensor x;
  std::string letters;

  bool has(char c) const { return letters.find(c) != std::string::npos; }
  int axis(char c) const { return static_cast<int>(letters.find(c)); }
  int64_t size(const std::string& some) const {  // of these axes together
    int64_t n = 1;
    for (const char c : some) n *= x.dim(axis(c));
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
      y.x = sum(y.x, {y.axis(c)});
      y.letters.erase(y.letters.find(c), 1);
    }
    return y;
  }
  // With every letter once: the diagonal of the axes that share one.
  Named without_repeats() const {
    Named y = *this;
    for (size_t i = 0; i < y.letters.size();) {
      const size_t j = y.letters.find(y.letters[i], i + 1);
      if (j == std::string::npos) {
        ++i;
        continue;
      }
      y.x = diagonal(y.x, 0, static_cast<int>(i), static_cast<int>(j));
      y.letters += y.letters[i];
      y.letters.erase(j, 1);
      y.letters.erase(i, 1);
    }
    return y;
  }
};

struct Equation {
  std::string text;
  std::vector<Named> operands;
  std::string result;

  [[noreturn]] void wrong(const std::string& why) const {
    fail("einsum", why + " in \"" + text + "\": expected operands and a result, such as \"bik,bkj->bij\"");
  }
  void check_letters(const std::string& part) const {
    for (const char c : part)
      if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) wrong(str("'", c, "' is no letter"));
  }
};

// The letters of a part with `axes` numbered ones in place of "...".
std::string with_ellipsis(const Equation& equation, const std::string& part, int64_t axes) {
  const size_t dots = part.find("...");
  std::string letters = part;
  if (dots != std::string::npos) letters.erase(dots, 3);
  equation.check_letters(letters);
  if (dots == std::string::npos) return letters;
  std::string numbered;
  for (int64_t i = axes - 1; i >= 0; --i) numbered += static_cast<char>('0' + i);
  return letters.insert(dots, numbered);
}

bool has_ellipsis(const std::string& part) { return part.find("...") != std::string::npos; }

// The operands' letters, checked against their axes. Returns the largest number of axes that "..." stands for.
int64_t name_operands(Equation& equation, const std::vector<std::string>& parts, const std::vector<Tensor>& xs) {
  if (parts.size() != xs.size())
    equation.wrong(str(parts.size(), parts.size() == 1 ? " operand" : " operands", " for ", xs.size(),
                       xs.size() == 1 ? " tensor" : " tensors"));
  int64_t most = 0;
  for (size_t i = 0; i < xs.size(); ++i) {
    const bool dots = has_ellipsis(parts[i]);
    const int64_t free = xs[i].rank() - (std::ssize(parts[i]) - (dots ? 3 : 0));
    const std::string letters = with_ellipsis(equation, parts[i], std::max(free, int64_t{0}));
    if (free < 0 || (free > 0 && !dots)) equation.wrong(str("\"", parts[i], "\" names the axes of ", xs[i].shape()));
    most = std::max(most, free);
    equation.operands.push_back({xs[i], letters});
  }
  return most;
}

std::string implicit_result(const std::vector<Named>& operands, int64_t ellipsis) {
  std::string result, all;
  for (int64_t i = ellipsis - 1; i >= 0; --i) result += static_cast<char>('0' + i);
  for (const Named& operand : operands) all += operand.letters;
  for (int c = 'A'; c <= 'z'; ++c)
    if (std::count(all.begin(), all.end(), static_cast<char>(c)) == 1) result += static_cast<char>(c);
  return result;
}

// Sizes agree; axes of "..." that an operand has with size 1, and another with more, are dropped there.
void match_sizes(Equation& equation) {
  std::string all;
  for (const Named& operand : equation.operands) all += operand.letters;
  for (const char c : all) {
    int64_t common = 1;
    bool first = true;
    for (const Named& operand : equation.operands)
      for (size_t a = 0; a < operand.letters.size(); ++a) {
        const int64_t n = operand.x.dim(static_cast<int>(a));
        if (operand.letters[a] != c || (names_ellipsis(c) && n == 1)) continue;
        if (!first && n != common) {
          if (names_ellipsis(c)) equation.wrong(str("axes of \"...\" are ", common, " and ", n));
          std::string shapes;
          for (const Named& each : equation.operands) shapes += str(shapes.empty() ? "" : ", ", each.x.shape());
          fail("einsum", str("'", c, "' is ", common, " and ", n, " in \"", equation.text, "\" for ", shapes,
                             ": a letter has one size, does an operand want transpose()?"));
        }
        common = n;
        first = false;
      }
    if (!names_ellipsis(c) || first) continue;
    for (Named& operand : equation.operands)
      if (operand.has(c) && operand.x.dim(operand.axis(c)) == 1 && common != 1) {
        operand.x = squeeze(operand.x, operand.axis(c));
        operand.letters.erase(operand.letters.find(c), 1);
      }
  }
}

Equation read_equation(const std::string& subscripts, const std::vector<Tensor>& xs) {
  Equation equation{subscripts, {}, {}};
  std::string text = subscripts;
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  const size_t arrow = text.find("->");
  std::vector<std::string> parts{""};
  for (const char c : text.substr(0, arrow)) {
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  const int64_t ellipsis = name_operands(equation, parts, xs);
  if (arrow == std::string::npos) {
    equation.result = implicit_result(equation.operands, ellipsis);
  } else {
    const std::string result = text.substr(arrow + 2);
    if (ellipsis > 0 && !has_ellipsis(result)) equation.wrong("the result has no \"...\"");
    equation.result = with_ellipsis(equation, result, ellipsis);
  }
  for (const char c : equation.result) {
    if (std::count(equation.result.begin(), equation.result.end(), c) > 1)
      equation.wrong(str("'", c, "' is twice in the result"));
    const bool known = std::any_of(equation.operands.begin(), equation.operands.end(),
                                   [c](const Named& operand) { return operand.has(c); });
    if (!known) equation.wrong(str("'", c, "' of the result is in no operand"));
  }
  match_sizes(equation);
  for (Named& operand : equation.operands) operand = operand.without_repeats();
  return equation;
}

// The product of two, summed over the letters that `kept` does not have.
Named contracted(const Named& x, const Named& y, const std::string& kept) {
  const Named left = x.summed(y.letters + kept), right = y.summed(left.letters + kept);
  std::string batch, rows, inner, columns;
  for (const char c : left.letters) (!right.has(c) ? rows : kept.find(c) != std::string::npos ? batch : inner) += c;
  for (const char c : right.letters)
    if (!left.has(c)) columns += c;
  const Named a = left.ordered(batch + rows + inner), b = right.ordered(batch + inner + columns);
  const int64_t B = a.size(batch), M = a.size(rows), K = a.size(inner), N = b.size(columns);
  check(batch.size() + rows.size() + columns.size() <= static_cast<size_t>(Shape::max_rank), "einsum", [&] {
    return str("the product of ", x.x.shape(), " and ", y.x.shape(), " has more than ", Shape::max_rank, " axes");
  });
  Shape shape;
  for (const char c : batch + rows) shape.push_back(a.size({c}));
  for (const char c : columns) shape.push_back(b.size({c}));
  const Tensor product = matmul(reshape(a.x, {B, M, K}), reshape(b.x, {B, K, N}));
  return {reshape(product, shape), batch + rows + columns};
}

// How many elements more than both factors their product has, of the letters in `kept`.
double growth(const Named& x, const Named& y, const std::string& kept) {
  double product = 1;
  for (const char c : x.letters)
    if (kept.find(c) != std::string::npos) product *= static_cast<double>(x.size({c}));
  for (const char c : y.letters)
    if (!x.has(c) && kept.find(c) != std::string::npos) product *= static_cast<double>(y.size({c}));
  return product - static_cast<double>(x.x.numel()) - static_cast<double>(y.x.numel());
}

}  // namespace

Tensor einsum(const std::string& subscripts, const std::vector<Tensor>& operands) {
  const CalledOp called("einsum");
  check(!operands.empty(), "einsum", "needs at least one operand");
  for (const Tensor& x : operands) {
    check_same("einsum", operands[0], x);
    check_float("einsum", x);
  }
  Equation equation = read_equation(subscripts, operands);
  std::vector<Named>& left = equation.operands;
  const auto kept_without = [&](size_t i, size_t j) {
    std::string kept = equation.result;
    for (size_t k = 0; k < left.size(); ++k)
      if (k != i && k != j) kept += left[k].letters;
    return kept;
  };
  while (left.size() > 1) {
    size_t first = 0, second = 1;
    double least = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < left.size(); ++i)
      for (size_t j = i + 1; left.size() > 2 && j < left.size(); ++j) {
        const double more = growth(left[i], left[j], kept_without(i, j));
        if (!(more < least)) continue;
        least = more;
        first = i;
        second = j;
      }
    const Named product = contracted(left[first], left[second], kept_without(first, second));
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(second));
    left[first] = product;
  }
  return left[0].summed(equation.result).ordered(equation.result).x;
}

Tensor einsum(const std::string& subscripts, const Tensor& x, const Tensor& y) { return einsum(subscripts, {x, y}); }

}  // namespace braid
