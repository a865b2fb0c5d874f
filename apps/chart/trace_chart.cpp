#include "apps/chart/trace_chart.h"

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "apps/chart/parts.h"
#include "apps/chart/style.h"
#include "apps/cli/text.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/json.h"
#include "braid/tensor/io/path_status.h"

namespace braid::apps {
namespace {

struct Event {
  std::string name, kind;
  double begin, end;  // milliseconds from the first event of all ranks
  double bytes;
};
using RankEvents = std::map<int, std::vector<Event>>;

const std::vector<std::pair<std::string, std::string>> kKinds = {
    {"op", "forward"}, {"derivative", "backward"}, {"transfer", "transfers, with waiting"}};

RankEvents read_events(const std::filesystem::path& run) {
  const std::filesystem::path folder = run / "trace";
  RankEvents ranks;
  double first = std::numeric_limits<double>::infinity();
  for (const std::filesystem::path& file : io::list_folder(folder)) {
    if (!file.filename().string().starts_with("rank-") || file.extension() != ".json") continue;
    try {
      const nlohmann::json trace = io::read_json_file(file.string());
      for (const nlohmann::json& e : trace.at("traceEvents")) {
        const double begin = e.at("ts").get<double>() / 1000, length = e.at("dur").get<double>() / 1000;
        ranks[e.at("pid").get<int>()].push_back({e.at("name").get<std::string>(), e.at("cat").get<std::string>(), begin,
                                                 begin + length, e.at("args").at("bytes").get<double>()});
        first = std::min(first, begin);
      }
    } catch (const nlohmann::json::exception& error) {
      fail(ErrorKind::input, "not a trace of braid train: " + file.string() + ": " + error.what());
    }
  }
  check(!ranks.empty(), ErrorKind::input, [&] {
    return "no trace in " + folder.string() + ": expected rank-0.json; train with log.trace=true, at least three steps";
  });
  for (auto& [rank, events] : ranks)
    for (Event& e : events) e.begin -= first, e.end -= first;
  return ranks;
}

// Bars of one row; events of a kind that follow each other closer than a unit become one bar.
void draw_row(Drawing& drawing, const std::vector<Event>& events, const Axis& xs, double y, double height) {
  for (size_t kind = 0; kind < kKinds.size(); ++kind) {
    std::string words;
    double begin = 0, end = -1;
    int64_t count = 0;
    const auto flush = [&] {
      if (count == 0) return;
      drawing.cell(xs.at(begin), y, std::max(0.3, xs.at(end) - xs.at(begin)), height,
                   series_look("bar", static_cast<int>(kind)), 0.85,
                   count == 1 ? str(words, ", ", human(end - begin, 3), " ms")
                              : str(count, " events, ", human(end - begin, 3), " ms"));
      count = 0;
    };
    for (const Event& e : events) {
      if (e.kind != kKinds[kind].first) continue;
      if (count > 0 && (e.begin - end > 1e-6 || xs.at(e.end) - xs.at(begin) > 1)) flush();
      if (count == 0) begin = e.begin;
      end = e.end, words = e.name, ++count;
    }
    flush();
  }
}

Drawing draw_trace(const RankEvents& ranks, const std::string& command, const Medium& medium) {
  double last = 0, most = 0;
  Points memory;
  for (const auto& [rank, events] : ranks) {
    for (const Event& e : events) {
      last = std::max(last, e.end);
      if (rank == ranks.begin()->first && e.kind != "phase" && e.bytes > 0) {
        memory.emplace_back(e.end, e.bytes / (1 << 20));
        most = std::max(most, memory.back().second);
      }
    }
  }
  SeriesNames names;
  for (size_t kind = 0; kind < kKinds.size(); ++kind) names.emplace_back(kKinds[kind].second, static_cast<int>(kind));
  const std::string caption = str("The timeline of one step by the clock of the host, made by: ", command);
  const double title = title_height(medium), row = 26, left = 64, width = medium.width() - left - 16,
               rows = row * static_cast<double>(ranks.size()), below = 150;
  const double height =
      title + 24 + rows + 30 + below + 60 + series_height(names, medium) + caption_height(caption, medium);
  Drawing drawing(medium, medium.width(), height, "Timeline of a training step", caption);
  draw_title(drawing, drawing.title);
  const Axis xs{0, std::max(last, 1e-6), false, false, left, left + width};
  double y = title + 24;
  for (const auto& [rank, events] : ranks) {
    drawing.text(left - 8, y + row / 2 + 2, str("rank ", rank), "small", "end");
    draw_row(drawing, events, xs, y, row - 8);
    y += row;
  }
  const Frame frame{left, y + 30, width, below};
  const Axis ys{0, std::max(most, 1e-6) * 1.05, false, false, frame.y + frame.height, frame.y};
  draw_axes(drawing, frame, xs, ys, str("tensors of rank ", ranks.begin()->first, " (MiB)"), "time (ms)", left);
  for (auto& [x, mib] : memory) x = xs.at(x), mib = ys.at(mib);
  drawing.path(memory, series_look("line", 3));
  draw_series(drawing, names, frame.y + frame.height + 48);
  draw_caption(drawing, caption);
  return drawing;
}

}  // namespace

Chart trace_chart(const std::filesystem::path& run, const std::string& command) {
  return [ranks = read_events(run), command](const Medium& medium) { return draw_trace(ranks, command, medium); };
}

}  // namespace braid::apps
