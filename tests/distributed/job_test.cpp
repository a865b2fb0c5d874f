// braid train under mpirun: the same run as on one process, and the end of a job in which a rank fails. BRAID_FAULTS=N
// repeats each fault N times at other random moments (default 1; the ctest job_faults takes more). The seeds are
// printed; BRAID_SEED=S begins with seed S.
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "apps/train/log/log.h"
#include "apps/train/run/run_status.h"
#include "braid/distributed/comm/mpi_session.h"
#include "braid/models/training/checkpoint/checkpoint.h"
#include "braid/models/training/checkpoint/manifest.h"
#include "tests/distributed/job_support.h"
#include "tests/support/idx_images.h"
#include "tests/support/places.h"

using namespace braid;
using namespace braid::test::jobs;

BOOST_AUTO_TEST_SUITE(job)

using Clock = std::chrono::steady_clock;

namespace {

// The process of a rank among the children of mpirun; 0 when it is not there yet.
pid_t process_of(pid_t mpirun_pid, int rank) {
  std::string children =
      read_file("/proc/" + std::to_string(mpirun_pid) + "/task/" + std::to_string(mpirun_pid) + "/children");
  std::istringstream list(children);
  for (pid_t pid; list >> pid;) {
    std::string environment = read_file("/proc/" + std::to_string(pid) + "/environ");
    std::string entry(1, '\0');
    entry.append("OMPI_COMM_WORLD_RANK=").append(std::to_string(rank)).push_back('\0');
    if (environment.find(entry) != std::string::npos) return pid;
  }
  return 0;
}

// A rank as messages name it.
std::string named(int rank) { return "rank " + std::to_string(rank) + " on host " + dist::host_name(); }

// Until the newest checkpoint is of this step or a later one: a fast job soon removes the one of a given step. Under a
// sanitizer, beside other work, 3 minutes were too few.
void wait_for_step(const fs::path& run, int64_t step) {
  const auto newest = [&] { return models::named_step(run / models::kLatestFile).value_or(0); };
  for (int i = 0; i < 18000 && newest() < step; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  BOOST_REQUIRE(newest() >= step);
}

int number_from(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::atoi(text) : otherwise;
}
int rounds() { return number_from("BRAID_FAULTS", 1); }

int alive(const fs::path& run_folder) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::string line = read_file(entry.path() / "cmdline");
    count += line.find("run.out=" + run_folder.string() + std::string(1, '\0')) != std::string::npos;
  }
  return count;
}

