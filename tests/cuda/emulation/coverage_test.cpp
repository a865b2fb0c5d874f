// Which kernels did the tests of this program launch? Every instantiation must have been. Stands last in the list of
// files.
#include "tests/cuda/emulation/coverage.h"

#include <boost/test/unit_test.hpp>
#include <map>
#include "tests/support/places.h"

using namespace braid;

BOOST_AUTO_TEST_SUITE(cuda_coverage)

BOOST_AUTO_TEST_CASE(every_kernel_was_launched, *boost::unit_test::depends_on("cuda_op_table/every_row_holds")) {
  const std::set<std::string> names = emulated::kernels_in(test::source_dir() + "/cuda/kernels");
  struct Use {
    int compiled = 0, launched = 0;
    uint64_t launches = 0;
  };
  std::map<std::string, Use> uses;
  std::string silent;
  int compiled = 0, launched = 0;
  for (const auto& kernel : emulated::compiled_kernels(names)) {
    Use& use = uses[kernel.name];
    ++compiled;
    ++use.compiled;
    use.launches += kernel.launches;
    if (kernel.launches > 0) {
      ++launched;
      ++use.launched;
    } else {
      silent += "\n  never: " + kernel.signature;
    }
  }
  std::string table = "kernel: launches, launched of compiled instantiations";
  for (const auto& [name, use] : uses) {
    table += "\n  " + name + ": " + std::to_string(use.launches) + ", " + std::to_string(use.launched) + " of " +
             std::to_string(use.compiled);
  }
  BOOST_TEST_MESSAGE(table << silent);
  BOOST_TEST_MESSAGE(uses.size() << " kernels, " << launched << " of " << compiled << " instantiations launched");
  for (const std::string& name : names) {
    BOOST_TEST_CONTEXT("__global__ " << name) BOOST_TEST(uses[name].launched > 0);
  }
  BOOST_TEST(launched == compiled, "kernels that no test has launched:" << silent);
}

BOOST_AUTO_TEST_SUITE_END()
