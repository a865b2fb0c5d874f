// A model folder in memory, as braid.load() gives it.
#pragma once
#include <array>
#include <filesystem>
#include <map>
#include <memory>

#include "apps/cli/text_model.h"
#include "apps/python/bindings.h"
#include "braid/models.h"

namespace braid::python {

// Device, inode, size and time of the last write: a file of the same stamp still has the same bytes.
using FileStamp = std::array<int64_t, 5>;

struct LoadedModel {
  std::string folder;
  std::shared_ptr<models::Model> model;
  std::shared_ptr<models::text::Tokenizer> tokenizer;  // null: the folder has none
  std::vector<int32_t> ends;                           // tokens that end a text
  std::vector<std::string> notes;
  std::map<std::filesystem::path, FileStamp> saved;  // files of weights that save() put there

  // Error(misuse) for a model of another kind.
  template <class Kind>
  Kind& as(const char* expected) const {
    auto* kind = dynamic_cast<Kind*>(model.get());
    check(kind != nullptr, ErrorKind::misuse, [&] {
      return str(folder, ": expected ", expected, ", found a model of type ", model->spec()->model_type());
    });
    return *kind;
  }
  models::LanguageModel& language() const { return as<models::LanguageModel>("a language model"); }
  const models::text::Tokenizer& text() const {
    apps::check_tokenizer(tokenizer.get(), folder, "give tokenizer=FOLDER to load()");
    return *tokenizer;
  }
};

// The text of these bytes, with U+FFFD for those that are no UTF-8, such as a part of a character.
inline nb::str text_of(const std::string& bytes) {
  return nb::steal<nb::str>(PyUnicode_DecodeUTF8(bytes.data(), std::ssize(bytes), "replace"));
}

// By its kind, since the classes of the families have no name in Python.
nb::object module_of(std::shared_ptr<models::Model> model);

void bind_networks(nb::module_& m, nb::module_& layers);
void bind_generation(nb::module_& m, nb::class_<LoadedModel>& c);

}  // namespace braid::python
