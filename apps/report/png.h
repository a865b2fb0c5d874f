// Heat maps of many cells as PNG pictures with a palette: a byte a cell, on paper of any color.
#pragma once
#include <string>
#include <vector>

namespace braid::apps {

// values (rows, columns), a pixel each: blue for more than 0, orange for less, the stronger the larger
// sqrt(|value| / most) is; grey where the value is not finite.
std::string heat_png(const std::vector<double>& values, int rows, int columns, double most);

}  // namespace braid::apps
