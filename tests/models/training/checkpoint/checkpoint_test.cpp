#include "braid/models/training/checkpoint/checkpoint_writer.h"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <fstream>

#include "braid/distributed/comm/thread_transport.h"
#include "braid/models/training/checkpoint/find_model.h"
#include "braid/models/training/checkpoint/sharded_safetensors.h"
#include "braid/models/training/hold_in_16_bits.h"
#include "braid/models/training/trainer.h"
#include "tests/models/support.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(checkpoint)

namespace fs = std::filesystem;

namespace {
struct World {
  TempFolder run;
  models::Dcformer model{small_config(), {1, 0}};
  models::Trainer trainer{model, {}, 1.0};
  models::text::ByteTokenizer tokenizer;
  void train() {
    std::vector<int64_t> ids(32, 7), targets(32, 9);
    trainer.step({models::text_batch(from_vector(ids, {2, 16}), from_vector(targets, {2, 16}))}, 1e-2);
  }
  void save(int64_t step, int64_t keep = 2) {
    models::CheckpointWriter(run.path, keep).save(trainer, &tokenizer, {step, 40, 1.5, 3, 16, "data"}, "a = 1\n");
  }
};

void flip_byte(const fs::path& file, int64_t at) {
  std::fstream f(file, std::ios::in | std::ios::out | std::ios::binary);
  f.seekg(at);
  char c = static_cast<char>(f.get() ^ 0x10);
  f.seekp(at);
  f.put(c);
}

// Bytes that this process has read from files so far.
int64_t bytes_read() {
  std::ifstream io("/proc/self/io");
  std::string name;
  int64_t value = -1;
  io >> name >> value;
  BOOST_REQUIRE(name == "rchar:");
  return value;
}
}  // namespace

BOOST_AUTO_TEST_CASE(comes_back_bit_for_bit) {
  World w;
  w.train();
  w.save(1);
  models::Dcformer other(small_config(), {99, 0});
  models::Trainer trainer(other, {}, 1.0);
  std::vector<std::string> notes;
  models::StepFolder newest = models::newest_checkpoint(w.run.path, notes);
  BOOST_TEST(newest.step == 1);
  models::load_checkpoint(newest.path, trainer);
  models::RunState state = models::read_state(newest.path);
  BOOST_TEST(state.step == 1);
  BOOST_TEST(state.samples == 40);
  BOOST_TEST(state.elapsed_s == 1.5);
  BOOST_TEST(state.seed == 3);
  BOOST_TEST(state.seq_len == 16);
  BOOST_TEST(state.data_fingerprint == "data");
  std::ifstream settings(newest.path / models::kSettingsFile);
  BOOST_TEST(std::string(std::istreambuf_iterator<char>(settings), {}) == "a = 1\n");
  auto a = nn::parameters(w.model), b = nn::parameters(other);
  for (size_t i = 0; i < a.size(); ++i) BOOST_TEST(is_close(b[i].value, a[i].value, 0));
  auto s = w.trainer.optimizer().state(), t = trainer.optimizer().state();
  for (size_t i = 0; i < s.size(); ++i) BOOST_TEST(is_close(t[i].value, s[i].value, 0));
}

BOOST_AUTO_TEST_CASE(damage_is_found_and_the_older_one_counts) {
  World w;
  w.save(1);
  w.save(2);
  flip_byte(w.run.path / "step-00000002/model.safetensors", 5000);
  const std::string damage = models::find_damage(w.run.path / "step-00000002").value_or("");
  BOOST_TEST(damage.starts_with("model.safetensors has checksum "), damage);
  BOOST_TEST(damage.size() == std::string("model.safetensors has checksum 01234567, expected 89abcdef").size(), damage);
  std::vector<std::string> notes;
  BOOST_TEST(models::newest_checkpoint(w.run.path, notes).step == 1);
  BOOST_TEST(notes.size() == 1u);
  w.save(4);
  flip_byte(w.run.path / "step-00000004/trainer/manifest.json", 4);  // of the name "format"
  BOOST_TEST(models::newest_checkpoint(w.run.path, notes).step == 1);
  fs::remove_all(w.run.path / "step-00000004");
  fs::resize_file(w.run.path / "step-00000001/trainer/optimizer.safetensors", 100);
  BOOST_TEST(throws_with([&] { models::newest_checkpoint(w.run.path, notes); }, "none of the 2 checkpoints"));
}

