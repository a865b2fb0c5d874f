
// Which mutants each test case passes: a line "name microseconds numbers..." per case in BRAID_MUTANTS_CASES.
#include <boost/test/tree/observer.hpp>
#include <boost/test/tree/test_unit.hpp>
#include <cstring>
#include <fstream>

#include "mutants.h"

namespace {

struct PassedMutants : boost::unit_test::test_observer {
  PassedMutants() { boost::unit_test::framework::register_observer(*this); }
  ~PassedMutants() { boost::unit_test::framework::deregister_observer(*this); }
  void test_unit_start(const boost::unit_test::test_unit& unit) override {
    if (mutants::seen && unit.p_type == boost::unit_test::TUT_CASE) std::memset(mutants::seen, 0, mutants::kCapacity);
  }
  void test_unit_finish(const boost::unit_test::test_unit& unit, unsigned long elapsed) override {
    if (!mutants::seen || unit.p_type != boost::unit_test::TUT_CASE) return;
    std::ofstream out(std::getenv("BRAID_MUTANTS_CASES"), std::ios::app);
    out << unit.full_name() << '\t' << elapsed << '\t';
    for (int id = 0; id < mutants::kCapacity; ++id)
      if (mutants::seen[id]) out << id << ' ';
    out << '\n';
  }
};
BOOST_TEST_GLOBAL_FIXTURE(PassedMutants);

}  // namespace
