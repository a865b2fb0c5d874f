// expect: o with two dots: expected \(195 182\), found \(-61 -74\).*hint: char may be signed
#pragma once
#define bytes bytes_right
#include "../exercise.h"
#undef bytes

namespace exercise {

inline Ids bytes(std::string_view text) {
  Ids ids;
  for (const char c : text) ids.push_back(static_cast<signed char>(c));
  return ids;
}

}  // namespace exercise
