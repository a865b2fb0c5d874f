#include "apps/analyze/page.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "apps/analyze/page_parts.h"
#include "apps/chart/svg.h"
#include "apps/cli/text.h"
#include "apps/serve/page/page_files.h"
#include "braid/models/inspect/diversity.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/path_status.h"

namespace braid::apps::analyze {
namespace {

using models::Analysis, models::AnalysisSection, models::LayerMeasures, models::MapKind, models::RowKind;

// ES modules as one script: without their imports, and with nothing exported.
std::string joined_scripts() {
  std::string script;
  const auto add = [&](std::string_view module) {
    for (size_t at = 0; at < module.size();) {
      const size_t end = std::min(module.find('\n', at), module.size());
      std::string_view line = module.substr(at, end - at);
      at = end + 1;
      if (line.starts_with("import ")) continue;
      if (line.starts_with("export ")) line.remove_prefix(std::strlen("export "));
      script.append(line) += '\n';
    }
  };
  for (const char* file :
       {"colors.js", "choice.js", "compose.js", "equation.js", "flow.js", "maps.js", "layer_view.js"})
    add(serve::find_page_file(str("/page/", file))->contents);
  add(page_part("report.js"));
  return script;
}

std::string floats(const std::vector<float>& values) {
  static_assert(std::endian::native == std::endian::little);
  return base64({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
}

// Whether report.js finds the other maps of a layer from its scores: what Compose makes of these, the softmax of that
// over the keys that are shown, and what Compose makes of it. Attention variants compute others, and of a model that
// masks no keys some are not shown.
bool follow_from_scores(const Analysis& a, const models::ShownLayer& layer) {
  const std::vector<float>&composed = layer.maps[1], &probs = layer.maps[2];
  if (layer.pre.empty() && composed != layer.maps[0]) return false;
  auto row = composed.begin();
  auto found = probs.begin();
  for (int64_t n = 0; n < a.heads; ++n)
    for (int64_t i = 0; i < std::ssize(a.shown); ++i) {
      const std::vector<double> scores(row, row + a.keys_shown(i));
      for (const double p : models::softmax_row(scores))
        if (!(std::fabs(p - *found++) <= 1e-4)) return false;
      row += std::ssize(scores);
    }
  return true;
}

nlohmann::json layer_data(const Analysis& a, const models::ShownLayer& layer) {
  nlohmann::json weights = nlohmann::json::object();
  for (const auto& [stage, w] : {std::pair{"dyn.pre", &layer.pre}, {"dyn.post", &layer.post}})
    for (const auto& [name, x] : {std::pair{".w", &w->base},
                                  {"_q.w1", &w->q_down},
                                  {"_q.w2", &w->q_up},
                                  {"_q.dd", &w->q_gate},
                                  {"_k.w1", &w->k_down},
                                  {"_k.w2", &w->k_up},
                                  {"_k.dd", &w->k_gate}})
      if (*x)
        weights[str(stage, name)] = {{"shape", std::vector<int64_t>(x->shape().begin(), x->shape().end())},
                                     {"data", floats(x->to_vector<float>())}};
  nlohmann::json data = {{"heads", a.heads}, {"scores", floats(layer.maps[0])}, {"weights", std::move(weights)}};
  if (!follow_from_scores(a, layer))
    for (const MapKind kind : {MapKind::scores_composed, MapKind::probs, MapKind::probs_composed})
      data["maps"][name_of(kind)] = floats(layer.maps[static_cast<size_t>(kind)]);
  return data;
}

std::string page_data(const std::vector<AnalysedModel>& models) {
  nlohmann::json data = {{"models", nlohmann::json::array()}};
  for (const AnalysedModel& model : models) {
    const Analysis& a = model.analysis;
    if (a.shown_layers.empty()) continue;
    nlohmann::json layers = nlohmann::json::array();
    for (const models::ShownLayer& layer : a.shown_layers) layers.push_back(layer_data(a, layer));
    std::vector<std::string> tokens = texts_of(model, a.shown);
    for (std::string& token : tokens) token = detail::show_bidi_controls(token);
    data["models"].push_back({{"name", detail::show_bidi_controls(model.name)},
                              {"composed", a.composed},
                              {"tokens", std::move(tokens)},
                              {"losses", a.shown_losses},
                              {"layers", std::move(layers)}});
  }
  std::string text = data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), safe;
  for (const char c : text) safe += c == '<' ? "\\u003c" : std::string(1, c);  // no end of the script inside of it
  return safe;
}

double over_layers(const Analysis& a, auto&& value) {
  double sum = 0;
  for (const LayerMeasures& l : a.measures) sum += value(l);
  return sum / static_cast<double>(a.measures.size());
}

std::string before_and_after(const Analysis& a, auto&& value, bool after_exists) {
  const std::string before = human(over_layers(a, [&](const LayerMeasures& l) { return value(l, false); }), 4);
  return after_exists
             ? before + " → " + human(over_layers(a, [&](const LayerMeasures& l) { return value(l, true); }), 4)
             : before;
}

struct Heading {
  AnalysisSection section;
  const char *title, *explain;
};
constexpr Heading kHeadings[] = {
    {AnalysisSection::mixing, "How heads are mixed",
     "The mean of the matrix W over all pairs, term by term, and how much each term adds. Terms that change their sign "
     "from "
     "pair to pair have a small mean; their root mean square is in the tables."},
    {AnalysisSection::rank, "Rank of attention",
     "A head of size d makes scores of rank d at most, without a softcap, however long the text is. Compose mixes the "
     "scores of all heads, with weights of the pair, and can exceed that. Scores are those of all pairs, future keys "
     "among them, because a mask alone changes the rank; attention weights have the mask."},
    {AnalysisSection::diversity, "Diversity of heads", "Do heads look at the same tokens? Before Compose and after."},
    {AnalysisSection::patterns, "Heads with a known role",
     "Heads that copy rely on a head that looks at the previous token and one that finds the same token before "
     "(induction)."},
    {AnalysisSection::ablation, "What is needed", "The loss without a part of the model, on the same text."},
    {AnalysisSection::lens, "The prediction, layer by layer",
     "The logit lens: the residual stream after each layer, read out."},
    {AnalysisSection::circuits, "Circuits in the weights",
     "Which tokens a head attends to (QK) and what it then writes (OV), from the weights alone."}};

std::string figure_html(const Figure& f, bool both) {
  return str("<figure", both ? " class=\"both\"" : "", " id=\"", f.id, "\">", svg_of(f.chart({})), "<figcaption>",
             escape_html(f.caption), " <span class=\"files\"><a href=\"figures/", f.id,
             ".svg\">SVG</a> <a href=\"figures/", f.id, ".csv\">CSV</a></span></figcaption></figure>\n");
}

// Figures of several models stand beside each other: the k-th of one beside the k-th of the other.
std::string section_html(const Heading& heading, const std::vector<AnalysedModel>& models,
                         const std::vector<Figure>& figures) {
  std::string body;
  std::vector<std::vector<const Figure*>> of_model(models.size());
  for (const Figure& f : figures) {
    if (f.section != heading.section) continue;
    if (f.of.empty()) body += figure_html(f, true);
    for (size_t m = 0; m < models.size(); ++m)
      if (f.of == models[m].name) of_model[m].push_back(&f);
  }
  size_t max = 0;
  for (const auto& list : of_model) max = std::max(max, list.size());
  for (size_t k = 0; k < max; ++k)
    for (const auto& list : of_model) body += k < list.size() ? figure_html(*list[k], false) : "<figure></figure>";
  if (body.empty()) return "";
  const std::string id = name_of(heading.section);
  return "<section id=\"" + id + "-section\"><h2>" + heading.title + "</h2><p class=\"explain\">" + heading.explain +
         "</p><div class=\"figures" + (models.size() > 1 ? " pair" : "") + "\">\n" + body + "</div></section>\n";
}

}  // namespace

std::string escape_html(const std::string& text) {
  std::string result;
  for (const char c : detail::show_bidi_controls(detail::replace_invalid_utf8(text)))
    result += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" : std::string(1, c);
  return result;
}

std::string fill_template(std::string_view text, const std::vector<std::pair<std::string, std::string>>& values) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t open = text.find("{{", at), close = text.find("}}", open);
    if (close == std::string_view::npos) return result.append(text.substr(at));
    result += text.substr(at, open - at);
    const std::string name(text.substr(open + 2, close - open - 2));
    for (const auto& [key, value] : values)
      if (key == name) result += value;
    at = close + 2;
  }
  return result;
}

