#include "braid/nn/optim/whole_matrices.h"

#include <algorithm>

namespace braid::nn {

ShardRule WholeMatrices::rule(const std::string& name) const {
  const auto at = rules_.find(name);
  return at == rules_.end() ? ShardRule() : at->second;
}

std::vector<MatrixPart> matrix_parts(const ShardRule& rule, const Shape& shape, int64_t heads) {
  const int axis = std::max(0, rule.axis);
  const int64_t n = shape[axis], others = rule.grouped_units > 0 ? rule.grouped_units : rule.units;
  const int64_t units = rule.joined * rule.units + (rule.repeats - 1) * others;  // those of the first block as several
  std::vector<MatrixPart> whole{{axis, 0, n}};
  if (rule.axis < 0 || n % std::max<int64_t>(1, rule.units > 0 ? units : rule.repeats) != 0) return whole;
  std::vector<MatrixPart> parts;
  for (int block = 0; block < rule.repeats; ++block) {
    const int64_t begin = parts.empty() ? 0 : parts.back().end;
    const int64_t of_block = block == 0 ? rule.units : others;
    const int64_t unit = rule.units > 0 ? n / units * (block == 0 ? rule.joined : 1) : 0;
    const int64_t end = begin + (rule.units > 0 ? of_block * unit : n / rule.repeats);
    const int64_t step = heads > 0 && block < rule.scores && unit > 0 ? heads * unit : end - begin;
    for (int64_t at = begin; at < end; at += step) parts.push_back({axis, at, std::min(at + step, end)});
  }
  return parts;
}

double matrix_work(const Shape& shape) {
  return static_cast<double>(numel(shape)) * static_cast<double>(std::min(shape[0], shape[1]));
}

}  // namespace braid::nn
