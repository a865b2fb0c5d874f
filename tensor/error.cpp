#include "braid/tensor/error.h"

#include "braid/tensor/called_op.h"
#include "braid/tensor/layer_scope.h"

#ifdef __FAST_MATH__
#error "Braid must not be compiled with -ffast-math: NaN checks and bit-exact results depend on IEEE arithmetic"
#endif

namespace braid {

std::string detail::concat(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) text += part;
  return text;
}

constinit thread_local const char* detail::called_op = nullptr;
constinit thread_local const char* detail::running_layer = "";

void fail(const char* op, const std::string& message) {
  throw Error(ErrorKind::misuse, str("[", detail::called_op ? detail::called_op : op, "] ", message));
}

void fail(ErrorKind kind, const std::string& message) { throw Error(kind, message); }

}  // namespace braid
