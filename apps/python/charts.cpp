// Charts for notebooks, as SVG: the curves of runs, and maps of heads.
#include <algorithm>

#include "apps/chart/chart.h"
#include "apps/chart/run_chart.h"
#include "apps/chart/svg.h"
#include "apps/cli/loaded_model.h"
#include "apps/python/bindings.h"

namespace braid::python {

namespace {

std::string run_curves(const std::vector<std::string>& folders) {
  std::vector<apps::Run> runs;
  for (const std::string& folder : folders) {
    runs.push_back({.name = apps::model_name(folder), .rows = apps::read_log(folder), .x = {}, .members = {}});
    for (const apps::LogRow& row : runs.back().rows) runs.back().x.push_back(static_cast<double>(row.step));
  }
  const apps::RunLook look{
      .x = {.name = "step", .member = {}}, .window = apps::usual_window(runs), .command = "braid.Run"};
  return apps::svg_of(apps::run_chart(std::move(runs), look)({}));
}

// values (rows, columns), or (panels, rows, columns).
std::string heat_map(const Tensor& values, const std::vector<std::string>& titles, const std::vector<std::string>& rows,
                     const std::vector<std::string>& columns, const std::string& unit, int across) {
  check(values.rank() == 2 || values.rank() == 3, ErrorKind::misuse,
        [&] { return str("heat_map: expected (rows, columns) or (panels, rows, columns), found ", values.shape()); });
  check(values.numel() > 0, ErrorKind::misuse,
        [&] { return str("heat_map: expected values, found none in ", values.shape()); });
  const Tensor maps = values.rank() == 2 ? unsqueeze(values.detach(), 0) : values.detach();
  const int64_t panels = maps.dim(0), R = maps.dim(1), C = maps.dim(2);
  const auto check_names = [](const char* what, const std::vector<std::string>& names, int64_t size) {
    check(names.empty() || std::ssize(names) == size, ErrorKind::misuse,
          [&] { return str("heat_map: expected ", size, " ", what, ", found ", names.size()); });
  };
  check_names("titles", titles, panels);
  check_names("names of rows", rows, R);
  check_names("names of columns", columns, C);
  std::vector<apps::HeatPanel> drawn;
  for (int64_t i = 0; i < panels; ++i)
    drawn.push_back({.title = titles.empty() ? "" : titles[static_cast<size_t>(i)],
                     .rows = static_cast<int>(R),
                     .columns = static_cast<int>(C),
                     .values = maps.sliced(0, i, i + 1).to(kCpu).to(DType::f64).contiguous().to_vector<double>(),
                     .row_names = rows,
                     .column_names = columns,
                     .words = {}});
  const apps::HeatLayout layout{.across = std::clamp(across, 1, static_cast<int>(panels)), .max = {}, .unit = unit};
  return apps::svg_of(apps::heat_chart({.title = ""}, std::move(drawn), layout)({}));
}

}  // namespace

void bind_charts(nb::module_& m) {
  m.def("_run_curves", run_curves, "runs"_a, nb::call_guard<Unlocked>());
  m.def("_heat_map", heat_map, "values"_a, "titles"_a, "rows"_a, "columns"_a, "unit"_a, "across"_a,
        nb::call_guard<Unlocked>());
}

}  // namespace braid::python
