// Learning rates: pure functions of the zero-based step, so that a resumed run needs no state.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace braid::nn {

struct Schedule {
  enum class Kind { cosine, linear, constant, wsd };
  enum class Tail { linear, square_root, cosine };  // wsd: the shape of the falling part
  enum class AfterEnd { zero, hold };               // from step `steps` on: 0, or peak * final_fraction

  Kind kind = Kind::cosine;
  double peak = 3e-4;
  int64_t steps = 1000;         // S
  int64_t warmup = 0;           // W: peak * step / W below step W, so the very first update has rate 0
  double final_fraction = 0.1;  // f: the rate at the end is f * peak
  int64_t decay_steps = 0;      // wsd: the length of the last, falling part
  Tail tail = Tail::linear;
  AfterEnd after_end = AfterEnd::zero;
};

// "cosine", ...; "linear", "1-sqrt" or "cosine". Throw Error(setting) with the choices.
Schedule::Kind parse_schedule(const std::string& text);
Schedule::Tail parse_schedule_tail(const std::string& text);
std::string tail_name(Schedule::Tail tail);

// With u = (step - W) / (S - W), from W to S:
//   cosine     a = (1 + cos(pi u)) / 2,  peak (a + f (1 - a))
//   linear     peak (1 - (1 - f) u)
//   constant   peak, also after the end
//   wsd        warm-up, stable, decay: peak, then in the last decay_steps, with u from 0 to 1 over these,
//              peak (a + f (1 - a)) by the tail: a = 1 - u, 1 - sqrt(u) (Haegele et al. 2024) or (1 + cos(pi u)) / 2
// Throws Error(setting) when the lengths do not fit together.
double learning_rate(const Schedule& schedule, int64_t step);

// The learning rate of a step, and what it is where parameters have a tail of their own (groups.h).
struct Rates {
  Rates(double lr) : all(lr) { by_tail.fill(lr); }  // implicit: every tail has this rate
  double of(const std::optional<Schedule::Tail>& tail) const {
    return tail ? by_tail.at(static_cast<size_t>(*tail)) : all;
  }

  double all;
  std::array<double, 3> by_tail;  // in the order of Schedule::Tail
};
Rates learning_rates(const Schedule& schedule, int64_t step);

}  // namespace braid::nn
