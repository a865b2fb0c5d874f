// Rows of autograd/contract.h.
#include <algorithm>

#include "braid/autograd/contract.h"
#include "tests/support/op_table.h"

namespace braid::test {

namespace {

// By a loop over every combination of the letters. `text` has a result and no "..."; digits are letters as well, which
// may have size 1 in an operand.
Array einsum_reference(const std::string& text, const std::vector<Array>& in) {
  const size_t arrow = text.find("->");
  const std::string result = text.substr(arrow + 2);
  std::vector<std::string> parts{""};
  for (const char c : text.substr(0, arrow)) {
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  std::string letters;
  std::vector<int64_t> sizes;
  for (size_t p = 0; p < parts.size(); ++p) {
    for (size_t a = 0; a < parts[p].size(); ++a) {
      const int64_t n = in[p].shape[static_cast<int>(a)];
      const size_t known = letters.find(parts[p][a]);
      if (known == std::string::npos) {
        letters += parts[p][a];
        sizes.push_back(n);
      } else if (sizes[known] == 1) {
        sizes[known] = n;
      }
    }
  }
  Array y;
  int64_t combinations = 1;
  for (const char c : result) y.shape.push_back(sizes[letters.find(c)]);
  for (const int64_t n : sizes) combinations *= n;
  y.values.assign(static_cast<size_t>(numel(y.shape)), 0);
  std::vector<int64_t> digit(letters.size());
  const auto offset = [&](const std::string& part, const Shape& shape) {
    int64_t sum = 0;
    for (size_t a = 0; a < part.size(); ++a) {
      const int64_t n = shape[static_cast<int>(a)];
      sum = sum * n + (n == 1 ? 0 : digit[letters.find(part[a])]);
    }
    return static_cast<size_t>(sum);
  };
  for (int64_t at = 0; at < combinations; ++at) {
    for (int64_t rest = at, i = std::ssize(letters) - 1; i >= 0; --i) {
      digit[static_cast<size_t>(i)] = rest % sizes[static_cast<size_t>(i)];
      rest /= sizes[static_cast<size_t>(i)];
    }
    double product = 1;
    for (size_t p = 0; p < parts.size(); ++p) product *= in[p].values[offset(parts[p], in[p].shape)];
    y.values[offset(result, y.shape)] += product;
  }
  return y;
}

// `plain`: the same without "...", if the text is not already.
OpRow einsum_row(const std::string& text, std::vector<Shape> shapes, const std::string& plain = "") {
  const std::string reference = plain.empty() ? text : plain;
  const auto products = static_cast<int>(shapes.size());
  return {.name = "einsum:" + text,
          .op = [text](const auto& in) { return einsum(text, in); },
          .reference = [reference](const auto& in) { return einsum_reference(reference, in); },
          .cases = {std::move(shapes)},
          .roundings = std::max(2, products)};
}

// Positive numbers do not cancel: of terms of both signs roundings may be much of what is left.
OpRow of_positive(OpRow row) {
  row.low = 0.5;
  return row;
}

OpRow factors_row(const std::string& name, std::function<Tensor(const Tensor&, const Tensor&)> op,
                  const std::string& text, std::vector<std::vector<Shape>> cases) {
  return {.name = name,
          .op = [op](const auto& in) { return op(in[0], in[1]); },
          .reference = [text](const auto& in) { return einsum_reference(text, in); },
          .cases = std::move(cases)};
}

}  // namespace

std::vector<OpRow> contract_rows() {
  return {
      einsum_row("ij,jk->ik", {{3, 4}, {4, 5}}),
      einsum_row("btnd,bsnd->bnts", {{2, 3, 2, 4}, {2, 5, 2, 4}}),
      einsum_row("ij,kj->jki", {{3, 4}, {2, 4}}),
      einsum_row("i,j->ij", {{3}, {4}}),
      einsum_row("bij,kb->bk", {{2, 3, 4}, {5, 2}}),
      einsum_row("ij,ij->", {{3, 4}, {3, 4}}),
      einsum_row("ij->ji", {{3, 4}}),
      einsum_row("ij->", {{3, 4}}),
      einsum_row("ii->i", {{4, 4}}),
      einsum_row("ii->", {{4, 4}}),
      einsum_row("iji->j", {{3, 2, 3}}),
      einsum_row("iii->i", {{3, 3, 3}}),
      einsum_row("iijj->ij", {{2, 2, 3, 3}}),
      einsum_row("ii,ij->j", {{3, 3}, {3, 2}}),
      einsum_row("ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 2}}),
      einsum_row("i,j,k->kij", {{2}, {3}, {4}}),
      einsum_row("bi,bj,bk,b->ijk", {{2, 2}, {2, 3}, {2, 2}, {2}}),
      of_positive(einsum_row("a,ab,b->", {{3}, {3, 2}, {2}})),
      einsum_row(" ba , ac ", {{2, 3}, {3, 4}}, "ba,ac->bc"),
      einsum_row("ba", {{2, 3}}, "ba->ab"),
      einsum_row("ii", {{3, 3}}, "ii->"),
      einsum_row("...ij,...jk->...ik", {{2, 3, 4}, {5, 1, 4, 2}}, "1ij,01jk->01ik"),
      einsum_row("i...,i...", {{3, 2}, {3, 1}}, "i1,i1->1"),
      einsum_row("...,...->...", {{3, 1}, {4}}, "01,1->01"),
      einsum_row("...i->i...", {{2, 3, 4}}, "01i->i01"),
      einsum_row("...ii->...", {{2, 3, 3}}, "0ii->0"),
      einsum_row("ij,jk->ik", {{0, 4}, {4, 5}}),
      einsum_row("ij,jk->ik", {{3, 0}, {0, 5}}),
      factors_row("outer", outer, "i,j->ij", {{{3}, {4}}, {{1}, {2}}, {{0}, {3}}}),
      factors_row("inner", inner, "ai,bi->ab", {{{2, 3}, {4, 3}}, {{1, 1}, {1, 1}}}),
      factors_row("inner:vectors", inner, "i,i->", {{{5}, {5}}}),
      factors_row("dot", [](const Tensor& x, const Tensor& y) { return dot(x, y); }, "i,i->",
                  {{{5}, {5}}, {{1}, {1}}, {{0}, {0}}}),
      factors_row("vecdot", [](const Tensor& x, const Tensor& y) { return vecdot(x, y); }, "0i,1i->1",
                  {{{1, 4}, {3, 4}}, {{1, 2}, {1, 2}}}),
      factors_row("vecdot:first", [](const Tensor& x, const Tensor& y) { return vecdot(x, y, 0); }, "ij,ij->j",
                  {{{3, 4}, {3, 4}}}),
      factors_row("tensordot", [](const Tensor& x, const Tensor& y) { return tensordot(x, y); }, "aij,ijb->ab",
                  {{{2, 3, 4}, {3, 4, 2}}, {{1, 1, 2}, {1, 2, 3}}}),
      factors_row("tensordot:axes",
                  [](const Tensor& x, const Tensor& y) {
                    return tensordot(x, y, {0, -1}, {1, 0});
                  },
                  "iaj,jib->ab", {{{2, 3, 4}, {4, 2, 5}}}),
      factors_row("tensordot:none", [](const Tensor& x, const Tensor& y) { return tensordot(x, y, 0); }, "ab,c->abc",
                  {{{2, 3}, {4}}}),
      {.name = "cross",
       .op = [](const auto& in) { return cross(in[0], in[1]); },
       .reference =
           [](const auto& in) {
             Array z = zip(in[0], in[1], [](double, double) { return 0.0; });
             const Array x = zip(in[0], z, [](double p, double) { return p; });
             const Array y = zip(in[1], z, [](double q, double) { return q; });
             for (size_t at = 0; at < z.values.size(); at += 3)
               for (size_t i = 0; i < 3; ++i) {
                 const size_t j = at + (i + 1) % 3, k = at + (i + 2) % 3;
                 z.values[at + i] = x.values[j] * y.values[k] - x.values[k] * y.values[j];
               }
             return z;
           },
       .cases = {{{3}, {3}}, {{4, 3}, {3}}, {{2, 1, 3}, {4, 3}}, {{0, 3}, {0, 3}}},
       .roundings = 3},
      {.name = "bilinear",
       .op = [](const auto& in) { return bilinear(in[0], in[1], in[2], in[3]); },
       .reference =
           [](const auto& in) {
             const Array y = einsum_reference("bi,bj,oij->bo", {in[0], in[1], in[2]});
             return zip(y, in[3], [](double p, double q) { return p + q; });
           },
       .cases = {{{2, 3}, {2, 4}, {5, 3, 4}, {5}}},
       .roundings = 4},
      {.name = "matrix_power",
       .op = [](const auto& in) { return matrix_power(in[0], 5); },
       .reference =
           [](const auto& in) {
             Array y = in[0];
             for (int i = 0; i < 4; ++i) y = einsum_reference("bij,bjk->bik", {y, in[0]});
             return y;
           },
       .cases = {{{2, 3, 3}}, {{1, 1, 1}}},
       .low = -1,
       .high = 1,
       .in_16_bit = false},
  };
}

}  // namespace braid::test