// As on two machines of which one does not see the folder.
BOOST_AUTO_TEST_CASE(ranks_that_see_different_folders_find_the_same_damage) {
  World w;
  w.save(1);
  const fs::path there = w.run.path / "step-00000001", elsewhere = w.run.path / "elsewhere" / "step-00000001";
  for (const int blind : {0, 1}) {
    dist::run_thread_ranks(2, [&](const dist::Communicator& world) {
      const auto damage = models::find_damage(world.rank() == blind ? elsewhere : there, world).value_or("none");
      const std::vector<std::string> all = world.gather_text(damage);
      check(all[0] == all[1] && damage.find("cannot open") == 0, "test", [&] { return all[0] + " | " + all[1]; });
    });
  }
}

BOOST_AUTO_TEST_CASE(an_unfinished_one_does_not_count) {
  World w;
  w.save(1);
  fs::rename(w.run.path / "step-00000001", w.run.path / "step-00000001.tmp");
  std::vector<std::string> notes;
  BOOST_TEST(throws_with([&] { models::newest_checkpoint(w.run.path, notes); },
                         "no checkpoint is left in " + w.run.path.string() + ", whose file latest names one"));
  fs::remove(w.run.path / "latest");
  BOOST_TEST(models::newest_checkpoint(w.run.path, notes).path.empty());
  w.save(1);  // and is replaced by a new one
  BOOST_TEST(models::newest_checkpoint(w.run.path, notes).step == 1);
  BOOST_TEST(!fs::exists(w.run.path / "step-00000001.tmp"));
}

BOOST_AUTO_TEST_CASE(keeps_the_newest_valid_ones) {
  World w;
  for (int64_t step : {1, 2, 3}) w.save(step, 3);
  flip_byte(w.run.path / "step-00000003/config.json", 10);
  w.save(4);  // keep 2: 4 and 2 are valid; 3 is not counted, 1 goes
  std::vector<int64_t> steps;
  for (const models::StepFolder& f : models::step_folders(w.run.path)) steps.push_back(f.step);
  BOOST_TEST(steps == (std::vector<int64_t>{2, 3, 4}), boost::test_tools::per_element());
}

// The disk may give back other bytes than it took.
BOOST_AUTO_TEST_CASE(one_that_does_not_read_back_is_an_error) {
  World w;
  w.save(1);
  const fs::path file = w.run.path / "step-00000002.tmp/model.safetensors";
  models::CheckpointWriter writer(w.run.path, 2, 0, [&] {
    if (fs::exists(file)) flip_byte(file, 5000);
  });
  BOOST_TEST(throws_with(
      [&] {
        writer.save(w.trainer, &w.tokenizer, {2, 40, 1.5, 3, 16, "data"}, "");
      },
      "does not read back as written: model.safetensors has checksum"));
  BOOST_TEST(models::named_step(w.run.path / models::kLatestFile).value() == 1);
}

// A save succeeds where an older one cannot be judged: then nothing is removed.
BOOST_AUTO_TEST_CASE(an_older_one_that_cannot_be_read_fails_no_save) {
  World w;
  w.save(1);
  w.save(2);
  const fs::path file = w.run.path / "step-00000002/config.json";
  fs::remove(file);
  fs::create_symlink("config.json", file);  // leads to itself
  w.save(3);
  BOOST_TEST(models::named_step(w.run.path / models::kLatestFile).value() == 3);
  BOOST_TEST(models::step_folders(w.run.path).size() == 3u);
}

