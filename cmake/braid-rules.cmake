# Optimizers, attention variants and connections over depth, by their files nn/optim/rules/<name>.cpp,
# nn/attention/variants/<name>.cpp and nn/transformer/depth/<name>.cpp: the folders whose lists of sources are read from
# the disk, in the order of the names. A static library drops objects that
# nothing refers to, so the list that refers to all of them is written here.
file(GLOB BRAID_OPTIMIZERS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/nn/optim/rules/*.cpp)
file(GLOB BRAID_ATTENTION_VARIANTS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/nn/attention/variants/*.cpp)
file(GLOB BRAID_DEPTH_RULES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/nn/transformer/depth/*.cpp)

# Writes the file `out`, which defines `list` of the header: the results of <name>_<suffix>(), of type `type`.
function(braid_rule_list out header type suffix list)
  foreach(source ${ARGN})
    get_filename_component(name ${source} NAME_WE)
    string(APPEND declared "${type} ${name}_${suffix}();  // ${name}.cpp\n")
    list(APPEND calls "${name}_${suffix}()")
  endforeach()
  string(REPLACE ";" ", " calls "${calls}")
  file(CONFIGURE OUTPUT ${out} @ONLY CONTENT "// Made by cmake/braid-rules.cmake.
#include \"braid/@header@\"

namespace braid::nn {

@declared@
std::vector<@type@> detail::@list@() { return {@calls@}; }

}  // namespace braid::nn
")
endfunction()
macro(braid_optimizer_list out)
  braid_rule_list(${out} nn/optim/registry.h OptimizerRule rule built_in_optimizers ${ARGN})
endmacro()
macro(braid_attention_variant_list out)
  braid_rule_list(${out} nn/attention/variant.h AttentionVariantRule variant built_in_attention_variants ${ARGN})
endmacro()
macro(braid_depth_rule_list out)
  braid_rule_list(${out} nn/transformer/depth.h DepthRule depth built_in_depth_rules ${ARGN})
endmacro()