std::string html_page(const HtmlPage& page) {
  const std::string style = str(serve::find_page_file("/page/page.css")->contents, page_part("page.css"), page.style);
  return fill_template(page_part("frame.html"), {{"title", escape_html(page.title)},
                                                 {"style", style},
                                                 {"scripts", page.scripts ? "script-src 'unsafe-inline'; " : ""},
                                                 {"first_section", page.first_section},
                                                 {"body", page.body}});
}

void check_report_folder(const std::filesystem::path& out) {
  check(!io::exists(out / "config.json"), ErrorKind::setting,
        [&] { return "--out " + out.string() + " holds a model: expected a folder for the report alone"; });
}

std::vector<SummaryRow> summary(const std::vector<AnalysedModel>& models) {
  std::vector<SummaryRow> rows;
  const auto add = [&](const std::string& name, auto&& value) {
    SummaryRow row{name, {}};
    for (const AnalysedModel& model : models) row.values.push_back(value(model.analysis));
    if (std::ranges::any_of(row.values, [](const std::string& v) { return v != "-"; })) rows.push_back(row);
  };
  const auto map = [](bool scores, bool after) {
    return static_cast<size_t>(scores  ? after ? MapKind::scores_composed : MapKind::scores
                               : after ? MapKind::probs_composed
                                       : MapKind::probs);
  };
  add("layers, heads of each", [](const Analysis& a) { return str(a.layers, ", ", a.heads); });
  add("mean loss (nats per token, ± 95 %)",
      [](const Analysis& a) { return human(a.loss.mean, 5) + " ± " + human(kInterval * a.loss.error, 2); });
  for (const bool scores : {true, false}) {
    const std::string of = scores ? "scores" : "weights";
    add("effective rank of " + of, [&](const Analysis& a) {
      if (a.measures.at(0).effective_rank[0].empty()) return std::string("-");
      return before_and_after(
          a, [&](const LayerMeasures& l, bool after) { return models::mean_of(l.effective_rank[map(scores, after)]); },
          a.composed);
    });
    add("cosine of heads, " + of, [&](const Analysis& a) {
      return before_and_after(
          a,
          [&](const LayerMeasures& l, bool after) {
            return models::mean_off_diagonal(l.cosines[map(scores, after)], l.heads);
          },
          a.composed);
    });
  }
  for (const RowKind kind : models::kRowKinds)
    add(str("divergence of heads, ", name_of(kind)), [&](const Analysis& a) {
      if (!a.composed && kind != RowKind::probs) return std::string("-");
      return human(over_layers(a,
                               [&](const LayerMeasures& l) {
                                 return models::mean_off_diagonal(l.divergences[static_cast<size_t>(kind)], l.heads);
                               }),
                   4);
    });
  for (const auto& [name, member] :
       std::initializer_list<std::pair<const char*, std::array<std::vector<double>, 2> LayerMeasures::*>>{
           {"best head for the previous token", &LayerMeasures::previous},
           {"best induction head", &LayerMeasures::induction}})
    add(name, [member = member](const Analysis& a) {
      if (a.measures.at(0).induction[0].empty()) return std::string("-");
      const auto best = [&](size_t after) {
        double max = 0;
        for (const LayerMeasures& l : a.measures)
          for (const double x : (l.*member)[after]) max = std::max(max, x);
        return human(max, 3);
      };
      return a.composed ? best(0) + " → " + best(1) : best(0);
    });
  add("loss without Compose (change, ± 95 %)", [](const Analysis& a) {
    for (const models::AblationResult& r : a.ablations)
      if (!r.ablation.layer && !r.ablation.head && r.ablation.pre && r.ablation.post && !r.ablation.term)
        return (r.change.mean < 0 ? "" : "+") + human(r.change.mean, 4) + " ± " + human(kInterval * r.change.error, 2);
    return std::string("-");
  });
  return rows;
}

