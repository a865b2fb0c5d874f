#include "apps/chart/legend.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "apps/chart/group.h"
#include "apps/chart/style.h"
#include "apps/cli/text.h"
#include "braid/tensor/error.h"

namespace braid::apps {

size_t letters(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string shown(double value, int decimals, const std::string& unit) {
  if (std::isnan(value)) return "-";
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*f", decimals, value);
  return buffer + unit;
}

namespace {

double last_of(const std::vector<double>& values) {
  for (size_t i = values.size(); i-- > 0;)
    if (std::isfinite(values[i])) return values[i];
  return not_measured;
}

// value(run), or of a group mean ± spread of its members.
template <class Value>
std::string shown_of(const Run& run, int decimals, const std::string& unit, Value&& value) {
  if (run.members.empty()) return shown(value(run), decimals, unit);
  std::vector<double> values;
  for (const Run& member : run.members) values.push_back(value(member));
  const auto [mean, spread] = mean_and_spread(values);
  const std::string of_one = values.size() < 2 ? "-" : shown(spread, decimals);  // one run has no spread
  return shown(mean, decimals) + (std::isnan(spread) ? "" : " ± " + of_one) + unit;
}

struct Best {
  double value = not_measured;
  int64_t step = 0;
};
Best best_validation(const Run& run) {
  Best best;
  for (const LogRow& row : run.rows)
    if (std::isfinite(row["val_loss"]) && !(row["val_loss"] >= best.value)) best = {row["val_loss"], row.step};
  return best;
}

double median_speed(const Run& run, LogName rate) {
  std::vector<double> speeds;
  for (double v : column(run, rate, 1))
    if (std::isfinite(v)) speeds.push_back(v);
  std::sort(speeds.begin(), speeds.end());
  return speeds.empty() ? not_measured : speeds[speeds.size() / 2];
}

}  // namespace

std::vector<std::vector<std::string>> legend(const std::vector<Run>& runs, int64_t window) {
  const bool tasks = measured(runs, "task_acc"), validated = measured(runs, "val_loss");
  std::vector<std::vector<std::string>> rows = {{"run", "steps", "loss"}};
  if (window > 1) rows[0].push_back("smoothed loss");
  if (validated) rows[0].insert(rows[0].end(), {"validation", "best validation"});
  if (tasks) rows[0].push_back("task accuracy");
  const bool pairs = measured(runs, "val_accuracy"), classes = pairs || measured(runs, "val_top1");
  if (classes) rows[0].push_back("accuracy");
  const bool tokens = measured(runs, "tok_per_s"), speed = tokens || measured(runs, "pictures_per_s");
  if (speed) rows[0].push_back(tokens ? "tokens/s" : "images/s");
  for (const Run& run : runs) {
    const auto last = [&](LogName member, int decimals, double scale, const std::string& unit) {
      return shown_of(run, decimals, unit, [&](const Run& one) { return last_of(column(one, member, scale)); });
    };
    std::vector<std::string> row = {run.name, std::to_string(run.rows.back().step), last("loss", 4, 1, "")};
    if (window > 1) {
      row.push_back(shown_of(run, 4, "",
                             [&](const Run& one) { return last_of(moving_average(column(one, "loss", 1), window)); }));
    }
    if (validated) {
      row.push_back(last("val_loss", 4, 1, ""));
      const Best best = best_validation(run);
      row.push_back(shown_of(run, 4, "", [](const Run& one) { return best_validation(one).value; }) +
                    (std::isnan(best.value) || !run.members.empty() ? "" : str(" at ", best.step)));
    }
    if (tasks) row.push_back(last("task_acc", 1, 100, " %"));
    if (classes) row.push_back(last(pairs ? LogName("val_accuracy") : LogName("val_top1"), 2, 100, " %"));
    if (speed) {
      const double rate = median_speed(run, tokens ? LogName("tok_per_s") : LogName("pictures_per_s"));
      row.push_back(std::isnan(rate) ? "-" : human(rate, 3));
    }
    rows.push_back(row);
  }
  return rows;
}

void draw_legend(Drawing& drawing, const Frame& first, const std::vector<std::vector<std::string>>& rows,
                 bool validated) {
  constexpr double letter = 7.3, gap = 20, swatch = 42;
  double y = first.y;
  const size_t columns = rows[0].size();
  std::vector<double> ends(columns, first.x + first.width);
  double name_end = first.x + first.width;
  for (size_t c = columns; c-- > 1;) {
    size_t longest = 0;
    for (const auto& row : rows) longest = std::max(longest, letters(row[c]));
    ends[c] = name_end;
    name_end -= letter * static_cast<double>(longest) + gap;
  }
  const auto name_letters = static_cast<size_t>(std::max(8.0, (name_end - first.x - swatch) / letter));
  for (size_t r = 0; r < rows.size(); ++r, y += first.height) {
    const char* look = r == 0 ? "small" : "";
    drawing.text(first.x + swatch, y, preview(rows[r][0], name_letters), look);
    for (size_t c = 1; c < columns; ++c) drawing.text(ends[c], y, rows[r][c], look, "end");
    if (r == 0) continue;
    const int series = static_cast<int>(r) - 1;
    drawing.path({{first.x, y - 4}, {first.x + 32, y - 4}}, series_look("line", series), series_dash(series));
    if (validated) drawing.circle(first.x + 16, y - 4, 3.6, series_look("dot", series));
  }
}

}  // namespace braid::apps
