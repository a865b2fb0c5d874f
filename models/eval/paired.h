// Two models on the same items: the difference of their results, item by item. Pairing removes what makes items easy or
// hard for both, so that a difference shows which the standard errors of the two means would hide.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "braid/models/eval/eval_task.h"

namespace braid::models::eval {

struct PairedDifference {
  std::string name;             // of a result of an item, as in EvalTask::verdict()
  double a = 0, b = 0;          // means over the items that both have a finite result for
  double difference = 0;        // b - a
  std::optional<double> error;  // standard error of the mean difference; none for fewer than two items
  int64_t a_higher = 0, b_higher = 0;
  double p = 1;  // two-sided sign test: how likely so uneven a split is when either is as likely to be the higher one
};

// For each result of an item. Error(input) when the numbers of items differ.
std::vector<PairedDifference> paired_differences(const EvalTask& task_a, std::span<const ItemScores> a,
                                                 const EvalTask& task_b, std::span<const ItemScores> b);

// The probability that `n` fair coins show at most `k` or at least n - k heads, for k <= n / 2. Exact but for rounding.
double sign_test(int64_t k, int64_t n);

}  // namespace braid::models::eval
