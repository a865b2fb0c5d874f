#include "braid/nn/optim/schedule.h"

#include <cmath>
#include <numbers>

#include "braid/tensor/error.h"

namespace braid::nn {

Schedule::Kind parse_schedule(const std::string& text) {
  if (text == "cosine") return Schedule::Kind::cosine;
  if (text == "linear") return Schedule::Kind::linear;
  if (text == "constant") return Schedule::Kind::constant;
  if (text == "wsd") return Schedule::Kind::wsd;
  fail(ErrorKind::setting, "unknown schedule '" + text + "': expected cosine, linear, constant or wsd");
}

static constexpr std::array<const char*, 3> kTails = {"linear", "1-sqrt", "cosine"};  // in the order of the enum

std::string tail_name(Schedule::Tail tail) { return kTails.at(static_cast<size_t>(tail)); }

Schedule::Tail parse_schedule_tail(const std::string& text) {
  for (size_t i = 0; i < kTails.size(); ++i)
    if (text == kTails.at(i)) return static_cast<Schedule::Tail>(i);
  fail(ErrorKind::setting, "unknown tail of a schedule '" + text + "': expected linear, 1-sqrt or cosine");
}

double learning_rate(const Schedule& s, int64_t step) {
  auto setting = [](bool ok, auto message) { check(ok, ErrorKind::setting, message); };
  setting(s.steps >= 1, [&] { return str("the schedule needs at least 1 step, found ", s.steps); });
  setting(s.warmup >= 0 && s.warmup <= s.steps, [&] {
    return str("warm-up must be between 0 and the ", s.steps, " steps of the schedule, found ", s.warmup);
  });
  bool wsd = s.kind == Schedule::Kind::wsd;
  setting(!wsd || (s.decay_steps >= 0 && s.decay_steps <= s.steps - s.warmup), [&] {
    return str("warm-up ", s.warmup, " and decay ", s.decay_steps, " do not fit into ", s.steps, " steps");
  });
  check(step >= 0, "learning_rate", [&] { return str("steps count from 0, got ", step); });

  if (step < s.warmup) return s.peak * static_cast<double>(step) / static_cast<double>(s.warmup);
  if (s.kind == Schedule::Kind::constant) return s.peak;
  if (step >= s.steps) return s.after_end == Schedule::AfterEnd::zero ? 0 : s.peak * s.final_fraction;
  int64_t begin = wsd ? s.steps - s.decay_steps : s.warmup;
  if (step < begin) return s.peak;
  double u = static_cast<double>(step - begin) / static_cast<double>(s.steps - begin);
  double a = 1 - u;
  if (s.kind == Schedule::Kind::cosine || (wsd && s.tail == Schedule::Tail::cosine))
    a = 0.5 * (1 + std::cos(std::numbers::pi * u));
  else if (wsd && s.tail == Schedule::Tail::square_root)
    a = 1 - std::sqrt(u);
  return s.peak * (a + s.final_fraction * (1 - a));
}

Rates learning_rates(const Schedule& schedule, int64_t step) {
  Rates rates = learning_rate(schedule, step);
  for (size_t i = 0; i < rates.by_tail.size(); ++i) {
    Schedule other = schedule;
    other.tail = static_cast<Schedule::Tail>(i);
    rates.by_tail.at(i) = learning_rate(other, step);
  }
  return rates;
}

}  // namespace braid::nn
