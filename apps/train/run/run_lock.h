// The folder of one run, locked: one process writes into it at a time.
#pragma once
#include <filesystem>

namespace braid::apps {

class RunFolder {
 public:
  // Creates the folder if it is missing and locks it until this object dies or the process ends, however it ends. Then
  // removes the temporary files that a killed run left beside its small files.
  // Error(setting) when another process holds it (its pid is named) or a file bears the name; Error(output) otherwise.
  explicit RunFolder(const std::filesystem::path& path);
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  ~RunFolder();

  const std::filesystem::path& path() const { return path_; }
  // Error(output) when the folder of this name is not the locked one any more: it was removed or moved away, and
  // another run may write where it was. io::SystemError when the system does not say.
  void check_held() const;

 private:
  std::filesystem::path path_;
  int lock_ = -1;
};

}  // namespace braid::apps
