# The optimizers, by their files nn/optim/rules/<name>.cpp: the one folder whose list of sources is read from the disk.
# A static library drops objects that nothing refers to, so the list that refers to all of them is written here.
file(GLOB BRAID_OPTIMIZERS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/nn/optim/rules/*.cpp)  # in the order of the names

# braid_optimizer_list(out sources...): writes the file `out`, which defines the list of registry.h.
function(braid_optimizer_list out)
  foreach(source ${ARGN})
    get_filename_component(name ${source} NAME_WE)
    string(APPEND declared "OptimizerRule ${name}_rule();  // ${name}.cpp\n")
    list(APPEND calls "${name}_rule()")
  endforeach()
  string(REPLACE ";" ", " calls "${calls}")
  file(CONFIGURE OUTPUT ${out} @ONLY CONTENT "// Made by cmake/braid-optimizers.cmake.
#include \"braid/nn/optim/registry.h\"

namespace braid::nn {

@declared@
std::vector<OptimizerRule> detail::built_in_optimizers() { return {@calls@}; }

}  // namespace braid::nn
")
endfunction()
