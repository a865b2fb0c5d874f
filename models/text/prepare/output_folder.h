// The target of `braid prepare`: built in a hidden folder beside it, swapped in at the end.
#pragma once
#include <string>

namespace braid::models::text {

class PreparedFolder {
 public:
  // Error(setting) when the target holds anything that is not prepared data; Error(output) when it cannot be made, or
  // another process is preparing the same target.
  explicit PreparedFolder(const std::string& target);
  ~PreparedFolder();  // without commit(): removes what was built
  PreparedFolder(const PreparedFolder&) = delete;
  PreparedFolder& operator=(const PreparedFolder&) = delete;

  std::string file(const std::string& name) const;
  const std::string& path() const { return building_; }  // where to build
  const std::string& target() const { return target_; }
  void commit();

 private:
  std::string target_, building_;
  int lock_ = -1;
};

}  // namespace braid::models::text