// A save verifies what it wrote. Verdicts on older checkpoints are remembered while their files keep size and times.
BOOST_AUTO_TEST_CASE(a_save_reads_no_older_checkpoint_again) {
  World w;
  models::CheckpointWriter writer(w.run.path, 10);
  auto save = [&](int64_t step) {  // -> bytes read
    const int64_t before = bytes_read();
    writer.save(w.trainer, &w.tokenizer, {step, 40, 1.5, 3, 16, "data"}, "a = 1\n");
    const int64_t count = bytes_read() - before;
    // Files that were modified a clock tick ago are verified once more: set these to an hour ago.
    for (const auto& file : fs::recursive_directory_iterator(w.run.path / models::step_name(step))) {
      if (file.is_regular_file()) fs::last_write_time(file, fs::last_write_time(file) - std::chrono::hours(1));
    }
    return count;
  };
  const int64_t one = save(1);
  BOOST_TEST(one > 100'000);
  for (int64_t step = 2; step < 12; ++step) save(step);  // the eleventh is the first that prunes: verifies all
  BOOST_TEST(!fs::exists(w.run.path / models::step_name(1)));
  const int64_t later = save(12);  // reads itself, and number 11, whose times have changed since
  BOOST_TEST(later < 3 * one);
  BOOST_TEST(models::step_folders(w.run.path).size() == 10u);
  flip_byte(w.run.path / "step-00000005/model.safetensors", 5000);  // is noticed all the same
  save(13);
  BOOST_TEST(models::step_folders(w.run.path).front().step == 3);
}

BOOST_AUTO_TEST_CASE(a_copy_under_another_name_does_not_count) {
  World w;
  w.save(1);
  fs::copy(w.run.path / "step-00000001", w.run.path / "step-00000004", fs::copy_options::recursive);
  std::vector<std::string> notes;
  BOOST_TEST(models::newest_checkpoint(w.run.path, notes).step == 1);
  BOOST_REQUIRE(notes.size() == 1u);
  BOOST_TEST(notes[0].find("trainer/manifest.json is of step 1, but the folder's name is of step 4") !=
             std::string::npos);
  w.save(4);
  BOOST_TEST(models::newest_checkpoint(w.run.path, notes).step == 4);
}

BOOST_AUTO_TEST_CASE(the_best_and_those_of_every_so_many_steps_are_kept) {
  World w;
  models::CheckpointWriter writer(w.run.path, 2, 4);
  for (int64_t step = 1; step <= 10; ++step) {
    writer.save(w.trainer, &w.tokenizer, {step, 40, 1.5, 3, 16, "data"}, "");
    if (step == 2 || step == 5) writer.mark_best(step, {});
  }
  std::vector<int64_t> steps;
  for (const models::StepFolder& f : models::step_folders(w.run.path)) steps.push_back(f.step);
  BOOST_TEST(steps == (std::vector<int64_t>{4, 5, 8, 9, 10}), boost::test_tools::per_element());
  writer.mark_best(10, {});
  BOOST_TEST(!fs::exists(w.run.path / "step-00000005"));
  writer.mark_best(9, {});
  World unmarked;
  unmarked.save(1);
  BOOST_TEST(throws_with([&] { models::find_model(unmarked.run.path / models::kBestFile); }, "no best checkpoint"));
  BOOST_TEST(models::find_model(w.run.path / models::kBestFile) == w.run.path / "step-00000009");
  BOOST_TEST(models::find_model(w.run.path / models::kLatestFile) == w.run.path / "step-00000010");
}

// The state of a failed step counts for nothing; the two newest ones are kept.
BOOST_AUTO_TEST_CASE(failed_steps_are_no_checkpoints) {
  World w;
  models::CheckpointWriter writer(w.run.path, 2);
  const auto failed = [&](int64_t step) {
    return writer.save_failed(w.trainer, &w.tokenizer, {step - 1, 40, 1.5, 3, 16, "data"}, "", step);
  };
  const auto steps = [&] {
    std::vector<int64_t> all;
    for (const models::StepFolder& f : models::step_folders(w.run.path)) all.push_back(f.step);
    return all;
  };
  for (int64_t step : {5, 6, 7}) writer.save(w.trainer, &w.tokenizer, {step, 40, 1.5, 3, 16, "data"}, "");
  BOOST_TEST(failed(9) == w.run.path / "failed-step-00000009");  // step 8 was not saved
  BOOST_TEST(steps() == (std::vector<int64_t>{6, 7}), boost::test_tools::per_element());
  writer.mark_best(7, {});
  failed(8);  // step 7 was saved, and is the best
  BOOST_TEST(steps() == (std::vector<int64_t>{6, 7}), boost::test_tools::per_element());
  writer.mark_best(6, {});
  models::CheckpointWriter late(w.run.path, 2, 0, [] { fail(ErrorKind::output, "the folder of another run"); });
  BOOST_TEST(throws_with(
      [&] {
        late.save_failed(w.trainer, &w.tokenizer, {7, 40, 1.5, 3, 16, "data"}, "", 8);
      },
      "the folder of another run"));
  BOOST_TEST(steps() == (std::vector<int64_t>{6, 7}), boost::test_tools::per_element());
  failed(8);
  BOOST_TEST(steps() == std::vector<int64_t>{6}, boost::test_tools::per_element());
  BOOST_TEST(!models::find_damage(w.run.path / "failed-step-00000008"));
  BOOST_TEST(models::named_step(w.run.path / models::kLatestFile).value() == 6);
  nn::parameters(w.model)[0].value.fill(std::nan(""));
  failed(12);
  BOOST_TEST(!fs::exists(w.run.path / "failed-step-00000009"));
  BOOST_TEST(fs::exists(w.run.path / "failed-step-00000008"));
  BOOST_TEST(!models::find_damage(w.run.path / "failed-step-00000012"));
  BOOST_TEST(models::find_model(w.run.path) == w.run.path / "step-00000006");
}

BOOST_AUTO_TEST_CASE(another_model_is_rejected) {
  World w;
  w.save(1);
  models::Dcformer narrow(small_config(), {1, 0});
  models::hold_in_16_bits(narrow);
  models::Trainer of_narrow(narrow, {}, 1.0, {}, DType::bf16);
  BOOST_TEST(throws_with([&] { models::load_checkpoint(w.run.path / "step-00000001", of_narrow); },
                         "expected weights in f32, found bf16 (train.rounding); undo"));
  models::DcformerConfig config = small_config();
  config.use_qk_norm = !config.use_qk_norm;
  models::Dcformer other(config, {1, 0});
  models::Trainer trainer(other, {}, 1.0);
  BOOST_TEST(throws_with([&] { models::load_checkpoint(w.run.path / "step-00000001", trainer); },
                         "is not the configured one: expected model.use_qk_norm = true, found false; undo"));
}

// Rotary positions have no weights, so a run may continue with longer sequences.
BOOST_AUTO_TEST_CASE(another_context_is_the_same_model) {
  World w;
  w.save(1);
  const fs::path checkpoint = w.run.path / "step-00000001";
  const auto spec_with = [](const models::SettingTexts& settings) {
    return models::Dcformer(small_config(), {1, 0}).spec()->with(settings);
  };
  models::check_same_model(checkpoint, *spec_with({{"block_size", "999"}}));
  models::check_same_model(checkpoint, *spec_with({{"block_size", "3"}}));
  models::check_same_model(
      checkpoint,
      *spec_with(
          {{"block_size", "999"}, {"rope_scaling", "linear"}, {"rope_scaling_factor", "4"}, {"rope_base", "50000"}}));
  BOOST_TEST(throws_with(
      [&] {
        models::check_same_model(checkpoint, *spec_with({{"rope_base", "50000"}}));
      },
      "model.rope_base = 10000, found 50000 (it may change together with the longest sequence); "));
  BOOST_TEST(throws_with(
      [&] {
        models::check_same_model(checkpoint, *spec_with({{"block_size", "999"}, {"norm_eps", "0.5"}}));
      },
      "model.norm_eps = 1e-05, found 0.5; "));
  const models::SettingTexts many = {{"norm_eps", "0.5"},      {"logit_softcap", "5"},       {"attention_softcap", "5"},
                                     {"use_qk_norm", "false"}, {"scale_embeddings", "true"}, {"rope_base", "5"}};
  BOOST_TEST(throws_with([&] { models::check_same_model(checkpoint, *spec_with(many)); },
                         "model.attention_softcap = 0, found 5; and 3 more; undo"));
}

BOOST_AUTO_TEST_CASE(earlier_lengths_of_sequences_are_kept) {
  const auto lengths = [](const models::RunState& state) {
    std::string text;
    for (const auto& [seq_len, sequences] : state.earlier) text += str(seq_len, "x", sequences, " ");
    return text + std::to_string(state.seq_len);
  };
  const models::RunState start{.samples = 10, .seq_len = 8};
  models::RunState longer = models::with_length(start, 16);
  BOOST_TEST(lengths(longer) == "8x10 16");
  BOOST_TEST(lengths(models::with_length(start, 8)) == "8");
  BOOST_TEST(lengths(models::with_length(longer, 8)) == "8");  // nothing was read at 16
  longer.samples = 13;
  BOOST_TEST(lengths(models::with_length(longer, 8)) == "8x10 16x3 8");
  BOOST_TEST(lengths(models::with_length({.seq_len = 8}, 16)) == "16");
}

BOOST_AUTO_TEST_CASE(finds_finished_ones_by_name_in_order) {
  TempFolder run;
  BOOST_TEST(models::step_folders(run.path / "none").empty());
  for (const char* name : {"step-00001000", "step-00000050", "step-123456789", "step-00002000.tmp", "step-5", "step-x",
                           "step--0000001", "plots"})
    fs::create_directories(run.path / name);
  std::ofstream(run.path / "step-00000077") << "a file";
  const auto found = models::step_folders(run.path);
  BOOST_REQUIRE(found.size() == 3u);
  BOOST_TEST(found[0].step == 50);
  BOOST_TEST(found[1].step == 1000);
  BOOST_TEST(found[2].step == 123456789);
  BOOST_TEST(found[1].path == run.path / "step-00001000");
  BOOST_TEST(models::is_run_folder(run.path));
  BOOST_TEST(!models::is_run_folder(run.path / "plots"));
  models::check_no_run_folder(run.path / "plots");
  BOOST_TEST(throws_with([&] { models::check_no_run_folder(run.path); }, "name another folder, for example"));
  BOOST_TEST(models::step_name(1000) == "step-00001000");
}

BOOST_AUTO_TEST_CASE(weights_with_nan_are_never_written) {
  World w;
  models::Snapshot part(w.trainer, {});
  part.tensors.weights[0].values = {};  // as on a rank that owns nothing of it
  part.check_finite({});
  nn::parameters(w.model)[0].value.fill(std::nan(""));
  BOOST_TEST(throws_with([&] { w.save(1); }, "tok_embeddings.weight contains NaN or Inf after step 1"));
  BOOST_TEST(models::step_folders(w.run.path).empty());
  World moments;
  moments.trainer.optimizer().state()[1].value.fill(INFINITY);
  BOOST_TEST(throws_with([&] { moments.save(1); }, ".first contains NaN or Inf after step 1"));
  // Older versions wrote such checkpoints.
  const fs::path folder = models::CheckpointWriter(moments.run.path, 2)
                              .save_failed(moments.trainer, nullptr, {1, 40, 1.5, 3, 16, "data"}, "", 2);
  const auto load = [&] { models::load_checkpoint(folder, moments.trainer); };
  BOOST_TEST(
      throws_with(load, ".first contains NaN or Inf; move " + folder.string() + " away to resume from an older"));
}

// What a rank owns of a tensor may stand in several places of it.
BOOST_AUTO_TEST_CASE(ranks_write_their_parts_of_one_file) {
  const TempFolder folder;
  const fs::path path = folder.path / "w.safetensors";
  const auto part = [](std::vector<dist::Span> spans, const std::vector<float>& values) {
    return std::vector<models::LocalTensor>{
        {"w", DType::f32, {2, 3}, std::move(spans), from_vector(values, {std::ssize(values)})}};
  };
  const auto first = part({{0, 0, 1}, {3, 1, 2}}, {0, 3, 4}), second = part({{1, 0, 2}, {5, 2, 1}}, {1, 2, 5});
  models::ShardedSafetensorsWriter a(path, first), b(path, second);
  a.create();
  b.write();
  a.write();
  BOOST_TEST(is_close(io::SafetensorsFile(path.string()).load("w"), arange(6, DType::f32).reshaped({2, 3}), 0));
}

BOOST_AUTO_TEST_CASE(a_model_folder_loads_by_itself) {
  World w;
  w.save(1);
  models::LoadedModel a = models::load_model(models::find_model(w.run.path)),
                      b = models::load_model(w.run.path / "step-00000001");
  BOOST_TEST(a.tokenizer->vocab_size() == 258);
  BOOST_TEST(is_close(nn::parameters(*a.model)[0].value, nn::parameters(w.model)[0].value, 0));
  BOOST_TEST(is_close(nn::parameters(*b.model)[0].value, nn::parameters(w.model)[0].value, 0));
  BOOST_TEST(throws_with([] { models::load_model("/nonexistent"); }, "no model in /nonexistent"));
}

BOOST_AUTO_TEST_SUITE_END()
