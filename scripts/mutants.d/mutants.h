// Included by every rewritten source: all mutants lie in one build, and BRAID_MUTANT=N turns the one of number N on.
// With BRAID_MUTANTS_SEEN=FILE each mutant that is passed leaves a byte in FILE, by its number.
#pragma once
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <type_traits>
#include <utility>

#pragma GCC diagnostic ignored "-Wnarrowing"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wparentheses"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wpsabi"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wreturn-type"
#pragma GCC diagnostic ignored "-Wint-in-bool-context"
#pragma GCC diagnostic ignored "-Wbool-operation"
#pragma GCC diagnostic ignored "-Wsubobject-linkage"
#pragma GCC diagnostic ignored "-Warray-bounds"
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#pragma GCC diagnostic ignored "-Wdiv-by-zero"
#pragma GCC diagnostic ignored "-Waggressive-loop-optimizations"

namespace mutants {

constexpr int kCapacity = 1 << 17;

inline unsigned char* open_seen() {
  const char* path = std::getenv("BRAID_MUTANTS_SEEN");
  const int fd = path ? ::open(path, O_RDWR) : -1;
  if (fd < 0) return nullptr;
  void* at = ::mmap(nullptr, kCapacity, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  return at == MAP_FAILED ? nullptr : static_cast<unsigned char*>(at);
}

inline const int active = std::getenv("BRAID_MUTANT") ? std::atoi(std::getenv("BRAID_MUTANT")) : 0;
inline unsigned char* const seen = open_seen();

// In constant expressions everything is as it was.
[[gnu::always_inline]] constexpr bool on(int id) {
  if (std::is_constant_evaluated()) return false;
  if (seen) seen[id] = 1;
  return active == id;
}

// a OP b, or a OTHER b where that exists and has the same type. By value: a reference to a local constant is none.
#define BRAID_MUTANT_OPERATOR(name, op, other)                                               \
  template <class A, class B>                                                                \
  [[gnu::always_inline]] constexpr auto name(int id, A a, B b) {                             \
    if constexpr (requires { requires std::is_same_v<decltype(a op b), decltype(a other b)>; }) \
      return on(id) ? a other b : a op b;                                                    \
    else                                                                                     \
      return a op b;                                                                         \
  }
BRAID_MUTANT_OPERATOR(less, <, <=)
BRAID_MUTANT_OPERATOR(less_equal, <=, <)
BRAID_MUTANT_OPERATOR(greater, >, >=)
BRAID_MUTANT_OPERATOR(greater_equal, >=, >)
BRAID_MUTANT_OPERATOR(equal, ==, !=)
BRAID_MUTANT_OPERATOR(not_equal, !=, ==)
BRAID_MUTANT_OPERATOR(plus, +, -)
BRAID_MUTANT_OPERATOR(minus, -, +)
BRAID_MUTANT_OPERATOR(times, *, /)
BRAID_MUTANT_OPERATOR(over, /, *)
BRAID_MUTANT_OPERATOR(modulo, %, *)
#undef BRAID_MUTANT_OPERATOR

// A literal and its neighbour; what is added by += or taken away by -=.
template <class T>
[[gnu::always_inline]] constexpr T literal(int id, T value) {
  if constexpr (std::is_same_v<T, bool>)
    return on(id) ? !value : value;
  else
    return on(id) ? static_cast<T>(value == T(1) ? 0 : value + 1) : value;
}
template <class T>
[[gnu::always_inline]] constexpr decltype(auto) negative(int id, T&& value) {
  if constexpr (std::is_arithmetic_v<std::remove_cvref_t<T>>)
    return static_cast<std::remove_cvref_t<T>>(on(id) ? -value : value);
  else
    return std::forward<T>(value);
}

}  // namespace mutants
