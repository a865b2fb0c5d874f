#include "apps/study/report_writer.h"

#include "apps/chart/chart_files.h"
#include "apps/cli/text.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/file_system.h"

namespace braid::apps {

ReportWriter::ReportWriter(const std::filesystem::path& folder, const Medium& medium)
    : folder_(folder), medium_(medium) {
  io::make_folder(folder_);
}

void ReportWriter::table(const std::string& name, const Table& table, const std::string& caption) {
  page_ += table.markdown();
  tables_ += "\n" + table.latex(caption, name);
}

void ReportWriter::figure(const std::string& name, const Chart& chart, const std::string& caption,
                          const std::string& csv) {
  write_chart(folder_ / name, chart, csv, medium_);
  page_ += std::string(page_.ends_with("\n\n") ? "" : "\n") + "![" + name + "](" + name + ".svg)\n\n" + caption + "\n";
  figures_ += "\n\\begin{figure}\n  \\centering\n  \\includegraphics[width=" + shortest(medium_.inches) + "in]{" +
              name + ".pdf}\n  \\caption{" + latex_escaped(caption) + "}\n  \\label{fig:" + name + "}\n\\end{figure}\n";
}

void ReportWriter::csv(const std::string& name, const Csv& csv) const {
  io::write_file((folder_ / (name + ".csv")).string(), csv.text());
}

std::string ReportWriter::finish() const {
  const auto write = [&](const std::string& name, const std::string& text) {
    io::write_file((folder_ / name).string(), text);
  };
  write("report.md", page_);
  if (!tables_.empty()) write("tables.tex", "% By braid study. Needs \\usepackage{booktabs}.\n" + tables_);
  if (medium_.paper() && !figures_.empty())
    write("figures.tex", "% By braid study. Needs \\usepackage{graphicx}.\n" + figures_);
  return page_;
}

}  // namespace braid::apps
