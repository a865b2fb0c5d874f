// Reading and writing the small text files of a program (configuration, logs, pictures). Every failure throws with a message.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace braid::apps {

// The contents of the file. Error(input) if it is missing, a folder, unreadable or larger than `limit` bytes.
std::string read_text(const std::filesystem::path& file, int64_t limit = int64_t{1} << 30);
// Writes `file` completely or not at all (tensor/io/atomic_file.h) and creates missing folders. Error(output).
void write_text(const std::filesystem::path& file, std::string_view text);
// Writes all bytes to an open descriptor; `file` is only named in the message. Error(output).
void write_all(int descriptor, std::string_view text, const std::filesystem::path& file);
// Creates the folder and its parents. Error(setting) if something else bears the name, Error(output) otherwise.
void make_folder(const std::filesystem::path& folder);
// "No space left on device" for the current errno.
std::string system_message();

}  // namespace braid::apps
