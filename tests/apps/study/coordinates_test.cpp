// Coordinate checks of braid study: activations by width, with muP and without it.
#include "apps/study/coordinates.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <map>

#include "tests/apps/study/studies.h"
#include "tests/support/idx_images.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(study_coordinates)

namespace fs = std::filesystem;

namespace {

// By "variant quantity", at step 6, the last one.
std::map<std::string, double> slopes_in(const fs::path& report) {
  std::map<std::string, double> slopes;
  for (const std::string& line : split(slurp(report / "slopes.csv"), '\n'))
    if (const auto cells = split(line, ','); cells.size() == 4 && cells[2] == "6")
      slopes[cells[0] + " " + cells[1]] = std::stod(cells[3]);
  return slopes;
}

}  // namespace

BOOST_AUTO_TEST_CASE(coordinates_of_images_and_pairs_are_flat_under_mup_alone) {
  const fs::path in = world().scratch / "halves";
  const std::string images = (world().scratch / "pictures").string(), train = write_idx_images(in, "train", 60),
                    val = write_idx_images(in, "t10k", 20);
  const Outcome made = run("prepare --images " + train + " --val " + val + " -o " + images);
  BOOST_TEST(made.code == 0, made.output);
  struct Case {
    std::string base;
    int quantities;
    std::vector<std::string> flat;
    std::string unit;
  };
  const std::string cross = "decoder.layers.0.cross_attn_out";
  const Case cases[] = {{"data.path = \"" + images + "\"\nmodel.preset = \"dc-vit-28\"\nmodel.num_hidden_layers = 1\n",
                         5,
                         {"hidden.0", "hidden.1", "layers.0.attn_out", "layers.0.ffn_out", "logits"},
                         "in nats per image"},
                        {"data.path = \"pairs:sort\"\nmodel.preset = \"dc-seq2seq-tiny\"\nmodel.encoder_layers = 1\n"
                         "model.decoder_layers = 1\n",
                         10,
                         {"encoder.hidden.1", "decoder.hidden.0", "decoder.hidden.1", cross, "logits"},
                         "in nats per token"}};
  for (const Case& c : cases) {
    const fs::path out = world().fresh();
    std::string text = "[study]\nout = \"" + out.string() + "\"\nseeds = 1\nsteps = 6\ncoordinates = true\n[base]\n" +
                       c.base +
                       "train.batch_size = 8\noptimizer.lr = 0.003\nschedule.warmup = 1\nschedule.name = \"constant\"\n"
                       "eval.interval = 6\neval.samples = 2\nguard.spike = 0\nrun.threads = 1\n";
    for (const int width : {32, 64, 128, 256})
      text += str("[sizes.w", width, "]\nmodel.hidden_size = ", width, "\nmodel.num_attention_heads = ", width / 8,
                  "\nmodel.intermediate_size = ", 2 * width, "\n");
    const fs::path file = file_of(text + "[variants.sp]\n[variants.mup]\nmodel.mup_base_width = 32\n");
    check_rejected(file, " of another kind; use nats-per-token", " --metric bits-per-byte");
    const Outcome done = run("study " + file.string());
    BOOST_TEST(done.code == 0, done.output);
    const fs::path report = out / "report";
    BOOST_TEST(slurp(report / "report.md").find(c.unit) != std::string::npos, c.base);
    BOOST_TEST(rows_of(report / "coordinates.csv") == size_t(2 * 4 * 6 * c.quantities));
    const std::map<std::string, double> slopes = slopes_in(report);
    double steepest = 0;
    for (const auto& [name, slope] : slopes)
      if (name.starts_with("sp ")) steepest = std::max(steepest, slope);
    BOOST_TEST(steepest > 0.5, c.base);
    for (const std::string& quantity : c.flat)
      BOOST_TEST(std::fabs(slopes.at("mup " + quantity)) < apps::kFlatSlope,
                 quantity << ": " << slopes.at("mup " + quantity));
  }
}

// Three widths under muP and without it: with one rate for all, the logits of the latter grow with the width.
BOOST_AUTO_TEST_CASE(coordinates_are_flat_under_mup_alone) {
  const fs::path out = world().fresh();
  const std::string text =
      "[study]\nout = \"" + out.string() + "\"\nseeds = 1\nsteps = 6\ncoordinates = true\n[base]\ndata.path = \"" +
      world().data().string() +
      "\"\nmodel.n_layer = 1\nmodel.head_dim = 8\nmodel.block_size = 32\nmodel.initializer_std = 0.1\n"
      "model.intermediate_size = 64\ntrain.batch_size = 4\noptimizer.lr = 0.005\nschedule.warmup = 1\n"
      "schedule.name = \"constant\"\neval.interval = 6\neval.samples = 2\nguard.spike = 0\nrun.threads = 1\n";
  std::string sizes, variants = "[variants.sp]\n[variants.mup]\nmodel.mup_base_width = 32\n";
  for (const int width : {32, 64, 128, 256})
    sizes += str("[sizes.w", width, "]\nmodel.dim = ", width, "\nmodel.n_head = ", width / 8,
                 "\nmodel.intermediate_size = ", 2 * width, "\n");
  const Outcome done = run("study " + file_of(text + sizes + variants).string());
  BOOST_TEST(done.code == 0, done.output);
  const fs::path report = out / "report";
  BOOST_TEST(rows_of(report / "coordinates.csv") == 2 * 4 * 6 * 5);  // variants, widths, steps, quantities
  for (const char* chart : {"coordinates-sp.svg", "coordinates-mup.svg"})
    BOOST_TEST(slurp(report / chart).starts_with("<svg"), chart);
  const std::map<std::string, double> slopes = slopes_in(report);
  BOOST_TEST(slopes.at("sp logits") > 0.5);
  for (const char* quantity : {"hidden.0", "hidden.1", "layers.0.attn_out", "layers.0.ffn_out", "logits"})
    BOOST_TEST(std::fabs(slopes.at(str("mup ", quantity))) < apps::kFlatSlope,
               quantity << ": " << slopes.at(str("mup ", quantity)));
  const std::string page = slurp(report / "report.md");
  for (const char* part : {"## Coordinate check", "| sp | logits | 6 |", "- sp: the steepest slope is that of "})
    BOOST_TEST(page.find(part) != std::string::npos, page << " lacks " << part);
  check_rejected(file_of(text + "[sizes.w32]\nmodel.dim = 32\nmodel.n_head = 4\n" + variants),
                 "expected two or more sections [sizes.NAME] and one budget, found 1 and 1");
}

BOOST_AUTO_TEST_SUITE_END()
