#include "braid/tensor/error.h"

#ifdef __FAST_MATH__
#error "Braid must not be compiled with -ffast-math: NaN checks and bit-exact results depend on IEEE arithmetic"
#endif

namespace braid {

void fail(const char* op, const std::string& message) {
  throw Error(ErrorKind::misuse, "[" + std::string(op) + "] " + message);
}

void fail(ErrorKind kind, const std::string& message) { throw Error(kind, message); }

}  // namespace braid
