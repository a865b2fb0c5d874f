#include "apps/chart/chart_files.h"

#include "apps/chart/pdf.h"
#include "apps/chart/svg.h"
#include "braid/tensor/io/atomic_file.h"

namespace braid::apps {

void write_chart(const std::filesystem::path& stem, const Chart& chart, const std::string& csv, const Medium& medium) {
  const Drawing drawing = chart(medium);
  io::write_file(stem.string() + ".svg", svg_of(drawing));
  if (medium.paper()) io::write_file(stem.string() + ".pdf", pdf_of(drawing));
  if (!csv.empty()) io::write_file(stem.string() + ".csv", csv);
}

}  // namespace braid::apps
