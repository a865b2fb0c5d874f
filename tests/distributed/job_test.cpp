// braid train under mpirun, as people start it: the same run as on one process, and what happens when something goes
// wrong with a rank. BRAID_FAULTS=N repeats each fault N times at other random moments (default 1).
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <random>
#include <thread>

#include "apps/common/log.h"
#include "models/checkpoint.h"
#include "tests/support/temp_folder.h"

using namespace braid;
namespace fs = std::filesystem;

namespace {

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A command of the shell while it runs.
class Shell {
 public:
  Shell(const std::string& command, const fs::path& output) : output_(output) {
    pid_ = ::fork();
    if (pid_ == 0) {
      std::string line = "exec " + command + " >" + output.string() + " 2>&1 </dev/null";
      ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      ::_exit(127);
    }
  }
  Shell(const Shell&) = delete;
  ~Shell() {
    if (pid_ > 0) ::kill(pid_, SIGKILL), ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  std::string output() const { return read_file(output_); }

 private:
  pid_t pid_;
  fs::path output_;
};

// One data set for all tests.
struct World {
  TempFolder folder;
  int runs = 0;
  World() {
    std::mt19937 random(5);
    for (int i = 0; i < 30; ++i) {
      std::string text;
      for (int j = 0; j < 100; ++j) text += std::to_string(random() % 100) + " ";
      folder.write("in/" + std::to_string(i) + ".txt", text);
    }
    Shell made(std::string(BRAID_PROGRAM) + " prepare " + (folder / "in") + " --val-fraction 0.2 -o " + data(),
               folder.path / "prepared.txt");
    if (made.wait() != 0) throw std::runtime_error(made.output());
  }
  std::string data() const { return folder / "data"; }
  fs::path fresh() { return folder.path / ("run-" + std::to_string(runs++)); }
};
World& world() {
  static World instance;
  return instance;
}

std::string train(const fs::path& out, const std::string& more) {
  return std::string(BRAID_PROGRAM) + " train run.out=" + out.string() + " data.path=" + world().data() +
         " model.dim=24 model.n_layer=2 model.n_head=4 model.block_size=32 train.batch_size=4 schedule.warmup=2 "
         "eval.interval=5 eval.batches=2 log.interval=1 guard.spike=0 train.dtype=f64 run.threads=1 train.steps=10 "
         "checkpoint.interval=0 " +
         more;
}
std::string mpirun(int ranks) {
  return std::string(BRAID_MPIRUN) + " --oversubscribe -np " + std::to_string(ranks) + " ";
}

struct Outcome {
  int code;
  std::string output;
};
Outcome run(const std::string& command) {
  Shell shell(command, world().folder.path / "output.txt");
  int code = shell.wait();
  return {code, shell.output()};
}

bool says(const Outcome& o, int code, const std::string& words) {
  bool ok = o.code == code && o.output.find(words) != std::string::npos;
  if (!ok) BOOST_TEST_MESSAGE("exit " << o.code << "\n" << o.output << "\nwanted " << code << ": " << words);
  return ok;
}

// The process of a rank among the children of mpirun; 0 when it is not there yet.
pid_t process_of(pid_t mpirun_pid, int rank) {
  std::string children =
      read_file("/proc/" + std::to_string(mpirun_pid) + "/task/" + std::to_string(mpirun_pid) + "/children");
  std::istringstream list(children);
  for (pid_t pid; list >> pid;) {
    std::string environment = read_file("/proc/" + std::to_string(pid) + "/environ");
    std::string wanted = std::string(1, '\0') + "OMPI_COMM_WORLD_RANK=" + std::to_string(rank) + std::string(1, '\0');
    if (environment.find(wanted) != std::string::npos) return pid;
  }
  return 0;
}

void wait_for_file(const fs::path& file) {
  for (int i = 0; i < 600 && !fs::exists(file); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  BOOST_REQUIRE(fs::exists(file));
}

int rounds() {
  const char* text = std::getenv("BRAID_FAULTS");
  return text ? std::atoi(text) : 1;
}

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

// Starts an endless run on four ranks, lets it make checkpoints, and does something to a rank at a random moment.
struct Fault {
  fs::path out = world().fresh();
  std::mt19937 random{std::random_device{}()};
  int rank = static_cast<int>(random() % 4);
  std::string layout = random() % 2 ? "parallel.tensor=2" : "parallel.context=2 parallel.tensor=2";
  Outcome outcome{};

  void operator()(int signal, bool to_mpirun) {
    Shell job(mpirun(4) + train(out, layout + " train.steps=100000 checkpoint.interval=3 parallel.timeout=3"),
              out.string() + ".txt");
    wait_for_file(out / "step-00000006");
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 1000));
    pid_t target = to_mpirun ? job.pid() : process_of(job.pid(), rank);
    BOOST_REQUIRE(target > 0);
    ::kill(target, signal);
    int code = job.wait();
    outcome = {code, job.output()};
    BOOST_TEST(alive(out) == 0);
    std::vector<std::string> notes;
    BOOST_TEST(models::newest_checkpoint(out, notes).step >= 3);
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(job)

BOOST_AUTO_TEST_CASE(the_run_is_that_of_one_process) {
  fs::path one = world().fresh();
  Outcome alone = run(train(one, ""));
  BOOST_REQUIRE(says(alone, 0, "trained 10 steps"));
  std::vector<app::LogRow> want = app::read_log(one);
  for (auto& [ranks, layout] : std::vector<std::pair<int, std::string>>{
           {2, "parallel.tensor=2"}, {4, "parallel.tensor=2"}, {4, "parallel.context=2 parallel.tensor=2"}}) {
    fs::path many = world().fresh();
    Outcome o = run(mpirun(ranks) + train(many, layout));
    BOOST_TEST(says(o, 0, "trained 10 steps"));
    BOOST_TEST(o.output.find("trained") == o.output.rfind("trained"));  // one rank speaks
    std::vector<app::LogRow> got = app::read_log(many);
    BOOST_REQUIRE(got.size() == want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      BOOST_TEST(std::fabs(got[i].loss - want[i].loss) <= 1e-11 * want[i].loss);
      BOOST_TEST(std::fabs(got[i].grad_norm - want[i].grad_norm) <= 1e-10 * want[i].grad_norm);
      if (!std::isnan(want[i].val_loss))
        BOOST_TEST(std::fabs(got[i].val_loss - want[i].val_loss) <= 1e-11 * want[i].val_loss);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_killed_rank_ends_the_job) {
  for (int i = 0; i < rounds(); ++i) {
    Fault fault;
    fault(SIGKILL, false);
    BOOST_TEST((fault.outcome.code == 137 || fault.outcome.code == 6));
  }
}

BOOST_AUTO_TEST_CASE(a_stopped_rank_is_named) {
  for (int i = 0; i < rounds(); ++i) {
    Fault fault;
    fault(SIGSTOP, false);
    BOOST_TEST(says(fault.outcome, 6, "error: "));
    BOOST_TEST(says(fault.outcome, 6, "rank " + std::to_string(fault.rank) + " did not answer within 3 s"));
  }
}

// Stopped by a signal, and gone on at the same layout: the bytes of a run that was never stopped.
BOOST_AUTO_TEST_CASE(a_stopped_job_resumes_to_the_same_bytes) {
  fs::path whole = world().fresh();
  std::string settings = "parallel.tensor=2 train.steps=30";
  BOOST_TEST(says(run(mpirun(4) + train(whole, settings)), 0, "trained 30 steps"));
  for (int i = 0; i < rounds(); ++i) {
    fs::path out = world().fresh();
    {
      Shell job(mpirun(4) + train(out, settings + " checkpoint.interval=3"), out.string() + ".txt");
      wait_for_file(out / "step-00000006");
      ::kill(job.pid(), SIGUSR1);
      int code = job.wait();
      BOOST_TEST(says({code, job.output()}, 75, "stopped by"));
    }
    BOOST_TEST(says(run(mpirun(4) + train(out, settings + " checkpoint.interval=3")), 0, "trained 30 steps"));
    for (const char* file : {"model.safetensors", "trainer/optimizer.safetensors"}) {
      BOOST_TEST((read_file(out / "step-00000030" / file) == read_file(whole / "step-00000030" / file)));
    }
  }
}

BOOST_AUTO_TEST_CASE(ranks_that_do_not_fit_are_refused_before_the_first_step) {
  fs::path out = world().fresh(), copy = world().folder.path / "braid-copy";
  std::string a = train(out, "optimizer.lr=0.001"), b = train(out, "optimizer.lr=0.002");
  Outcome settings = run(std::string(BRAID_MPIRUN) + " --oversubscribe -np 1 " + a + " : -np 1 " + b);
  BOOST_TEST(says(settings, 6, "rank 1 has another setting: expected lr = 0.001"));
  BOOST_TEST(!fs::exists(out / "step-00000010"));

  fs::copy_file(BRAID_PROGRAM, copy);
  std::ofstream(copy, std::ios::app) << "x";
  std::string other = copy.string() + a.substr(std::string(BRAID_PROGRAM).size());
  Outcome program = run(std::string(BRAID_MPIRUN) + " --oversubscribe -np 1 " + a + " : -np 1 " + other);
  BOOST_TEST(says(program, 6, "rank 1 has another program (checksum)"));
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

// Only rank 0 writes samples.txt; that its disk is full, all ranks hear at once.
BOOST_AUTO_TEST_CASE(a_full_disk_ends_all_ranks_alike) {
  fs::path out = world().fresh();
  fs::create_directories(out);
  fs::create_symlink("/dev/full", out / "samples.txt");
  Outcome o = run(mpirun(2) + train(out, "parallel.tensor=2 checkpoint.interval=2 sample.interval=5"));
  BOOST_TEST(says(o, 4, "error: cannot write " + (out / "samples.txt").string()));
  BOOST_TEST(o.output.find("cannot write") == o.output.rfind("cannot write"));
  BOOST_TEST(alive(out) == 0);
  BOOST_TEST(models::why_invalid(out / "step-00000004") == "");
}

BOOST_AUTO_TEST_SUITE_END()
