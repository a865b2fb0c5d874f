// The files of apps/analyze/page, held by the program.
#pragma once
#include <string_view>

namespace braid::apps::analyze {

// By the file's name; made by apps/CMakeLists.txt.
std::string_view page_part(std::string_view name);

}  // namespace braid::apps::analyze
