// The reports of `braid analyze`, each one HTML page that needs nothing but itself.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/analyze/figures.h"

namespace braid::apps::analyze {

// figures: those that are shown on the page, in order. `about` is a line on what was read and how.
std::string report_page(const std::vector<AnalysedModel>& models, const std::vector<Figure>& figures,
                        const std::string& about);

std::string escape_html(const std::string& text);
// The template with {{name}} replaced by the values, in one pass: values are not searched.
std::string fill_template(std::string_view text, const std::vector<std::pair<std::string, std::string>>& values);

// The page of a report inside the frame that all have (page/frame.html).
struct HtmlPage {
  std::string title;          // as text
  std::string style = "";     // CSS besides that of every page
  std::string first_section;  // its id, to which the first link of the page leads
  std::string body;
  bool scripts = false;  // of the body may run
};
std::string html_page(const HtmlPage& page);

// Error(setting) where the folder of a report holds a model.
void check_report_folder(const std::filesystem::path& out);

// The numbers of the summary: a row for each measure, a column for each model.
struct SummaryRow {
  std::string name;
  std::vector<std::string> values;
};
std::vector<SummaryRow> summary(const std::vector<AnalysedModel>& models);

}  // namespace braid::apps::analyze
