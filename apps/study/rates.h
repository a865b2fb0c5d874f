// Validation loss by learning rate: of a search, and of variants that differ in the rate alone.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "apps/study/study_state.h"

namespace braid::apps {

struct RateCurve {
  std::string name;
  int hue = 0;                                                 // of the chart
  std::vector<std::pair<double, std::vector<double>>> losses;  // of each rate, rising, those of its seeds

  double mean(size_t i) const;  // NaN: no run is finished; infinite: one diverged
  // The rate of the lowest mean loss; its index, or -1 where no mean is finite.
  int best() const;
  // "The best rate of NAME, 0.03, is the largest: try larger ones."; "" where the best one has neighbours on both
  // sides.
  std::string edge_note() const;
};

// Rates beyond those of the file: while the best rate of a variant is at an edge of those that are finished, the next
// one by the same factor, at most search.extend on each side.
VariantRates rates_beyond(const Study& study, const std::vector<StudyResult>& search);
// The learning rate of each variant of the search: that of the lowest mean validation loss. Empty until all runs of
// the search are finished. Error(numerical) where every rate of a variant diverged.
VariantRates best_rates(const Study& study, const std::vector<StudyResult>& search);

// A curve for each variant of the search.
std::vector<RateCurve> search_curves(const Study& study, const std::vector<StudyResult>& search);
// A curve for each size, budget and group of two or more variants whose settings are the same but for optimizer.lr.
std::vector<RateCurve> variant_curves(const Study& study, const std::vector<StudyResult>& results);

// "" where each variant has a rate of its own: by the search, by optimizer.lr, or as one of variants that differ in the
// rate alone. Otherwise a warning that names two or more others, which share one rate that was not chosen for them.
std::string shared_rate_warning(const Study& study);

}  // namespace braid::apps