constexpr double kBusy = 5;  // seconds that a machine with more work than processors may take longer

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// mpirun may end a moment before the processes that it has killed.
void expect_no_process(const fs::path& run_folder) {
  for (int i = 0; i < 20 && alive(run_folder) > 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  BOOST_TEST(alive(run_folder) == 0);
}

// An endless run on four ranks that writes checkpoints, and a fault of one rank at a random moment. The seed determines
// the rank, the mesh, whether checkpoints are written beside the training, and the delay after the second one.
struct Fault {
  static constexpr int kTimeout = 3;  // parallel.timeout
  int seed;
  fs::path out = world().fresh();
  std::mt19937 random{static_cast<uint32_t>(seed)};
  int rank = static_cast<int>(random() % 4);
  int delay_ms = static_cast<int>(random() % 1000);
  std::string mesh = std::vector<std::string>{"parallel.tensor=2", "parallel.context=2 parallel.tensor=2",
                                              "parallel.context=2", "parallel.tensor=4"}[random() % 4];
  std::string async = random() % 2 ? " checkpoint.async=true" : "";
  int code = 0;
  std::string output;
  double seconds = 0;  // from the fault to the end of mpirun
  int64_t last_step = 0;

  template <class F>
  void operator()(F&& harm) {
    Shell job(mpirun(4) + train(out, settings()), out.string() + ".txt");
    wait_for_step(out, 6);
    std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
    Clock::time_point start = Clock::now();
    harm(job.pid(), [&] {
      pid_t target = process_of(job.pid(), rank);
      BOOST_REQUIRE(target > 0);
      return target;
    }());
    code = job.wait();
    seconds = seconds_since(start);
    output = job.output();
    expect_no_process(out);
    std::vector<std::string> notes;
    last_step = models::newest_checkpoint(out, notes).step;
    BOOST_TEST(last_step >= 6);
  }
  std::string settings() const {
    return mesh + async + " train.steps=100000 schedule.name=constant checkpoint.interval=3 parallel.timeout=" +
           std::to_string(kTimeout);
  }
  bool says(int expected, const std::string& words) const { return test::jobs::says({code, output}, expected, words); }
};

// One line per kind of fault: how often, and the longest time to the end of the job.
struct Table {
  std::string kind;
  int first_seed = number_from("BRAID_SEED", static_cast<int>(std::random_device{}() % 100000));
  int count = 0;
  double worst = 0;
  explicit Table(const std::string& of) : kind(of) {}
  template <class F>
  void each_round(F&& round) {
    for (int i = 0; i < rounds(); ++i) {
      Fault fault{first_seed + i};
      BOOST_TEST_CONTEXT(kind << ", seed " << fault.seed << ", rank " << fault.rank << ", " << fault.mesh
                              << fault.async) {
        round(fault);
        ++count;
        worst = std::fmax(worst, fault.seconds);
      }
    }
    char line[160];
    std::snprintf(line, sizeof line, "%-34s %3d rounds, seeds %d to %d, at most %.1f s to the end", kind.c_str(), count,
                  first_seed, first_seed + count - 1, worst);
    BOOST_TEST_MESSAGE(line);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(the_run_is_that_of_one_process) {
  fs::path one = world().fresh();
  Outcome alone = run(train(one, ""));
  BOOST_REQUIRE(says(alone, 0, "trained 10 steps"));
  std::vector<apps::LogRow> want = apps::read_log(one);
  for (auto& [ranks, mesh] : std::vector<std::pair<int, std::string>>{
           {2, "parallel.tensor=2"}, {4, "parallel.tensor=2"}, {4, "parallel.context=2 parallel.tensor=2"}}) {
    fs::path many = world().fresh();
    Outcome o = run(mpirun(ranks) + train(many, mesh));
    BOOST_TEST(says(o, 0, "trained 10 steps"));
    BOOST_TEST(o.output.find("trained") == o.output.rfind("trained"));  // one rank writes
    std::vector<apps::LogRow> got = apps::read_log(many);
    BOOST_REQUIRE(got.size() == want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      BOOST_TEST(std::fabs(got[i]["loss"] - want[i]["loss"]) <= 1e-11 * want[i]["loss"]);
      BOOST_TEST(std::fabs(got[i]["grad_norm"] - want[i]["grad_norm"]) <= 1e-10 * want[i]["grad_norm"]);
      if (!std::isnan(want[i]["val_loss"]))
        BOOST_TEST(std::fabs(got[i]["val_loss"] - want[i]["val_loss"]) <= 1e-11 * want[i]["val_loss"]);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_killed_rank_ends_the_job) {
  Table("SIGKILL of a rank").each_round([](Fault& fault) {
    fault([](pid_t, pid_t rank) { ::kill(rank, SIGKILL); });
    BOOST_TEST((fault.code == 137 || fault.code == 6), fault.code << "\n" << fault.output);
    BOOST_TEST(fault.seconds < 5.0 + kBusy);
  });
}

BOOST_AUTO_TEST_CASE(a_stopped_rank_is_named) {
  Table("SIGSTOP of a rank").each_round([](Fault& fault) {
    fault([](pid_t, pid_t rank) { ::kill(rank, SIGSTOP); });
    const std::string reason = named(fault.rank) + " did not answer within 3 s";
    BOOST_TEST(fault.says(6, reason));
    // mpirun wakes the rank before it ends it: the rank accuses nobody, and the status keeps what the others found.
    BOOST_TEST(fault.output.find("detected by " + named(fault.rank)) == std::string::npos, fault.output);
    BOOST_TEST(apps::read_status(fault.out)->reason.find(reason) != std::string::npos);
    BOOST_TEST(fault.seconds < Fault::kTimeout + 2.0 + kBusy);
  });
}

// Stopped by a signal and resumed at the same mesh: the bytes of a run that was never stopped.
BOOST_AUTO_TEST_CASE(a_stopped_job_resumes_to_the_same_bytes) {
  auto check_resume = [](Fault& fault) {
    BOOST_TEST(fault.says(75, "stopped by"));
    std::string end = fault.mesh + " schedule.name=constant train.steps=" + std::to_string(fault.last_step + 3);
    fs::path whole = world().fresh();
    BOOST_TEST(says(run(mpirun(4) + train(fault.out, end)), 0, "trained"));
    BOOST_TEST(says(run(mpirun(4) + train(whole, end)), 0, "trained"));
    for (const char* file : {"model.safetensors", "trainer/optimizer.safetensors"}) {
      fs::path name = fs::path(models::step_name(fault.last_step + 3)) / file;
      BOOST_TEST((read_file(fault.out / name) == read_file(whole / name)), file);
    }
  };
  Table("SIGUSR1 to mpirun").each_round([&](Fault& fault) {
    fault([](pid_t mpirun, pid_t) { ::kill(mpirun, SIGUSR1); });
    check_resume(fault);
  });
  Table("SIGTERM to a rank").each_round([&](Fault& fault) {
    fault([](pid_t, pid_t rank) { ::kill(rank, SIGTERM); });
    check_resume(fault);
  });
}

// checkpoint.async: steps go on, with collectives of the training, while the ranks write and publish a checkpoint.
BOOST_AUTO_TEST_CASE(checkpoints_beside_the_training_have_the_same_bytes) {
  for (const std::string mesh : {"parallel.tensor=2", "parallel.data=2", "parallel.context=2"}) {
    const fs::path waited = world().fresh(), beside = world().fresh();
    const std::string more =
        mesh + " checkpoint.interval=2 checkpoint.keep_every=2 checkpoint.best=true eval.interval=3";
    BOOST_TEST(says(run(mpirun(2) + train(waited, more)), 0, "trained 10 steps"));
    BOOST_TEST(says(run(mpirun(2) + train(beside, more + " checkpoint.async=true")), 0, "trained 10 steps"));
    const std::vector<models::StepFolder> all = models::step_folders(waited);
    BOOST_TEST(models::step_folders(beside).size() == all.size());
    for (const models::StepFolder& f : all) {
      const fs::path other = beside / models::step_name(f.step);
      BOOST_TEST(!models::find_damage(other));
      for (const char* file : {"model.safetensors", "trainer/optimizer.safetensors", "config.json"})
        BOOST_TEST((read_file(other / file) == read_file(f.path / file)), mesh << " " << other << " " << file);
    }
    for (const char* file : {"latest", "best"}) BOOST_TEST(read_file(beside / file) == read_file(waited / file));
  }
}

// From a random moment on a rank cannot write beyond the first bytes of a file: its part of the next checkpoint does
// not find room. All ranks end alike, and what was there before is intact.
BOOST_AUTO_TEST_CASE(a_full_disk_of_a_rank_ends_all_alike) {
  Table("full disk of a rank").each_round([](Fault& fault) {
    fault([](pid_t, pid_t rank) {
      rlimit none{1000, 1000};
      BOOST_REQUIRE(::prlimit(rank, RLIMIT_FSIZE, &none, nullptr) == 0);
    });
    BOOST_TEST(fault.says(4, "error: "));
    BOOST_TEST(fault.output.find("File too large") != std::string::npos, fault.output);
    BOOST_TEST(fault.output.find("error: ") == fault.output.rfind("error: "));  // one rank writes
    std::string who = fault.rank == 0 ? "" : named(fault.rank) + ": ";
    BOOST_TEST(fault.says(4, "error: " + who + "cannot write"));
    for (const auto& entry : fs::directory_iterator(fault.out))
      BOOST_TEST(!entry.path().filename().string().ends_with(".tmp"), entry.path());
    // With room again the run resumes.
    std::string end = fault.mesh + " train.steps=" + std::to_string(fault.last_step + 2);
    BOOST_TEST(says(run(mpirun(4) + train(fault.out, end)), 0, "trained"));
  });
}

// A random rank of four that was started with another setting or program, on a fresh run or one with a checkpoint.
BOOST_AUTO_TEST_CASE(ranks_that_do_not_fit_are_rejected_before_the_first_step) {
  fs::path copy = world().folder.path / "braid-copy";
  fs::copy_file(test::braid_program(), copy);
  std::ofstream(copy, std::ios::app) << "x";
  double worst = 0;
  int first_seed = number_from("BRAID_SEED", static_cast<int>(std::random_device{}() % 100000));
  for (int i = 0; i < rounds(); ++i) {
    std::mt19937 random(static_cast<uint32_t>(first_seed + i));
    const int odd = 1 + static_cast<int>(random() % 3);
    for (bool program : {false, true}) {
      fs::path out = world().fresh();
      std::string usual = train(out, "optimizer.lr=0.001"), other = train(out, "optimizer.lr=0.002");
      if (program) other = copy.string() + usual.substr(test::braid_program().size());
      std::string command = std::string(BRAID_MPIRUN) + " --oversubscribe";
      for (int rank = 0; rank < 4; ++rank)
        command += std::string(rank > 0 ? " :" : "") + " -np 1 " + (rank == odd ? other : usual);
      Clock::time_point start = Clock::now();
      Outcome o = run(command);
      worst = std::fmax(worst, seconds_since(start));
      std::string who = named(odd) + " has another ";
      BOOST_TEST(says(o, 6, who + (program ? "program (checksum)" : "setting: expected lr = 0.001")));
      BOOST_TEST(models::step_folders(out).empty());
      expect_no_process(out);
    }
  }
  char line[160];
  std::snprintf(line, sizeof line, "%-34s %3d rounds, seeds %d to %d, at most %.1f s with the start",
                "another setting, another program", 2 * rounds(), first_seed, first_seed + rounds() - 1, worst);
  BOOST_TEST_MESSAGE(line);
}

// Images, with every change of them and every dropout: an image does not depend on the rank that computes it.
BOOST_AUTO_TEST_CASE(images_are_trained_on_as_by_one_process) {
  const fs::path in = world().folder.path / "idx", data = world().folder.path / "pictures";
  const std::string train = test::write_idx_images(in, "train", 60), val = test::write_idx_images(in, "t10k", 19);
  BOOST_TEST(says(run(test::braid_program() + " prepare --images " + train + " --val " + val + " -o " + data.string()),
                  0, "wrote"));
  const auto trained = [&](const fs::path& out, int ranks, const std::string& more) {
    std::ostringstream line;
    if (ranks > 1) line << mpirun(ranks);
    line << test::braid_program() << " train run.out=" << out.string() << " data.path=" << data.string()
         << " model.preset=dc-vit-28 model.hidden_size=32 model.num_hidden_layers=2 model.intermediate_size=64"
            " model.drop_path_rate=0.1 model.compose_dropout=0.1 model.hidden_dropout_prob=0.05"
            " augment.crop_padding=1 augment.erase=0.2 augment.mixup=0.2 train.steps=6 train.batch_size=7"
            " train.accumulate=2 train.dtype=f64 schedule.warmup=2 eval.interval=3 eval.samples=0"
            " log.interval=1 guard.spike=0 run.threads=1 "
         << more;
    return run(line.str());
  };
  const fs::path one = world().fresh(), three = world().fresh();
  BOOST_TEST(says(trained(one, 1, ""), 0, "validation accuracy"));
  BOOST_TEST(says(trained(three, 3, "checkpoint.interval=4"), 0, "validation accuracy"));
  const auto check_log = [&](const fs::path& out) {
    const auto expected = apps::read_log(one), found = apps::read_log(out);
    BOOST_TEST(found.size() == expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      BOOST_TEST(found[i]["loss"] == expected[i]["loss"], boost::test_tools::tolerance(1e-10));
      BOOST_TEST(std::isnan(found[i]["val_loss"]) == std::isnan(expected[i]["val_loss"]));
      if (std::isnan(expected[i]["val_loss"])) continue;
      BOOST_TEST(found[i]["val_loss"] == expected[i]["val_loss"], boost::test_tools::tolerance(1e-10));
      BOOST_TEST(found[i]["val_top1"] == expected[i]["val_top1"]);
    }
  };
  check_log(three);
  fs::remove_all(three / models::step_name(6));
  BOOST_TEST(says(trained(three, 2, ""), 0, "resuming from"));  // by other processes
  check_log(three);
  BOOST_TEST(says(trained(world().fresh(), 2, "parallel.tensor=2"), 2, "parallel.tensor"));
}

BOOST_AUTO_TEST_CASE(generate_prints_the_text_of_one_process) {
  const fs::path out = world().fresh();
  BOOST_REQUIRE(says(run(train(out, "")), 0, "trained 10 steps"));
  const auto generate = [&](const std::string& more) {
    return test::braid_program() + " generate " + out.string() +
           " --prompt '12 34' --tokens 24 --count 2 --ignore-eos --threads 1 " + more;
  };
  const Outcome want = run(generate(""));
  BOOST_TEST(says(want, 0, "--- 2\n12 34"));
  for (const auto& [ranks, mesh] :
       {std::pair{2, "parallel.tensor=2"}, {2, "parallel.context=2"}, {4, "parallel.tensor=2 parallel.context=2"}}) {
    const Outcome got = run(mpirun(ranks) + generate(mesh));
    BOOST_TEST(got.code == 0);
    BOOST_TEST(got.output == want.output, mesh);
  }
  BOOST_TEST(says(run(generate("parallel.tensor=2")), 2, "mpirun -np 2 braid generate"));
  BOOST_TEST(says(run(generate("parallel.data=2")), 2, "parallel.data is for training"));
  BOOST_TEST(says(run(mpirun(2) + generate("")), 2, "= 2, found 1; give parallel.tensor=2"));
  BOOST_TEST(says(run(mpirun(1) + generate("parallel.tensor=2") + " : -np 1 " + generate("parallel.tensor=2 -t 1")), 6,
                  "has another command: expected braid generate"));
  const Outcome o = run(mpirun(2) + generate("parallel.tensor=2 --temperature -1"));
  BOOST_TEST(says(o, 2, "--temperature"));
}

BOOST_AUTO_TEST_CASE(wrong_sizes_are_said_once) {
  Outcome o = run(mpirun(4) + train(world().fresh(), "parallel.tensor=3"));
  BOOST_TEST(says(o, 2, "expected a product of 4, found the rest x 1 x 3"));
  BOOST_TEST(o.output.find("expected a product") == o.output.rfind("expected a product"));
  o = run(train(world().fresh(), "parallel.tensor=2"));
  BOOST_TEST(says(o, 2, "start them with mpirun -np 2"));
  o = run(mpirun(4) + train(world().fresh(), "parallel.data=4 train.batch_size=3"));
  BOOST_TEST(says(o, 2, "train.batch_size is smaller than parallel.data"));
}

// Only rank 0 writes samples.txt; when its disk is full, all ranks end with the error.
BOOST_AUTO_TEST_CASE(a_full_disk_for_samples_ends_all_ranks_alike) {
  fs::path out = world().fresh();
  fs::create_directories(out);
  fs::create_symlink("/dev/full", out / "samples.txt");
  Outcome o = run(mpirun(2) + train(out, "parallel.tensor=2 checkpoint.interval=2 sample.interval=5"));
  BOOST_TEST(says(o, 4, "error: cannot write " + (out / "samples.txt").string()));
  BOOST_TEST(o.output.find("error: ") == o.output.rfind("error: "));
  BOOST_TEST(o.output.find("(failure 2 of 3 in a row; ") != std::string::npos);
  BOOST_TEST(alive(out) == 0);
  BOOST_TEST(!models::find_damage(out / "step-00000010"));  // the weights are saved all the same
}

BOOST_AUTO_TEST_SUITE_END()
