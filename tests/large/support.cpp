#include "tests/large/support.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "braid/tensor/base/machine_limits.h"
#include "braid/tensor/convert.h"

namespace braid::large {

namespace {

// Bytes that the system can give without swapping; infinite where it does not say.
double available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  double kibibytes = 0;
  while (file >> name >> kibibytes) {
    if (name == "MemAvailable:") return kibibytes * 1024;
    file.ignore(1000, '\n');
  }
  return detail::usable_memory();
}

}  // namespace

bool has_memory(double gib) {
  release_cached_memory(kCpu);
  const double unit = 1 << 30;
  double found = std::min(available_memory(), detail::usable_memory()) / unit;
  if (const char* limit = std::getenv("BRAID_TEST_MEMORY_GIB")) found = std::min(found, std::atof(limit));
  const bool enough = found >= gib;
  if (!enough)
    std::printf("%s: skipped, needs %.1f GiB of memory, found %.1f\n",
                boost::unit_test::framework::current_test_case().full_name().c_str(), gib, found);
  return enough;
}

Tensor marked(const Shape& shape, DType dtype, double usual, const Marks& marks) {
  Tensor x = full(shape, usual, dtype);
  visit_any(dtype, [&]<class T>() {
    T* data = x.mutable_data<T>();
    for (const auto& [position, value] : marks) data[position] = convert<T>(value);
  });
  return x;
}

double element(const Tensor& x, int64_t position) {
  double value = 0;
  visit_any(x.dtype(), [&]<class T>() { value = static_cast<double>(Accumulate<T>(x.data<T>()[position])); });
  return value;
}

boost::test_tools::assertion_result is_marked(const Tensor& x, double usual, const Marks& marks) {
  boost::test_tools::assertion_result result(x.is_contiguous());
  if (!x.is_contiguous()) {
    result.message() << "strides " << str(x.strides());
    return result;
  }
  for (const auto& [position, value] : marks) {
    if (element(x, position) == value) continue;
    result = false;
    result.message() << "element " << position << " is " << element(x, position) << ", expected " << value << "; ";
  }
  // Elements with other bits than the usual value; the marks are those that may be different.
  std::atomic<int64_t> different{0}, first{x.numel()};
  visit_any(x.dtype(), [&]<class T>() {
    const T* data = x.data<T>();
    const T common = convert<T>(usual);
    constexpr int64_t kPart = 1 << 16;
    parallel_for((x.numel() + kPart - 1) / kPart, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        const int64_t from = part * kPart, to = std::min(x.numel(), from + kPart);
        for (int64_t i = from; i < to; ++i) {
          if (std::memcmp(data + i, &common, sizeof(T)) == 0) continue;
          ++different;
          int64_t known = first;
          while (marks.count(i) == 0 && i < known && !first.compare_exchange_weak(known, i)) {
          }
        }
      }
    });
  });
  int64_t expected = 0;
  for (const auto& [position, value] : marks) expected += value != usual;
  if (different == expected && first == x.numel()) return result;
  result = false;
  result.message() << different << " elements differ from " << usual << ", expected " << expected
                   << "; the first that is no mark is " << first;
  return result;
}

}  // namespace braid::large
