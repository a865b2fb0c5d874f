// Wrong on purpose: tests/lint checks that this include is found.
#include "braid/nn/layers/linear.h"
inline bool there(const char* path) { return std::filesystem::exists(path); }
inline void move(const char* from, const char* to) { std::filesystem::rename(from, to); }
