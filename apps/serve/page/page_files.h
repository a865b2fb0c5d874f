// The page for browsers: the files of apps/serve/page, held by the program.
#pragma once
#include <span>
#include <string_view>

namespace braid::apps::serve {

struct PageFile {
  const char* path;  // of the route: "/" or "/page/NAME"
  const char* type;
  std::string_view contents;
};
// Made by cmake/braid-page.cmake.
std::span<const PageFile> page_files();
// nullptr: no such file.
const PageFile* find_page_file(std::string_view path);

}  // namespace braid::apps::serve
