// Whether a file is being compiled for StrictBits (tensor/strict.h).
#pragma once

namespace braid::cpu {

#ifdef BRAID_STRICT
inline constexpr bool kStrict = true;
#else
inline constexpr bool kStrict = false;
#endif

}  // namespace braid::cpu
