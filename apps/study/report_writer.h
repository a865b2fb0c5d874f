// The files of a report: report.md, its tables as LaTeX, its charts with their numbers.
#pragma once
#include <filesystem>
#include <string>

#include "apps/chart/chart.h"
#include "apps/chart/csv.h"
#include "apps/study/table.h"

namespace braid::apps {

class ReportWriter {
 public:
  ReportWriter(const std::filesystem::path& folder, const Medium& medium);

  void text(const std::string& words) { page_ += words; }
  void title(const std::string& words) { page_ += "\n## " + words + "\n\n"; }
  // Into report.md, and with its caption into tables.tex.
  void table(const std::string& name, const Table& table, const std::string& caption);
  // NAME.svg and NAME.csv, on paper NAME.pdf, with its caption in report.md and on paper in figures.tex. An empty csv:
  // the numbers are in a file of another name.
  void figure(const std::string& name, const Chart& chart, const std::string& caption, const std::string& csv);
  void csv(const std::string& name, const Csv& csv) const;
  // Writes report.md, tables.tex and on paper figures.tex. Returns the text of report.md.
  std::string finish() const;

 private:
  std::filesystem::path folder_;
  Medium medium_;
  std::string page_, tables_, figures_;
};

}  // namespace braid::apps
