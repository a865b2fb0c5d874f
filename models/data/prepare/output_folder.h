// The target of `braid prepare`: built in a hidden folder beside it, swapped in at the end.
#pragma once
#include <string>
#include <vector>

namespace braid::models::text {

// Where the folder of this target is built.
std::string building_folder(const std::string& target);

class PreparedFolder {
 public:
  // Error(setting) when the target holds anything that is not prepared data; Error(output) when it cannot be made, or
  // another process is preparing the same target.
  // Removes the leftovers of a process that was killed; with `keep_leftovers` they stay, until keep() decides.
  explicit PreparedFolder(const std::string& target, bool keep_leftovers = false);
  ~PreparedFolder();  // without commit() or what is kept: removes what was built
  PreparedFolder(const PreparedFolder&) = delete;
  PreparedFolder& operator=(const PreparedFolder&) = delete;

  std::string file(const std::string& name) const;
  const std::string& path() const { return building_; }  // where to build
  const std::string& target() const { return target_; }
  void bring_back(const std::string& prefix) const;                  // renames every file "prefixNAME" to NAME
  void remove_all_but(const std::vector<std::string>& names) const;  // Error(output) names what cannot be removed
  void keep(bool kept) { kept_ = kept; }                             // for another process to resume
  void commit();                                                     // path() is then empty

 private:
  std::string target_, building_;
  int lock_ = -1;
  bool kept_ = false;
};

}  // namespace braid::models::text
