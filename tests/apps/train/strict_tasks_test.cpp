// run.strict on images, pairs and preferences: the same bytes for every instruction set, accumulation and number of
// threads, also resumed, with one validation, and `braid verify`.
#include "tests/apps/train/strict_runs.h"
#include "tests/support/idx_images.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(train_strict_tasks)

namespace fs = std::filesystem;

namespace {

fs::path prepared(const std::string& name, const std::string& arguments) {
  const fs::path out = world().scratch / name;
  const Outcome made = run("prepare " + arguments + " -o " + out.string());
  if (made.code != 0) throw std::runtime_error(made.output);
  return out;
}

// With every change of images and every dropout.
std::string images() {
  const fs::path in = world().scratch / "strict-images";
  const std::string train = write_idx_images(in, "train", 30), val = write_idx_images(in, "t10k", 11);
  return "data.path=" + prepared("strict-pictures", "--images " + train + " --val " + val).string() +
         " model.preset=dc-vit-28 model.hidden_size=32 model.num_hidden_layers=2 model.intermediate_size=64"
         " model.drop_path_rate=0.1 model.compose_dropout=0.1 model.hidden_dropout_prob=0.05 augment.crop_padding=1"
         " augment.flip=true augment.randaugment_ops=2 augment.erase=0.2 augment.mixup=0.2"
         " augment.label_smoothing=0.1 eval.samples=0";
}

std::string pairs() {
  return "data.path=pairs:dates model.preset=dc-seq2seq-tiny model.hidden_size=32 model.encoder_layers=1"
         " model.decoder_layers=1 model.intermediate_size=64 model.dropout=0.1 eval.samples=13 sample.interval=2";
}

std::string preferences() {
  std::string lines;
  for (int i = 0; i < 40; ++i)
    lines += "{\"prompt\": \"" + std::to_string(i * 37) + " \", \"chosen\": \"" + std::to_string(i % 9) +
             "\", \"rejected\": \"" + std::to_string(i * i) + "\"}\n";
  write(world().scratch / "strict.jsonl", lines);
  const fs::path data =
      prepared("strict-preferences", (world().scratch / "strict.jsonl").string() + " --preferences --val-fraction 0.2");
  return "data.path=" + data.string() + " train.init_from=" + undisturbed().string() +
         " data.seq_len=16 dpo.sft_weight=0.1 eval.samples=0 sample.interval=2";
}

void check_task(const std::string& task, const std::string& more, const std::string& other_set) {
  const auto train_in = [&](const fs::path& out, const std::string& layout, const std::string& set) {
    const Outcome result =
        run("train run.out=" + out.string() + " " + task +
                " run.strict=true train.steps=10 train.batch_size=6 optimizer.lr=3e-3"
                " schedule.name=constant schedule.warmup=2 eval.interval=2 checkpoint.best=true checkpoint.interval=2"
                " checkpoint.keep_every=4 log.interval=1 guard.spike=0 run.threads=1 " +
                more + " " + layout,
            "BRAID_INSTRUCTIONS=" + set);
    BOOST_TEST(result.code == 0, result.output);
  };
  const fs::path want = world().fresh(), got = world().fresh();
  train_in(want, "", "avx512");
  train_in(got, "train.steps=4 train.batch_size=1 train.accumulate=6 run.threads=2", other_set);
  train_in(got, "train.batch_size=3 train.accumulate=2", "avx2");
  check_same_run(got, want, "resumed");
  const auto verified = [&](const std::string& arguments, int code, const std::string& words) {
    const Outcome found = run("verify " + want.string() + " " + arguments, "BRAID_INSTRUCTIONS=avx2");
    BOOST_TEST(found.code == code, found.output);
    BOOST_TEST(found.output.find(words) != std::string::npos, found.output);
  };
  verified("--steps 0..2 train.batch_size=2 train.accumulate=3", 0, "verified: ");
  verified("--steps 4..6", 0, "verified: ");
  std::string hashes = slurp(want / "weights.csv");
  char& digit = hashes[hashes.find("\n6,") + 3];
  digit = digit == '0' ? '1' : '0';
  write(want / "weights.csv", hashes);
  verified("--steps 4..6", 5, "step 6 of ");
}

}  // namespace

BOOST_AUTO_TEST_CASE(images_have_one_result) {
  static const std::string task = images();
  check_task(task, "", "portable");
  check_task(task, "train.dtype=bf16 model.use_dcmha=false train.ema=0.9", "avx2");
}

BOOST_AUTO_TEST_CASE(pairs_have_one_result) {
  check_task(pairs(), "", "portable");
  check_task(pairs(), "train.dtype=bf16", "avx2");
}

BOOST_AUTO_TEST_CASE(preferences_have_one_result) {
  static const std::string task = preferences();
  check_task(task, "", "portable");
  check_task(task, "train.dtype=bf16 lora.rank=2", "avx2");
}

BOOST_AUTO_TEST_SUITE_END()
