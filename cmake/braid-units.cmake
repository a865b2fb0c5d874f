# braid_units(target files...): sources of a target, compiled several at a time (CMake's unity builds): reading headers is
# more than half of what a file costs. The files of one unit lie in one folder, so helpers in their anonymous namespaces
# need names of their own. -DBRAID_UNIT=1 compiles each file by itself: for work on one file.
set(BRAID_UNIT 8 CACHE STRING "Files of a folder that are compiled as one, at most")

# Sources of which a recipe (tests/recipes) builds a changed copy: objects of their own, which the copy takes the place of.
set(BRAID_ALONE autograd/ops/pointwise.cpp distributed/parallel/mappings.cpp models/data/prepare/byte_stream.cpp
  models/data/tokenizers/load.cpp models/families/dcformer/model_types.cpp nn/attention/attention.cpp
  tests/support/op_rows_pointwise.cpp)

function(braid_units target)
  target_sources(${target} PRIVATE ${ARGN})
  if(BRAID_UNIT LESS 2)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  file(RELATIVE_PATH here ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  set(folders "")
  foreach(file ${ARGN})
    get_filename_component(folder ${file} DIRECTORY)
    if(NOT "${here}/${file}" IN_LIST BRAID_ALONE)
      list(APPEND folders "${folder}")
      list(APPEND files_${folder} ${file})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder IN LISTS folders)
    # As few units as the maximum allows, of equal size.
    list(LENGTH files_${folder} count)
    math(EXPR units "(${count} + ${BRAID_UNIT} - 1) / ${BRAID_UNIT}")
    math(EXPR size "(${count} + ${units} - 1) / ${units}")
    string(MAKE_C_IDENTIFIER "${here}/${folder}" name)
    set(index 0)
    foreach(file ${files_${folder}})
      math(EXPR unit "${index} / ${size}")
      set_source_files_properties(${file} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${name}_${unit})
      math(EXPR index "${index} + 1")
    endforeach()
  endforeach()
endfunction()

# For code in which nothing is computed for long. GCC 12 takes an empty std::optional for a mistake there.
add_library(braid_host_flags INTERFACE)
target_compile_options(braid_host_flags INTERFACE $<$<CONFIG:Release>:-O1>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)

# Headers that most sources of a target read: with BRAID_PCH read once. Files with options of their own leave them out.
set(BRAID_COMMON_HEADERS <algorithm> <cmath> <filesystem> <functional> <map> <memory> <optional> <string> <vector>
  "${BRAID_INCLUDE}/braid/autograd/ops.h")
set(BRAID_MODEL_HEADERS ${BRAID_COMMON_HEADERS} "${BRAID_INCLUDE}/braid/models/model_spec.h" <nlohmann/json.hpp>)
function(braid_precompile target)  # and the headers
  if(BRAID_PCH)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()

# braid_host_units(name files...): the same for a part of braid, with these flags.
function(braid_host_units name)
  add_library(${name} OBJECT)
  braid_units(${name} ${ARGN})
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_include_directories(${name} PRIVATE $<TARGET_PROPERTY:braid,INCLUDE_DIRECTORIES>)
  target_compile_definitions(${name} PRIVATE $<TARGET_PROPERTY:braid,COMPILE_DEFINITIONS>)
  target_link_libraries(${name} PRIVATE braid_flags braid_host_flags braid_hardening)
  braid_precompile(${name} ${BRAID_MODEL_HEADERS})
  target_sources(braid PRIVATE $<TARGET_OBJECTS:${name}>)
endfunction()
