// Groups of parameters, by patterns of their names, with a learning rate, tail of a schedule, weight decay, kind of
// update or freezing of their own:
//
//   {parse_group("* frozen_until=200"), parse_group("*.dyn_w_proj.* trained lr=10")}     only Compose, then everything
//
// A group sets what it names; where several groups match a parameter, the later one counts.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "braid/nn/optim/schedule.h"
#include "braid/tensor/tensor.h"

namespace braid::nn {

inline constexpr int64_t kNeverTrained = std::numeric_limits<int64_t>::max();

struct ParameterGroup {
  std::string pattern;                       // name_pattern.h
  std::optional<double> lr = {};             // factor of the learning rate
  std::optional<Schedule::Tail> tail = {};   // of a schedule wsd, instead of Schedule::tail
  std::optional<double> weight_decay = {};   // instead of OptimizerOptions::weight_decay, also for vectors
  std::optional<bool> elementwise = {};      // not as a matrix by rules that update whole matrices (muon)
  std::optional<int64_t> frozen_until = {};  // the number of first updates in which the parameters keep their values
};

// The rule for one parameter, from all groups.
struct ParameterRule {
  double lr = 1;
  std::optional<Schedule::Tail> tail = {};
  std::optional<double> weight_decay = {};
  bool elementwise = false;
  int64_t frozen_until = 0;  // kNeverTrained: no state, no gradient, never changed
};

// "PATTERN [lr=FACTOR] [tail=linear | tail=1-sqrt | tail=cosine] [weight_decay=W] [update=matrix | update=elements]
// [frozen_until=N | frozen | trained]"; trained is frozen_until=0, frozen is kNeverTrained. Error(setting).
ParameterGroup parse_group(const std::string& text);
ParameterRule rule_of(const std::vector<ParameterGroup>& groups, const std::string& name);
// Whether a rule that updates whole matrices takes the parameter as one: of rank 2, and not elementwise by its group.
bool is_matrix(const std::vector<ParameterGroup>& groups, const NamedTensor& parameter);
// Error(setting) when a pattern matches none of the parameters, or nothing is trained in the first update.
void check_groups(const std::vector<ParameterGroup>& groups, const std::vector<NamedTensor>& parameters);

}  // namespace braid::nn
