// braid train on images: it learns, resumes to the same bits, computes in bf16, and rejects what does not fit.
#include <nlohmann/json.hpp>

#include "tests/apps/train/finished_run.h"
#include "tests/support/idx_images.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(train_images_suite)

namespace {

const std::string& images() {
  static const std::string data = [] {
    const std::filesystem::path in = world().scratch / "halves";
    const std::string train = write_idx_images(in, "train", 60), val = write_idx_images(in, "t10k", 20);
    const std::string out = (world().scratch / "pictures").string();
    const Outcome made = run("prepare --images " + train + " --val " + val + " -o " + out);
    if (made.code != 0) throw std::runtime_error(made.output);
    return out;
  }();
  return data;
}

// With every change of images and labels and every dropout.
Outcome train_images(const std::filesystem::path& out, const std::string& more = "", const std::string& before = "") {
  return run("train run.out=" + out.string() + " data.path=" + images() +
                 " model.preset=dc-vit-28 model.hidden_size=32 model.num_hidden_layers=2 model.intermediate_size=64"
                 " model.drop_path_rate=0.1 model.compose_dropout=0.1 model.hidden_dropout_prob=0.05"
                 " augment.crop_padding=1 augment.erase=0.2 augment.mixup=0.2 augment.label_smoothing=0.1"
                 " train.steps=10 train.batch_size=6 train.accumulate=2 optimizer.lr=3e-3 schedule.warmup=2"
                 " eval.interval=5 eval.samples=0 checkpoint.interval=0 log.interval=1 guard.spike=0 run.threads=1 " +
                 more,
             before);
}

const std::filesystem::path& straight() {
  static const std::filesystem::path out =
      finished_run([](const std::filesystem::path& path) { return train_images(path); });
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(inspect_shows_what_a_folder_of_images_holds) {
  const Outcome result = run("inspect " + images());
  BOOST_TEST(result.code == 0, result.output);
  for (const char* part :
       {": images of ", "training               60 images", "validation             20 images", "2 classes\n"})
    BOOST_TEST(result.output.find(part) != std::string::npos, result.output << " lacks " << part);
  BOOST_TEST(run("inspect " + images() + " --batch 1").code == 2);
}

BOOST_AUTO_TEST_CASE(the_log_counts_images_and_measures_classes) {
  const std::vector<apps::LogRow> log = apps::read_log(straight());
  BOOST_TEST(log.size() == 10u);
  BOOST_TEST(log.back()["pictures"] == 120);
  BOOST_TEST(std::isnan(log.back()["tokens"]));
  check_failure(run("plot " + straight().string() + " --x flops"), 3, "expected the column tokens in every row");
  BOOST_TEST(log.back()["pictures_per_s"] > 0);
  BOOST_TEST(std::isnan(log[3]["val_top1"]));
  for (const size_t at : {4u, 9u}) {
    BOOST_TEST(log[at]["val_loss"] > 0);
    BOOST_TEST((log[at]["val_top1"] >= 0 && log[at]["val_top1"] <= 1));
    BOOST_TEST(log[at]["val_top5"] == 1);  // of two classes
    BOOST_TEST((log[at]["val_ece"] >= 0 && log[at]["val_ece"] <= 1));
  }
  const Outcome plan = run("train data.path=" + images() + " model.preset=dc-vit-28 --dry-run");
  BOOST_TEST(plan.code == 0, plan.output);
  BOOST_TEST(plan.output.find("samples per second") != std::string::npos, plan.output);
  const Outcome status = run("status " + straight().string());
  BOOST_TEST(status.output.find("images/s") != std::string::npos, status.output);
}

BOOST_AUTO_TEST_CASE(a_resumed_run_ends_with_the_same_bits) {
  const auto train_in = [](const std::filesystem::path& path) {
    return train_images(path, "checkpoint.interval=3", "ulimit -t 100;");
  };
  const std::filesystem::path out = finished_run(train_in);
  check_same(out, straight());
  check_resumes(out, straight(), train_in);  // in the middle of an epoch
}

BOOST_AUTO_TEST_CASE(it_learns_the_classes) {
  for (const std::string more : {"", "train.dtype=bf16", "model.use_dcmha=false"}) {
    const std::filesystem::path out = world().fresh();
    const Outcome result = train_images(out,
                                        "train.steps=150 eval.interval=150 augment.crop_padding=0"
                                        " augment.erase=0 augment.mixup=0 augment.label_smoothing=0 " +
                                            more);
    BOOST_TEST(result.code == 0, result.output);
    BOOST_TEST(apps::read_log(out).back()["val_top1"] >= 0.9, more << "\n" << result.output);
    BOOST_TEST(result.output.find("validation accuracy") != std::string::npos, result.output);
  }
}

BOOST_AUTO_TEST_CASE(settings_that_do_not_fit_are_rejected) {
  const auto rejected = [](const std::string& more, const std::string& words) {
    check_failure(train_images(world().fresh(), more), 2, words);
  };
  rejected("sample.interval=5", "sample.interval is for text");
  rejected("eval.tasks=5", "eval.tasks is for text");
  rejected("data.packing=in_order", "data.packing is for text");
  rejected("data.seq_len=16", "data.seq_len is");
  rejected("model.num_labels=3", "model.num_labels does not fit the images");
  rejected("model.image_size=28", "model.image_size does not fit the images");
  rejected("augment.erase=2", "augment.erase");
  check_failure(run("train data.path=" + images() + " model.preset=dcformer-tiny"), 2, "does not read images");
  check_failure(train(world().fresh(), {"augment.flip=true"}), 2, "augment.* changes images");
  check_failure(train(world().fresh(), {"augment.flip=true", "data.path=no/such/folder"}), 2,
                "no/such/folder holds none: expected a folder made by braid prepare --images");
  for (const std::string& model : {std::string("model.preset=vit-28"), "train.init_from=" + straight().string()})
    check_failure(run("train data.path=" + world().data().string() + " " + model), 2, "does not model text");
  check_failure(train_images(straight(), "run.seed=7 train.steps=12"), 2, "run.seed");
}

BOOST_AUTO_TEST_CASE(eval_reports_every_class) {
  const std::filesystem::path json = world().scratch / "classes.json";
  const Outcome result = run("eval " + straight().string() + " pictures:" + images() + " --json " + json.string());
  BOOST_TEST(result.code == 0, result.output);
  for (const char* words : {"20 images  top-1 ", "recall", "most often taken for"})
    BOOST_TEST(result.output.find(words) != std::string::npos, result.output);
  const nlohmann::json all = nlohmann::json::parse(slurp(json))["results"][0];
  const apps::LogRow last = apps::read_log(straight()).back();
  BOOST_TEST(all["pictures"] == 20);
  BOOST_TEST(all["top1"].get<double>() == last["val_top1"]);
  BOOST_TEST(all["ece"].get<double>() == last["val_ece"], boost::test_tools::tolerance(1e-6));
  int64_t sum = 0, right = 0;
  for (size_t label = 0; label < 2; ++label) {
    for (const auto& count : all["confusion"][label]) sum += count.get<int64_t>();
    right += all["confusion"][label][label].get<int64_t>();
  }
  BOOST_TEST(sum == 20);
  BOOST_TEST(right == std::lround(20 * last["val_top1"]));
  const auto rejected = [&](const std::string& arguments, const std::string& words) {
    check_failure(run("eval " + arguments), 2, words);
  };
  rejected(straight().string() + " pictures:" + images() + " in-context", "tasks of different models");
  for (const std::string flag : {"--max-length", "--stride", "--shots"})
    rejected(straight().string() + " pictures:" + images() + " " + flag + " 5", flag + " is for texts");
}

// The classes of another folder have other numbers, its pixels another mean: the names and the scaling of the model
// count.
BOOST_AUTO_TEST_CASE(other_folders_are_read_as_the_model_learned_them) {
  using nlohmann::json;
  const auto parsed = [](const std::filesystem::path& file) { return json::parse(slurp(file)); };
  const std::filesystem::path in = world().scratch / "swapped", other = world().scratch / "other-images";
  const std::string few = write_idx_images(in, "train", 6), val = write_idx_images(in, "t10k", 20);
  for (const char* set : {"train", "t10k"}) {
    std::string labels = slurp(in / (set + std::string("-labels-idx1-ubyte")));
    for (size_t i = 8; i < labels.size(); ++i) labels[i] = static_cast<char>(1 - labels[i]);
    write(in / (set + std::string("-labels-idx1-ubyte")), labels);
  }
  const auto prepared = [&](const std::string& names, const std::filesystem::path& out, const std::string& more = "") {
    write(in / "names.txt", names);
    return run("prepare --images " + few + " --val " + val + " --classes " + (in / "names.txt").string() + " -o " +
               out.string() + more);
  };
  BOOST_REQUIRE(prepared("1\n0\n", other).code == 0);
  const json own = parsed(images() + "/dataset.json");
  BOOST_TEST(own["mean"] != parsed(other / "dataset.json")["mean"]);

  const std::filesystem::path saved = step(straight(), 10);
  BOOST_TEST(parsed(saved / "config.json")["id2label"] == json({{"0", "0"}, {"1", "1"}}));
  const std::string processor = slurp(saved / "preprocessor_config.json");
  BOOST_TEST(json::parse(processor)["image_mean"] == own["mean"]);
  BOOST_TEST(json::parse(processor)["image_std"] == own["std"]);

  const auto scores = [&](const std::string& model, const std::string& data) {
    const std::filesystem::path file = world().scratch / "scores.json";
    const Outcome result = run("eval " + model + " pictures:" + data + " --json " + file.string());
    BOOST_REQUIRE(result.code == 0);
    BOOST_TEST(result.output.find("note: ") == std::string::npos, result.output);
    json all = parsed(file)["results"][0];
    all.erase("task");
    return all;
  };
  const json before = scores(straight().string(), images());
  BOOST_TEST(scores(straight().string(), other.string()) == before);
  const std::filesystem::path copy = world().fresh();
  BOOST_TEST(run("convert " + straight().string() + " -o " + copy.string()).code == 0);
  BOOST_TEST(scores(copy.string(), other.string()) == before);

  // A run that starts from the model goes on with both, also after it was resumed.
  const std::filesystem::path out = world().fresh();
  const auto go_on = [&](const std::filesystem::path& run_folder, const std::filesystem::path& data, int steps) {
    return run("train run.out=" + run_folder.string() + " data.path=" + data.string() + " train.init_from=" +
               straight().string() + " optimizer.lr=1e-12 schedule.warmup=0 eval.interval=1 eval.batches=0" +
               " train.batch_size=6 run.threads=1 train.steps=" + std::to_string(steps));
  };
  for (const int steps : {1, 2}) {
    const Outcome result = go_on(out, other, steps);
    BOOST_TEST(result.code == 0, result.output);
    BOOST_TEST(apps::read_log(out).back()["val_loss"] == before["loss"].get<double>(),
               boost::test_tools::tolerance(1e-5));
    BOOST_TEST(slurp(step(out, steps) / "preprocessor_config.json") == processor);
  }

  // Classes that the model does not know are named; images prepared as the model says are equal.
  const std::filesystem::path unknown = world().scratch / "unknown-images";
  BOOST_REQUIRE(prepared("one\n0\n", unknown).code == 0);
  check_failure(run("eval " + straight().string() + " pictures:" + unknown.string()), 3, "found also one (1)");
  check_failure(go_on(world().fresh(), unknown, 1), 2, "found also one (1)");
  const std::string like = " --like " + straight().string();
  const Outcome again = prepared("1\n0\n", other, like);
  BOOST_TEST(again.output.find("the folder held the same data already") != std::string::npos, again.output);
  check_failure(prepared("1\n0\n", other, like + " --size 8"), 2, "--size has no effect beside --like");
  check_failure(run("prepare " + few + " -o " + world().fresh().string() + like), 2, "--like is for images");
  std::filesystem::remove(copy / "preprocessor_config.json");
  check_failure(prepared("1\n0\n", other, " --like " + copy.string()), 3, "no preprocessor_config.json in ");
}

BOOST_AUTO_TEST_SUITE_END()
