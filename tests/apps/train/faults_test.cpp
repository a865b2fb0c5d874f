// A run on a disk that fails: single errors are survived, lasting ones end it with code 4, and nothing is lost.
#include <cerrno>
#include <cstring>

#include "tests/apps/train/disk_errors.h"
#include "tests/support/sanitizer.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(train_faults)

namespace fs = std::filesystem;

BOOST_AUTO_TEST_CASE(one_error_of_the_disk_is_survived) { check_single_errors({"checkpoint.interval=2"}); }

BOOST_AUTO_TEST_CASE(an_interrupted_lock_of_the_run_folder_is_repeated) {
  for (const char* call : {"flock", "ftruncate"}) {
    const fs::path out = world().fresh();
    const Outcome result = train(out, {}, fault(call, "/.lock", 0, 1, EINTR));
    BOOST_TEST(result.code == 0, call << ": " << result.output);
    check_same(out);
  }
}

BOOST_AUTO_TEST_CASE(one_error_at_the_last_step_is_tried_again_at_once) {
  const fs::path out = world().fresh();
  const Outcome result = train(out, {}, fault("fsync", "model.safetensors", 0, 1, EIO));
  BOOST_TEST(result.code == 0, result.output);
  BOOST_TEST(has(result, "(failure 1 of 3 in a row; trying again)"), result.output);
  check_same(out);
}

BOOST_AUTO_TEST_CASE(rows_that_a_full_disk_did_not_take_are_written_later) {
  const fs::path out = world().fresh();
  const Outcome result = train(out, {}, fault("write", "log.csv", 3, 4, ENOSPC));
  BOOST_TEST(result.code == 0, result.output);
  BOOST_TEST(has(result, "log.csv: No space left on device; it is kept in memory and written later"), result.output);
  check_same(out);
}

BOOST_AUTO_TEST_CASE(the_third_failure_in_a_row_ends_with_4) { check_third_failure({"checkpoint.interval=2"}); }

// A log that cannot be written at all keeps no checkpoint from being written.
BOOST_AUTO_TEST_CASE(a_lasting_failure_of_the_log_loses_no_weights) {
  const fs::path out = world().fresh();
  const Outcome result = train(out, {"checkpoint.interval=5"}, fault("write", "log.csv", 3, 1000, ENOSPC));
  check_failure(result, 4, "log.csv: No space left on device");
  BOOST_TEST((weights(step(out, kSteps)) == weights(step(undisturbed(), kSteps))));
}

// Damage leads to an older checkpoint, an error of the system to none.
BOOST_AUTO_TEST_CASE(a_passing_error_takes_no_older_checkpoint) {
  const fs::path out = world().fresh();
  BOOST_REQUIRE(train(out, {"checkpoint.interval=5"}).code == 0);
  const std::string command = "generate " + out.string() + " --prompt 12 --tokens 5 --temperature 0";
  const Outcome expected = run(command);
  for (const auto& [call, part, cause] : {std::tuple{"open", "step-00000010/trainer/manifest.json", EMFILE},
                                          {"open", "step-00000010/model.safetensors", ENOMEM},
                                          {"pread", "step-00000010/trainer/optimizer", EIO},
                                          {"stat", "step-00000010/trainer/state.json", EACCES},
                                          {"readdir", out.c_str(), EIO}}) {
    BOOST_TEST_CONTEXT(call << " of " << part) {
      const Outcome result = run(command, fault(call, part, 0, 1, cause));
      BOOST_TEST(result.code == 3, result.output);
      BOOST_TEST(!has(result, "older checkpoint"), result.output);
      BOOST_TEST(has(result, std::strerror(cause)), result.output);
    }
  }
  const std::string manifest = "step-00000010/trainer/manifest.json";
  const Outcome repeated = run(command, fault("open", manifest, 0, 1, EINTR));
  BOOST_TEST(repeated.output == expected.output);
  check_failure(train(out, {"train.steps=12"}, fault("open", manifest, 0, 1, EMFILE)), 3,
                "it may not be damaged: try again, or move");
  const Outcome missing = run(command, fault("open", manifest, 0, 1, ENOENT));
  BOOST_TEST(missing.code == 0, missing.output);
  BOOST_TEST(has(missing, "taking the older checkpoint"), missing.output);
}

