// Error messages say what failed, where, what was expected, what was found and what to do about it.
// Library code throws braid::Error and never prints, aborts or exits; programs turn `kind` into an exit code.
#pragma once
#include <stdexcept>
#include <string>
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

// check(x.rank() == 2, "matmul", [&] { return "needs a matrix, got " + str(x.shape()); });
// The message is built only when the check fails.
template <class Message>
void check(bool ok, const char* op, Message&& message) {
  if (!ok) [[unlikely]]
    fail(op, std::forward<Message>(message)());
}
template <class Message>
void check(bool ok, ErrorKind kind, Message&& message) {
  if (!ok) [[unlikely]]
    fail(kind, std::forward<Message>(message)());
}

}  // namespace braid
