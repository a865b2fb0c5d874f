// The thread sanitizer makes arithmetic some twenty times slower. A test that would take minutes under it takes its
// sizes here; the log then says that they are smaller.
#pragma once
#include <boost/test/unit_test.hpp>

namespace braid::test {

#if defined(__has_feature)
#define BRAID_HAS_FEATURE(x) __has_feature(x)
#else
#define BRAID_HAS_FEATURE(x) 0
#endif
#if defined(__SANITIZE_THREAD__) || BRAID_HAS_FEATURE(thread_sanitizer)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif
#if defined(__SANITIZE_ADDRESS__) || BRAID_HAS_FEATURE(address_sanitizer)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif
#undef BRAID_HAS_FEATURE

// `usual`, or under the thread sanitizer `less`.
template <class T>
T less_under_tsan(T usual, T less) {
  BOOST_WARN_MESSAGE(!kThreadSanitizer, "smaller under the thread sanitizer");
  return kThreadSanitizer ? less : usual;
}

}  // namespace braid::test
