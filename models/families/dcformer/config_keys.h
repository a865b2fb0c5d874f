// The keys of a configuration as settings: set_key(), config.json reading and writing, range checks and help are all
// made from this list.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "braid/models/families/compose_presets.h"
#include "braid/models/families/dcformer/config.h"
#include "braid/models/settings.h"

namespace braid::models {

// Settings that read and write `config`, which must outlive them. A name is the key of config.json; "profile.x" is the
// member x of its object "profile". The first is model_type.
std::vector<Setting> key_table(DcformerConfig& config);
// The same of a copy of `config`, to read. The tables are kept for the next ones.
class KeysOfCopy {
 public:
  explicit KeysOfCopy(const DcformerConfig& config);
  ~KeysOfCopy();
  KeysOfCopy(const KeysOfCopy&) = delete;
  KeysOfCopy& operator=(const KeysOfCopy&) = delete;
  const std::vector<Setting>& list() const;

 private:
  struct Copy;
  std::unique_ptr<Copy> copy_;
};
// set_key() of the configuration that the table is of.
void set_key(const std::vector<Setting>& table, const std::string& key, const std::string& value);
// Sets the keys of that row of model_types(), and the defaults of the keys of all other rows.
void set_family(DcformerConfig& config, const std::string& model_type);
// Sets what the named profile fixes; "custom" changes nothing.
void set_profile(DcformerConfig& config, const std::string& name);
// The setting `compose`: what each name fixes (models/families/compose_presets.h), and the name whose values hold. Like
// profile.name, the setting stands for others; folders do not hold it.
const std::vector<ComposePreset>& dcformer_compose_presets();
void set_compose(DcformerConfig& config, const std::string& name);
std::string compose_name(const DcformerConfig& config);

// A preset whose derived fields are 0, so that keys set afterwards (dim) take the others (head_dim) along.
DcformerConfig unresolved_preset(const std::string& name);

// A size that resolve() derives from other keys while it is unset.
struct DerivedKey {
  std::string name;
  std::vector<std::string> from;
  void (*unset)(DcformerConfig& config);
};
const std::vector<DerivedKey>& derived_keys();

}  // namespace braid::models