std::string report_page(const std::vector<AnalysedModel>& models, const std::vector<Figure>& figures,
                        const std::string& about) {
  std::string title = "Analysis of " + models[0].name, table = "<table class=\"summary\"><tr><th></th>", notes;
  for (size_t m = 1; m < models.size(); ++m) title += " and " + models[m].name;
  for (const AnalysedModel& model : models) {
    table += "<th>" + escape_html(model.name) + "</th>";
    for (const std::string& left_out : model.analysis.left_out)
      notes += "<p class=\"explain\">Not here for " + escape_html(model.name) + ": " + escape_html(left_out) + ".</p>";
  }
  table += "</tr>";
  for (const SummaryRow& row : summary(models)) {
    table += "<tr><td>" + row.name + "</td>";
    for (const std::string& value : row.values) table += "<td>" + value + "</td>";
    table += "</tr>";
  }
  table += "</table>";
  if (models[0].analysis.composed) notes += "<p class=\"explain\">Before → after Compose, means over layers.</p>";
  const bool maps = !models[0].analysis.shown_layers.empty();
  std::string contents = maps ? "<a href=\"#maps-section\">Attention, head by head</a>" : "", sections;
  for (const Heading& heading : kHeadings) {
    const std::string html = section_html(heading, models, figures);
    if (html.empty()) continue;
    contents += str("<a href=\"#", name_of(heading.section), "-section\">", heading.title, "</a>");
    sections += html;
  }
  const std::string body =
      fill_template(page_part("index.html"), {{"about", escape_html(about)},
                                              {"summary", table},
                                              {"notes", notes},
                                              {"contents", contents},
                                              {"maps", maps ? std::string(page_part("maps.html")) : ""},
                                              {"sections", sections},
                                              {"data", page_data(models)},
                                              {"script", maps ? joined_scripts() : ""}});
  return html_page({.title = title, .first_section = "summary", .body = body, .scripts = true});
}

}  // namespace braid::apps::analyze
