#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <map>
#include <optional>

#include "braid/distributed/comm/mpi_session.h"

using namespace braid;

BOOST_AUTO_TEST_SUITE(launcher)

namespace {

// The variables of launchers, as a test requires them; the old ones come back.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& values) {
    for (const char* name : {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_SIZE", "PMI_RANK", "PMIX_RANK",
                             "SLURM_NTASKS", "SLURM_PROCID", "SLURM_STEP_ID"}) {
      const char* before = std::getenv(name);
      before_[name] = before ? std::optional<std::string>(before) : std::nullopt;
      set(name, values.contains(name) ? std::optional<std::string>(values.at(name)) : std::nullopt);
    }
  }
  ~Environment() {
    for (const auto& [name, value] : before_) set(name, value);
  }

 private:
  static void set(const std::string& name, const std::optional<std::string>& value) {
    value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
  }
  std::map<std::string, std::optional<std::string>> before_;
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

BOOST_AUTO_TEST_CASE(a_process_that_should_have_company_is_warned) {
  const auto lost = [](const std::map<std::string, std::string>& values, int world) {
    const Environment as(values);
    return dist::lost_launch(world);
  };
  BOOST_TEST(lost({}, 1) == "");
  BOOST_TEST(lost({{"OMPI_COMM_WORLD_SIZE", "4"}}, 4) == "");
  BOOST_TEST(lost({{"OMPI_COMM_WORLD_SIZE", "1"}, {"SLURM_NTASKS", "16"}}, 1) == "");  // mpirun -np 1 in a larger job
  const std::string step = lost({{"SLURM_NTASKS", "2"}, {"SLURM_PROCID", "1"}, {"SLURM_STEP_ID", "0"}}, 1);
  BOOST_TEST(step.starts_with("SLURM_NTASKS=2, but this process is alone: every process of the job"));
  if (dist::built_with_mpi()) BOOST_TEST(has(step, "srun --mpi=pmix"));
  const std::string script = lost({{"SLURM_NTASKS", "16"}}, 1);  // a batch script without srun
  BOOST_TEST(script.starts_with("SLURM_NTASKS=16, but this process is alone. "));
  BOOST_TEST(has(lost({{"PMI_SIZE", "8"}}, 1), "PMI_SIZE=8"));
}

BOOST_AUTO_TEST_CASE(the_rank_comes_from_the_launcher) {
  const auto rank = [](const std::map<std::string, std::string>& values) {
    const Environment as(values);
    return dist::launched_rank();
  };
  BOOST_TEST(rank({}) == 0);
  BOOST_TEST(rank({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "3"}}) == 3);
  BOOST_TEST(rank({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "2"}}) == 0);  // not started by srun
  BOOST_TEST(rank({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "2"}, {"SLURM_STEP_ID", "0"}}) == 2);
}

BOOST_AUTO_TEST_SUITE_END()
