// oneDNN ends the process by a signal where it gets no memory.
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "braid/tensor/cpu/gemm/gemm.h"
#include "braid/tensor/cpu/instruction_sets.h"
#include "tests/support/in_child.h"
#include "tests/support/sanitizer.h"

using namespace braid;
using namespace braid::cpu;

BOOST_AUTO_TEST_SUITE(gemm_memory)

BOOST_AUTO_TEST_CASE(a_product_without_memory_is_an_error) {
  if (test::kAddressSanitizer || test::kThreadSanitizer) return;  // they need their own address space
  const std::vector<float> a(256 * 256, 1);
  std::vector<float> c(a.size());
  for (const InstructionSet* set : instruction_sets())
    for (const GemmKernel<float>& kernel : set->products().f32.kernels) {
      if (std::string(kernel.name) != "dnnl") continue;
      BOOST_TEST(test::in_child([&] {
                   test::leave_no_memory();
                   try {
                     kernel.run({false, false, 256, 256, 256, 1, a.data(), 256, a.data(), 256, 0, c.data(), 256});
                   } catch (const OutOfMemory&) {
                     return true;
                   }
                   return false;
                 }),
                 set->name);
    }
}

BOOST_AUTO_TEST_SUITE_END()
