#include "apps/serve/page/page_files.h"

namespace braid::apps::serve {

const PageFile* find_page_file(std::string_view path) {
  if (path == "/favicon.ico") path = "/page/icon.svg";  // which browsers ask for beside any answer
  for (const PageFile& file : page_files())
    if (path == file.path) return &file;
  return nullptr;
}

}  // namespace braid::apps::serve
