// BRAID_CHECK_FAILS(expression, ErrorKind::input, "part of the message", "another part")
#pragma once
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "braid/tensor/error.h"

// True when the error has this kind and its message holds every part; otherwise prints what it found.
inline bool says(const braid::Error& e, braid::ErrorKind kind, const std::vector<std::string>& parts) {
  bool ok = e.kind() == kind;
  for (const std::string& part : parts) ok = ok && std::string(e.what()).find(part) != std::string::npos;
  if (!ok) BOOST_TEST_MESSAGE("kind " << static_cast<int>(e.kind()) << ": " << e.what());
  return ok;
}

// No lambda around the arguments of the macro: clang 14 captures no structured bindings.
inline auto error_says(braid::ErrorKind kind, const std::vector<std::string>& parts) {
  return [kind, parts](const braid::Error& e) { return says(e, kind, parts); };
}

#define BRAID_CHECK_FAILS(expression, kind, ...) \
  BOOST_CHECK_EXCEPTION(expression, braid::Error, ::error_says(kind, {__VA_ARGS__}))
