// The emulation that preset avx512 tests kernels with, and, where the processor has them, the instructions it stands
// for, against the same plain loops.
#include <boost/test/unit_test.hpp>

#include "braid/tensor/base/processor.h"

namespace braid::test {

namespace emulated_intrinsics {
const char* wrong_intrinsic(bool vnni, bool bf16);
}
namespace instructions {
const char* wrong_intrinsic(bool vnni, bool bf16);
}

BOOST_AUTO_TEST_SUITE(emulation)

BOOST_AUTO_TEST_CASE(emulated_intrinsics_agree_with_plain_loops) {
  const char* wrong = detail::has_f16c() ? emulated_intrinsics::wrong_intrinsic(true, true) : nullptr;
  BOOST_TEST(!wrong, (wrong ? wrong : ""));
}

#ifndef BRAID_EMULATE_AVX512  // which would run them whatever the processor has
BOOST_AUTO_TEST_CASE(instructions_agree_with_the_same_loops) {
  if (!detail::has_avx512()) {
    BOOST_TEST_MESSAGE("left out: this processor has no AVX-512");
    return;
  }
  const char* wrong = instructions::wrong_intrinsic(detail::has_avx512_vnni(), detail::has_avx512_bf16());
  BOOST_TEST(!wrong, (wrong ? wrong : ""));
}
#endif

BOOST_AUTO_TEST_SUITE_END()

}  // namespace braid::test
