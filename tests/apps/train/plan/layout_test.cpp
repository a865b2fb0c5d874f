// braid train --dry-run --layout: the shards of every parameter.
#include <boost/test/unit_test.hpp>

#include "tests/apps/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(layout)

namespace {

const std::string kTiny = "train model.preset=dcformer-tiny model.n_layer=2 data.seq_len=10 eval.interval=0 ";

void shows(const std::string& arguments, const std::vector<std::string>& lines) {
  const Outcome result = run(kTiny + arguments);
  BOOST_TEST(result.code == 0, result.output);
  for (const std::string& line : lines)
    BOOST_TEST(result.output.find("\n" + line + "\n") != std::string::npos, "no '" << line << "' in " << result.output);
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_rank_has_its_rows) {
  shows(
      "parallel.context=2 parallel.tensor=2 --dry-run --layout",
      {"layout: rank = (data 2 + context) 2 + tensor", "  context rank 0 holds the positions 0-2 8-9 of every sequence",
       "  context rank 1 holds the positions 3-7 of every sequence",
       "  layers.*.attention.wqkv.weight     (768, 256)        0     0-127 256-383 512-639   128-255 384-511 640-767",
       "  layers.*.attention.wo.weight       (256, 256)        1     0-127                   128-255",
       "  norm.weight                        (256)             -     complete on every rank"});
}

BOOST_AUTO_TEST_CASE(data_ranks_hold_the_same_weights) {
  shows("parallel.data=4 --dry-run --layout",
        {"  data ranks hold the same weights and train each on 1/4 of the samples of a batch",
         "  all parameters are complete on every rank"});
}

BOOST_AUTO_TEST_CASE(it_is_a_part_of_the_plan) {
  const Outcome alone = run(kTiny + "--layout");
  BOOST_TEST(alone.code == 2);
  BOOST_TEST(alone.output.find("--layout is a part of the plan: add --dry-run") != std::string::npos, alone.output);
}

BOOST_AUTO_TEST_SUITE_END()
