// Division upwards.
#pragma once

namespace braid::detail {

constexpr auto ceil_div(auto n, auto divisor) { return (n + divisor - 1) / divisor; }
constexpr auto round_up(auto n, auto multiple) { return ceil_div(n, multiple) * multiple; }

}  // namespace braid::detail
