# The chapters in their order, and the programs of one: example, figure and the checks of a student's file.
get_filename_component(COURSE_ROOT ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
set(COURSE_CHAPTERS
  01_tensor
  02_reverse_mode
  03_engine
  04_kernel
  05_training
  06_tokens
  07_attention
  08_compose
  09_heads
  10_memory
  11_cuda
  12_processes
  13_safe_run
  14_claim
)

# Chapter 11 runs kernels on the emulated GPU of Braid's tests, built here from its sources: those that lie beside an
# installed Braid, else those of the tree. Where they or Boost.Context are missing, its programs only say so.
set(from "")
foreach(folder ${braid_DIR}/../../../share/braid/emulator ${braid_DIR}/../../../../share/braid/emulator ${COURSE_ROOT})
  if(NOT from AND EXISTS ${folder}/tests/cuda/emulation/engine.cpp)
    set(from ${folder})
  endif()
endforeach()
find_package(Boost 1.74 QUIET OPTIONAL_COMPONENTS context)
if(from AND TARGET Boost::context)
  add_library(course_emulator STATIC EXCLUDE_FROM_ALL ${COURSE_ROOT}/course/11_cuda/emulator.cpp)
  foreach(source engine fibers memory)
    target_sources(course_emulator PRIVATE ${from}/tests/cuda/emulation/${source}.cpp)
  endforeach()
  target_link_libraries(course_emulator PUBLIC braid::braid Boost::context)
  target_include_directories(course_emulator SYSTEM PUBLIC ${from} ${from}/include)
  # (current_stream: a Braid with CUDA has one of its own)
  target_compile_definitions(course_emulator PUBLIC BRAID_EMULATION="tests/cuda/emulation/emulate.h"
    current_stream=emulated_stream)
  target_compile_options(course_emulator PUBLIC -fno-strict-aliasing -Wno-unknown-pragmas)
else()
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/no_emulator.cpp "#include <cstdio>\nint main() {\n  std::puts(\"chapter 11 "
    "needs Boost.Context (libboost-context-dev) and share/braid/emulator of an installed Braid\");\n  return 3;\n}\n")
endif()

function(course_program name source)
  set(emulator "")
  if(source MATCHES "/11_cuda/")
    if(TARGET course_emulator)
      set(emulator course_emulator)
    else()
      set(source ${CMAKE_CURRENT_BINARY_DIR}/no_emulator.cpp)
    endif()
  endif()
  add_executable(${name} EXCLUDE_FROM_ALL ${source})
  target_link_libraries(${name} PRIVATE braid::braid ${emulator})
  target_include_directories(${name} PRIVATE ${COURSE_ROOT})  # "course/checks.h"
  target_compile_definitions(${name} PRIVATE _GLIBCXX_ASSERTIONS)  # an index outside of its vector ends the program
endfunction()

# check_<chapter><suffix> with the checks of an exercise.h.
function(course_checks chapter exercise suffix)
  course_program(check_${chapter}${suffix} ${COURSE_ROOT}/course/${chapter}/check.cpp)
  target_compile_definitions(check_${chapter}${suffix} PRIVATE EXERCISE="${exercise}")
endfunction()

# example_<chapter>, figure_<chapter> and more figures, and with the exercises in <exercises>/NN_.../exercise.h
# check_<chapter> and milestone_<chapter>, which trains with them.
function(course_chapter chapter exercises)
  file(GLOB sources CONFIGURE_DEPENDS ${COURSE_ROOT}/course/${chapter}/example.cpp
    ${COURSE_ROOT}/course/${chapter}/figure*.cpp ${COURSE_ROOT}/course/${chapter}/milestone.cpp)
  foreach(source ${sources})
    get_filename_component(program ${source} NAME_WE)
    course_program(${program}_${chapter} ${source})
    target_include_directories(${program}_${chapter} PRIVATE ${exercises})  # "NN_name/exercise.h"
  endforeach()
  course_checks(${chapter} ${exercises}/${chapter}/exercise.h "")
endfunction()
