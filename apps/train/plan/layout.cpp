#include "apps/train/plan/layout.h"

#include <algorithm>
#include <cctype>
#include <memory>
#include <vector>

#include "apps/cli/text.h"
#include "braid/models/model.h"

namespace braid::apps {
namespace {

using Row = std::vector<std::string>;

std::string ranges_text(const dist::Ranges& ranges) {
  std::string text;
  for (const dist::Range& r : ranges)
    if (r.size() > 0) text += str(text.empty() ? "" : " ", r.begin, r.size() > 1 ? str("-", r.end - 1) : "");
  return text.empty() ? "none" : text;
}

// "layers.*.attention.wqkv" for "layers.3.attention.wqkv".
std::string of_any_layer(const std::string& name) {
  std::vector<std::string> parts = split(name, '.');
  for (std::string& part : parts)
    if (!part.empty() && std::ranges::all_of(part, [](unsigned char c) { return std::isdigit(c) != 0; })) part = "*";
  return join(parts, ".");
}

std::string table(const std::vector<Row>& rows) {
  std::vector<size_t> widths(rows.front().size());
  for (const Row& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += "  " + row[i] + std::string(widths[i] - row[i].size(), ' ');
    text +=
        std::string(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(line.find_last_not_of(' ') + 1)) + "\n";
  }
  return text;
}

}  // namespace

std::string layout_table(const models::ModelSpec& model, const dist::MeshShape& mesh, int64_t sequence_length) {
  const int ranks = static_cast<int>(mesh.tensor);
  std::string text = str("\nlayout: rank = (data ", mesh.context, " + context) ", mesh.tensor, " + tensor\n");
  if (mesh.data > 1)
    text += str("  data ranks hold the same weights and train each on 1/", mesh.data, " of the samples of a batch\n");
  if (mesh.context > 1) {
    const dist::Partition positions = dist::zigzag_partition(sequence_length, static_cast<int>(mesh.context));
    for (int r = 0; r < positions.ranks(); ++r)
      text += str("  context rank ", r, " holds the positions ", ranges_text(dist::merge(positions.of(r))),
                  " of every sequence\n");
  }
  if (ranks == 1) return text + "  all parameters are complete on every rank\n";

  const std::unique_ptr<models::Model> first = model.make_shape_only(dist::counting_mesh(mesh, {}));
  Row head{"parameter", "shape", "axis"};
  for (int r = 0; r < ranks; ++r) head.push_back(str("tensor rank ", r));
  std::vector<Row> rows;
  for (const NamedTensor& parameter : model.parameters()) {
    Row row{of_any_layer(parameter.name), str("", parameter.value.shape()), "-"};
    if (const dist::Shard* shard = first->shard_of(parameter.name)) {
      row[2] = std::to_string(shard->axis);
      for (int r = 0; r < ranks; ++r) row.push_back(ranges_text(shard->partition.of(r)));
    } else {
      row.push_back("complete on every rank");
      row.resize(static_cast<size_t>(3 + ranks));
    }
    if (std::ranges::find(rows, row) == rows.end()) rows.push_back(row);
  }
  rows.insert(rows.begin(), head);
  return text + table(rows);
}

}  // namespace braid::apps
