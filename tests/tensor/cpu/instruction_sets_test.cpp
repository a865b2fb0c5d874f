// Every instruction set of this processor has kernels of its own. The ctests tensor_<set> and autograd_<set> run all
// tests of these folders with fewer instructions than the processor has.
#include "braid/tensor/cpu/instruction_sets.h"

#include <boost/test/unit_test.hpp>
#include <set>
#include <string>
#include <vector>

#include "braid/autograd/ops.h"
#include "braid/tensor/base/processor.h"
#include "tests/support/compare.h"
#include "tests/support/random.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(instruction_sets)

BOOST_AUTO_TEST_CASE(the_best_is_in_use_and_others_can_be_chosen) {
  const auto sets = cpu::instruction_sets();
  BOOST_TEST_REQUIRE(!sets.empty());
  BOOST_TEST(&cpu::instruction_set() == sets.front());
  std::set<std::string> names;
  std::set<const Backend*> tables;
  for (const cpu::InstructionSet* set : sets) {
    BOOST_TEST(cpu::use_instruction_set(set->name));
    BOOST_TEST(&cpu_backend() == &set->kernels());
    names.emplace(set->name);
    tables.insert(&set->kernels());
  }
  BOOST_TEST(names.size() == sets.size());
  BOOST_TEST(tables.size() == sets.size());
  BOOST_TEST(names.contains("avx2") == detail::has_f16c());
  BOOST_TEST(names.contains("avx512") == detail::has_avx512());
  BOOST_TEST(names.contains("portable") != names.contains("native"));
  BOOST_TEST(!cpu::use_instruction_set("abacus"));
  BOOST_TEST(cpu::use_instruction_set(""));
  BOOST_TEST(&cpu::instruction_set() == sets.front());
}

// tanh(LayerNorm(x w)): f64 beside that of the best set, f32 beside f64.
BOOST_AUTO_TEST_CASE(every_set_computes_the_same_up_to_rounding) {
  const Tensor x = random_tensor({37, 65}, 1, DType::f64), w = random_tensor({65, 129}, 2, DType::f64),
               u = random_tensor({129}, 3, DType::f64), b = random_tensor({129}, 4, DType::f64);
  const auto compute = [&](DType t) {
    return tanh(layer_norm(matmul(x.to(t), w.to(t)), u.to(t), b.to(t), 1e-5)).to_vector<double>();
  };
  const std::vector<double> want = compute(DType::f64);
  for (const cpu::InstructionSet* set : cpu::instruction_sets()) {
    BOOST_TEST_CONTEXT(set->name) {
      cpu::use_instruction_set(set->name);
      BOOST_TEST(is_close(compute(DType::f64), want, 1e-13));
      BOOST_TEST(is_close(compute(DType::f32), want, 5e-6));
    }
  }
  cpu::use_instruction_set("");
}

BOOST_AUTO_TEST_SUITE_END()
