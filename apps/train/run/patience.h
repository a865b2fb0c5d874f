// eval.patience: a run ends when so many validations in a row were not lower than the lowest before them.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>

namespace braid::apps {

struct Patience {
  double lowest = std::numeric_limits<double>::infinity();  // validation loss, nats per token or image
  int64_t step = 0;                                         // of it
  int64_t since = 0;                                        // validations after it

  void add(int64_t at, double loss) {
    if (std::isnan(loss)) return;  // no validation at this step
    if (loss < lowest)
      *this = {loss, at, 0};
    else
      ++since;
  }
  bool ended(int64_t patience) const { return patience > 0 && since >= patience; }
};

}  // namespace braid::apps
