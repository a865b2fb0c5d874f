// Error messages say what failed, where, what was expected, what was found and what to do about it.
// Library code throws braid::Error and never prints, aborts or exits; programs turn `kind` into an exit code.
#pragma once
#include <concepts>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace braid {

// The class of an error, by what a caller can do about it. The value is the exit code of a program that ends with it.
enum class ErrorKind : int {
  setting = 2,        // bad flag or configuration value; nothing was touched
  input = 3,          // bad input file; nothing was written
  output = 4,         // output cannot be written; the last good state is intact
  numerical = 5,      // NaN, Inf or a loss spike; state dumped, weights untouched
  process = 6,        // another process died, hung or disagreed
  no_checkpoint = 7,  // nothing usable to resume from
  misuse = 70,        // an op or class was called with arguments that do not fit: a bug in the calling code
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

// There is no memory for a tensor; caught where a smaller step is possible.
class OutOfMemory : public Error {
 public:
  explicit OutOfMemory(const std::string& message) : Error(ErrorKind::setting, message) {}
};

// Throws Error(misuse, "[op] message").
[[noreturn]] void fail(const char* op, const std::string& message);
[[noreturn]] void fail(ErrorKind kind, const std::string& message);

namespace detail {
inline std::string_view part(std::string_view text) { return text; }
template <std::integral T>
std::string part(T x) {
  if constexpr (std::same_as<T, char>)
    return std::string(1, x);
  else
    return std::to_string(x);
}
template <class T>
auto part(const T& x) -> decltype(str(x)) {
  return str(x);
}
std::string concat(std::initializer_list<std::string_view> parts);

template <class T>
concept MessageSource = std::invocable<T> || std::convertible_to<T, const char*>;
}  // namespace detail

// str("expected ", n, ", found ", shape): the parts of a message as one string. Integers as std::to_string writes them,
// a shape, type, device or tensor as its own str(); a floating-point number needs detail::shortest(x).
template <class First, class Second, class... Rest>
std::string str(const First& first, const Second& second, const Rest&... rest) {
  return detail::concat({detail::part(first), detail::part(second), detail::part(rest)...});
}

// check(!xs.empty(), "concat", "needs at least one tensor");
// check(x.rank() == 2, "matmul", [&] { return str("needs a matrix, got ", x.shape()); });
// The message is a literal, or a function that is called only when the check fails.
template <class Where, detail::MessageSource Message>
void check(bool ok, Where where, Message&& message) {
  if (!ok) [[unlikely]] {
    if constexpr (std::invocable<Message>)
      fail(where, std::forward<Message>(message)());
    else
      fail(where, message);
  }
}

}  // namespace braid
