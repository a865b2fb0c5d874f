// Evaluation items of the built-in tasks as lines of JSON.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "braid/models/data/tasks/tasks.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/json.h"
#include "braid/tensor/io/reader.h"

namespace braid::models::text {

using nlohmann::json;
using nlohmann::ordered_json;

std::string task_item_line(const TaskSample& sample) {
  ordered_json answers = ordered_json::array();
  for (const ByteSpan& a : sample.answers) answers.push_back({a.begin, a.end});
  return ordered_json{{"task", sample.task}, {"text", sample.text}, {"answers", answers}}.dump() + "\n";
}

std::vector<TaskSample> read_task_items(const std::string& path) {
  const std::string file = io::read_text_file(path, int64_t{1} << 30);
  std::vector<TaskSample> samples;
  int64_t number = 0;
  for (size_t begin = 0; begin < file.size();) {
    const size_t end = std::min(file.find('\n', begin), file.size());
    const json line =
        io::parse_json(std::string_view(file).substr(begin, end - begin), path, static_cast<int64_t>(begin));
    begin = end + 1;
    ++number;
    const auto require = [&](bool ok, const char* expected) {
      check(ok, ErrorKind::input, [&] {
        return str("cannot read ", path, " at line ", number, ": expected ", expected,
                   "; make the file again with braid prepare");
      });
    };
    require(line.is_object() && line.contains("task") && line["task"].is_string() && line.contains("text") &&
                line["text"].is_string() && line.contains("answers") && line["answers"].is_array(),
            "an object with \"task\", \"text\" and \"answers\"");
    TaskSample sample{line["task"].get<std::string>(), line["text"].get<std::string>(), {}};
    for (const json& a : line["answers"]) {
      require(a.is_array() && a.size() == 2 && a[0].is_number_unsigned() && a[1].is_number_unsigned() && a[0] < a[1] &&
                  a[1] <= sample.text.size(),
              "answers as [begin, end] within the text");
      sample.answers.push_back({a[0].get<int64_t>(), a[1].get<int64_t>()});
    }
    samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace braid::models::text
