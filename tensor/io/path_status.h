// What is at a path and what a folder holds. Nothing is there only when the system says so (ENOENT, ENOTDIR); every
// other failure is a SystemError, so that a file which cannot be looked up for a moment is not taken for a missing one.
#pragma once
#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "braid/tensor/io/file_system.h"

namespace braid::io {

// kind, everywhere: of the SystemError; output where the caller writes.

// None: nothing is there, or a link to nothing. Symbolic links are followed.
std::optional<struct stat> path_status(const std::filesystem::path& path, ErrorKind kind = ErrorKind::input);
bool exists(const std::filesystem::path& path, ErrorKind kind = ErrorKind::input);
bool is_file(const std::filesystem::path& path, ErrorKind kind = ErrorKind::input);  // a regular one
bool is_folder(const std::filesystem::path& path, ErrorKind kind = ErrorKind::input);
bool is_link(const std::filesystem::path& path, ErrorKind kind = ErrorKind::input);
// Both paths lead to one file or folder.
bool is_same(const std::filesystem::path& a, const std::filesystem::path& b, ErrorKind kind = ErrorKind::input);
// Absolute and without links, as far as the path exists. Error(kind) where `..` follows what is no folder.
std::filesystem::path real_path(const std::filesystem::path& path, ErrorKind kind = ErrorKind::input);

// What the folder holds, sorted by name; empty when there is no such folder.
std::vector<std::filesystem::path> list_folder(const std::filesystem::path& folder, ErrorKind kind = ErrorKind::input);
// The regular files below the folder, sorted; links to folders are not entered.
std::vector<std::filesystem::path> files_below(const std::filesystem::path& folder, ErrorKind kind = ErrorKind::input);

}  // namespace braid::io
