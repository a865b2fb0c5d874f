#include "apps/study/rates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "apps/cli/text.h"
#include "braid/models/study/intervals.h"
#include "braid/tensor/error.h"

namespace braid::apps {

namespace {

constexpr std::string_view kRateSetting = "optimizer.lr=";

void add_loss(RateCurve& curve, double rate, double loss) {
  const auto at = std::ranges::lower_bound(curve.losses, rate, {}, [](const auto& entry) { return entry.first; });
  if (at != curve.losses.end() && at->first == rate)
    at->second.push_back(loss);
  else
    curve.losses.insert(at, {rate, {loss}});
}

// A rate without the rounding of the product that gave it: 9e-3, not 0.009000000000000001.
double six_digits(double rate) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", rate);
  return std::strtod(text.data(), nullptr);
}

// The settings of a variant without its rate: the key of its group.
std::string settings_beside_rate(const Study::Section& variant) {
  std::vector<std::string> others;
  for (const std::string& setting : variant.settings)
    if (!setting.starts_with(kRateSetting)) others.push_back(setting);
  std::ranges::sort(others);
  return join(others, " ");
}

}  // namespace

double RateCurve::mean(size_t i) const {
  const std::vector<double>& values = losses[i].second;
  return values.empty() ? std::nan("") : models::mean_with_interval(values).value;
}

int RateCurve::best() const {
  int found = -1;
  for (size_t i = 0; i < losses.size(); ++i)
    if (std::isfinite(mean(i)) && (found < 0 || mean(i) < mean(static_cast<size_t>(found))))
      found = static_cast<int>(i);
  return found;
}

std::string RateCurve::edge_note() const {
  const int at = best(), last = static_cast<int>(losses.size()) - 1;
  if (last < 1 || at < 0 || (at > 0 && at < last)) return "";
  const bool largest = at == last;
  return str("The best rate of ", name, ", ", shortest(losses[static_cast<size_t>(at)].first), ", is the ",
             largest ? "largest: try larger ones." : "smallest: try smaller ones.");
}

VariantRates rates_beyond(const Study& study, const std::vector<StudyResult>& search) {
  VariantRates more;
  if (!study.search) return more;
  const Study::Search& s = *study.search;
  for (const std::string& variant : s.variants) {
    std::map<double, std::vector<double>> finished;
    for (const StudyResult& r : search)
      if (r.run.variant == variant) finished[r.run.rate.value_or(0)].push_back(r.loss);
    std::vector<double> rates = s.rates;
    int64_t smaller = 0, larger = 0;
    while (true) {
      RateCurve curve;
      for (const double rate : rates)
        if (finished[rate].size() == s.seeds.size()) curve.losses.emplace_back(rate, finished[rate]);
      if (curve.losses.size() < rates.size()) break;
      const int best = curve.best();
      const size_t last = rates.size() - 1;
      if (best == static_cast<int>(last) && larger++ < s.extend)
        rates.push_back(six_digits(rates[last] * rates[last] / rates[last - 1]));
      else if (best == 0 && smaller++ < s.extend)
        rates.insert(rates.begin(), six_digits(rates[0] * rates[0] / rates[1]));
      else
        break;
      more.emplace_back(variant, best == 0 ? rates.front() : rates.back());
    }
  }
  return more;
}

VariantRates best_rates(const Study& study, const std::vector<StudyResult>& search) {
  VariantRates best;
  if (!study.search) return best;
  const Study::Search& s = *study.search;
  const size_t rates = s.variants.size() * s.rates.size() + rates_beyond(study, search).size();
  if (search.size() < rates * s.seeds.size()) return best;
  for (const RateCurve& curve : search_curves(study, search)) {
    check(curve.best() >= 0, ErrorKind::numerical, [&] {
      return "every learning rate of the search diverged for " + curve.name + ": give search.rates lower ones";
    });
    best.emplace_back(curve.name, curve.losses[static_cast<size_t>(curve.best())].first);
  }
  return best;
}

std::vector<RateCurve> search_curves(const Study& study, const std::vector<StudyResult>& search) {
  std::vector<RateCurve> curves;
  if (!study.search) return curves;
  for (const std::string& variant : study.search->variants) {
    RateCurve curve{.name = variant, .losses = {}};
    curve.hue =
        static_cast<int>(std::ranges::find(study.variants, variant, &Study::Section::name) - study.variants.begin());
    for (const double rate : study.search->rates) curve.losses.push_back({rate, {}});
    for (const StudyResult& r : search)
      if (r.run.variant == variant) add_loss(curve, r.run.rate.value_or(0), r.loss);
    curves.push_back(std::move(curve));
  }
  return curves;
}

std::vector<RateCurve> variant_curves(const Study& study, const std::vector<StudyResult>& results) {
  std::map<std::string, std::vector<std::string>> groups;  // the variants of each
  for (const Study::Section& variant : study.variants) groups[settings_beside_rate(variant)].push_back(variant.name);
  std::erase_if(groups, [](const auto& group) { return group.second.size() < 2; });
  std::vector<RateCurve> curves;
  for (const auto& [settings, names] : groups)
    for (const Study::Section& size : study.sizes)
      for (const double budget : study.budgets) {
        RateCurve curve{
            .name = settings.empty() ? "[base]" : settings, .hue = static_cast<int>(curves.size()), .losses = {}};
        if (study.sizes.size() > 1) curve.name += ", " + size.name;
        if (study.budgets.size() > 1) curve.name += ", " + shortest(budget);
        for (const StudyResult& r : results) {
          const bool of_curve = r.run.size == size.name && r.run.budget == budget && !r.run.rate &&
                                std::ranges::count(names, r.run.variant) > 0;
          if (of_curve) add_loss(curve, RunSettings(study, r.run.settings).config.optimizer.lr, r.loss);
        }
        if (curve.losses.size() > 1) curves.push_back(std::move(curve));
      }
  return curves;
}

std::string shared_rate_warning(const Study& study) {
  std::map<std::string, int> same;  // variants with the same settings beside the rate
  for (const Study::Section& variant : study.variants) ++same[settings_beside_rate(variant)];
  std::vector<std::string> others;
  for (const Study::Section& variant : study.variants) {
    const bool searched = study.search && std::ranges::count(study.search->variants, variant.name) > 0;
    const bool own = std::ranges::any_of(variant.settings, [](const auto& s) { return s.starts_with(kRateSetting); });
    if (!searched && !own && same[settings_beside_rate(variant)] == 1) others.push_back(variant.name);
  }
  if (others.size() < 2) return "";
  return "one learning rate serves the variants " + join(others, ", ") +
         ": it may suit one of them better than another, which then looks worse than it is; [search] finds a rate for "
         "each";
}

}  // namespace braid::apps
