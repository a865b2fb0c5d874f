// braid analyze on images: a page that needs nothing but itself, its tables, and what is rejected.
#include <nlohmann/json.hpp>

#include "tests/apps/train/runs.h"
#include "tests/support/idx_images.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(analyze_images_suite)

namespace {

struct Images {
  std::string data, composed, plain;
  Images() {
    const std::filesystem::path in = world().scratch / "analyze-in";
    const std::string train = write_idx_images(in, "train", 60), val = write_idx_images(in, "t10k", 20);
    write(world().scratch / "names.txt", "left <half>\nupper half\n");
    data = (world().scratch / "analyze-images").string();
    const auto make = [](const std::string& command) {
      const Outcome made = run(command);
      if (made.code != 0) throw std::runtime_error(made.output);
    };
    make("prepare --images " + train + " --val " + val + " --classes " + (world().scratch / "names.txt").string() +
         " -o " + data);
    for (const bool compose : {true, false}) {
      std::string& out = compose ? composed : plain;
      out = world().fresh().string();
      make("train run.out=" + out + " data.path=" + data + " model.preset=vit-28 model.hidden_size=16" +
           " model.num_hidden_layers=2 model.intermediate_size=16 train.steps=2 train.batch_size=8 schedule.warmup=1"
           " eval.interval=0 model.use_dcmha=" +
           (compose ? "true" : "false"));
    }
  }
};
const Images& images() {
  static const Images instance;
  return instance;
}

int64_t lines(const std::filesystem::path& file) {
  const std::string text = slurp(file);
  return std::count(text.begin(), text.end(), '\n');
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_page_of_attention_and_mistakes) {
  for (const bool compose : {true, false}) {
    const std::filesystem::path out = world().fresh();
    const std::string model = compose ? images().composed : images().plain;
    const Outcome result =
        run("analyze " + model + " --pictures " + images().data + " --show-pictures 3 -o " + out.string());
    BOOST_TEST(result.code == 0, result.output);
    const std::string page = slurp(out / "index.html");
    for (const std::string words : {"layer 1, head 3", "left &lt;half&gt;", "Mistakes", "data:image/png;base64,"})
      BOOST_TEST(page.find(words) != std::string::npos, words);
    for (const char* outside : {"http:", "https:", "<script", "{{"})
      BOOST_TEST(page.find(outside) == std::string::npos, outside);
    BOOST_TEST((page.find("after - before") != std::string::npos) == compose);
    BOOST_TEST(lines(out / "figures/attention.csv") == 1 + 3 * 2 * 4 * 4);  // images, layers, heads, patches
    const std::filesystem::path json = world().scratch / "analyze.json";
    BOOST_TEST(run("eval " + model + " pictures:" + images().data + " --json " + json.string()).code == 0);
    const double top1 = nlohmann::json::parse(slurp(json))["results"][0]["top1"].get<double>();
    BOOST_TEST(lines(out / "figures/mistakes.csv") == 1 + std::lround(20 * (1 - top1)));
  }
  const std::filesystem::path out = world().fresh();
  const Outcome few = run("analyze " + images().composed + " --pictures " + images().data +
                          " --heads 0.1,1.3 --show-pictures 2 --limit 10 -o " + out.string());
  BOOST_TEST(few.code == 0, few.output);
  BOOST_TEST(few.output.find("10 images, ") != std::string::npos, few.output);
  BOOST_TEST(lines(out / "figures/attention.csv") == 1 + 2 * 2 * 4);
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_rejected) {
  const std::string model = images().composed, data = " --pictures " + images().data;
  const auto rejected = [&](const std::string& arguments, int code, const std::string& words) {
    check_failure(run("analyze " + arguments + " -o " + world().fresh().string()), code, words);
  };
  rejected(model + data + " --heads 2.0", 2, "bad value for --heads: expected LAYER.HEAD below 2.4");
  rejected(model + data + " --heads 1", 2, "bad value for --heads");
  rejected(model + data + " --prompt abc", 2, "--prompt is for texts");
  rejected(model + " --pictures " + world().data().string(), 3, "");
  rejected(undisturbed().string() + data, 3, "has no attention over images");
  rejected(model + " --prompt abc --tokens 1152921504606847000", 2, "bad value for --tokens");
  for (const std::string flag : {"--heads 0.0", "--limit 3", "--show-pictures 2"})
    rejected(model + " --prompt abc " + flag, 2, flag.substr(0, flag.find(' ')) + " is for images");
}

BOOST_AUTO_TEST_CASE(classes_have_names) {
  const std::string in = (world().scratch / "analyze-in/train-images-idx3-ubyte").string();
  const std::filesystem::path names = world().scratch / "some-names.txt";
  const auto rejected = [&](const std::string& text, const std::string& words) {
    write(names, text);
    check_failure(run("prepare --images " + in + " --classes " + names.string() + " -o " + world().fresh().string()), 3,
                  words);
  };
  rejected("one\n", "expected at least 2 names");
  rejected("one\none\n", "twice");
  rejected("one\n\ntwo\n", "empty");
  check_failure(run("prepare " + in + " --classes " + names.string() + " -o " + world().fresh().string()), 2,
                "--classes");
  BOOST_TEST(slurp(images().data + "/dataset.json").find("upper half") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