// oneDNN does not check what it allocates (apps/dnnl_memory.cpp).
BOOST_AUTO_TEST_CASE(memory_that_the_system_refuses_ends_in_no_signal) {
  if (kAddressSanitizer || kThreadSanitizer) return;  // they take the calls themselves
  int finished = 0;
  for (int pass = 0; pass < 32; pass += 2) {
    BOOST_TEST_CONTEXT("call " << pass) {
      const fs::path out = world().fresh();
      const Outcome result = train(out, {}, fault("mmap", "anonymous", pass, 1, ENOMEM));
      if (result.code != 0) check_failure(result, 2, "out of memory");
      if (result.code != 0) continue;
      check_same(out);
      ++finished;
    }
  }
  BOOST_TEST(finished > 0);
  check_failure(train(world().fresh(), {}, fault("mmap", "anonymous", 8, 1 << 30, ENOMEM)), 2, "out of memory");
}

BOOST_AUTO_TEST_CASE(an_interrupted_removal_of_old_checkpoints_is_completed) {
  const std::vector<std::string> often = {"checkpoint.interval=2", "checkpoint.keep=2"};
  const auto steps = [](const fs::path& out) {
    std::string names;
    for (const auto& entry : fs::directory_iterator(out))
      if (const std::string name = entry.path().filename().string(); name.starts_with("step-")) names += name + " ";
    return names;
  };
  const auto only_the_newest = [&](const fs::path& out) {
    const std::string names = steps(out);
    return names == "step-00000008 step-00000010 " || names == "step-00000010 step-00000008 ";
  };
  const fs::path out = world().fresh();  // one error is followed by a second attempt
  BOOST_TEST(train(out, often, fault("unlinkat", "step-00000006", 1, 1, EIO)).code == 0);
  BOOST_TEST(only_the_newest(out), steps(out));
  const fs::path lasting = world().fresh();
  BOOST_TEST(train(lasting, often, fault("unlinkat", "step-00000006", 1, 1000, EIO)).code == 0);
  BOOST_TEST(fs::exists(lasting / "step-00000006.tmp"));  // half of it, under no name of a checkpoint
  BOOST_TEST(train(lasting, often).code == 0);            // of a run that is finished
  BOOST_TEST(only_the_newest(lasting), steps(lasting));
  fs::copy(lasting / "step-00000008", lasting / "step-00000002", fs::copy_options::recursive);
  BOOST_TEST(train(lasting, often).code == 0);
  BOOST_TEST(only_the_newest(lasting), steps(lasting));
}

// A run whose weights could not be saved does not begin, and its plan fails.
BOOST_AUTO_TEST_CASE(a_disk_without_room_for_a_checkpoint_is_rejected_at_the_start) {
  const fs::path out = world().fresh();
  for (const char* dry : {"log.interval=1", "--dry-run"}) {
    const Outcome result = train(out, {dry}, preload("BRAID_FREE=8192"));
    check_failure(result, 4, "the disk is too small for a checkpoint in " + out.string());
    BOOST_TEST(!has(result, "step 1/"), result.output);
  }
  const Outcome some = train(out, {"checkpoint.interval=1"}, preload("BRAID_FREE=1500000"));
  BOOST_TEST(some.code == 0, some.output);
  BOOST_TEST(has(some, "warning: the checkpoints of this run may take"), some.output);
  BOOST_TEST(train(out, {}, preload("BRAID_FREE=0")).code == 0);  // nothing is left to save
}

BOOST_AUTO_TEST_CASE(the_folders_above_a_new_run_are_synced) {
  const fs::path deep = world().fresh(), out = deep / "er/run", list = deep.string() + ".fsyncs";
  BOOST_TEST(train(out, {}, preload("BRAID_FSYNCS=" + list.string())).code == 0);
  const std::vector<std::string> synced = split(slurp(list), '\n');
  for (const fs::path& folder : {deep.parent_path(), deep, deep / "er", out})
    BOOST_TEST((std::find(synced.begin(), synced.end(), folder.string()) != synced.end()), folder);
}

BOOST_AUTO_TEST_SUITE_END()
