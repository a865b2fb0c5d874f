// Writes the op table as lines of JSON, one for each case of a row: its inputs and the values of the reference, in f64.
#include <iostream>
#include <nlohmann/json.hpp>

#include "tests/support/op_table.h"

int main() {
  using namespace braid;
  for (const test::OpRow& row : test::all_rows())
    for (const std::vector<Shape>& shapes : row.cases) {
      const std::vector<Tensor> inputs = test::random_inputs(row, shapes, DType::f64);
      const auto json = [](const test::Array& x) {
        return nlohmann::json{{"shape", std::vector<int64_t>(x.shape.begin(), x.shape.end())}, {"values", x.values}};
      };
      nlohmann::json line{{"row", row.name}, {"inputs", nlohmann::json::array()}};
      for (size_t i = 0; i < inputs.size(); ++i) {
        line["inputs"].push_back(json(test::arrays({inputs[i]})[0]));
        line["inputs"][i]["ids"] = inputs[i].dtype() == DType::i64;
      }
      line["result"] = json(row.reference(test::arrays(inputs)));
      if (row.differentiable) line["gradient_tolerance"] = row.gradient_tolerance;
      std::cout << line << '\n';
    }
}
