// Every fuzz target calls its parser through this: an Error is the parser's right answer to bad input; anything else
// (a crash, another exception, a sanitizer's report) is a defect.
#pragma once
#include <string>

#include "braid/tensor/error.h"

template <class Parse>
int fuzz(Parse&& parse) {
  try {
    parse();
  } catch (const braid::Error& e) {
    // The message goes to a terminal or a log: it must not be empty, and an input error must say so.
    if (e.kind() != braid::ErrorKind::input || std::string(e.what()).empty()) __builtin_trap();
  }
  return 0;
}
