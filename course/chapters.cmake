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
  12_processes
  13_safe_run
  14_claim
)

function(course_program name source)
  add_executable(${name} EXCLUDE_FROM_ALL ${source})
  target_link_libraries(${name} PRIVATE braid::braid)
  target_include_directories(${name} PRIVATE ${COURSE_ROOT})  # "course/checks.h"
endfunction()

# check_<chapter><suffix> with the checks of an exercise.h.
function(course_checks chapter exercise suffix)
  course_program(check_${chapter}${suffix} ${COURSE_ROOT}/course/${chapter}/check.cpp)
  target_compile_definitions(check_${chapter}${suffix} PRIVATE EXERCISE="${exercise}")
endfunction()

# example_<chapter>, figure_<chapter>, and with the exercises in <exercises>/NN_.../exercise.h check_<chapter> and
# milestone_<chapter>, which trains with them.
function(course_chapter chapter exercises)
  foreach(program example figure milestone)
    if(EXISTS ${COURSE_ROOT}/course/${chapter}/${program}.cpp)
      course_program(${program}_${chapter} ${COURSE_ROOT}/course/${chapter}/${program}.cpp)
      if(program STREQUAL "milestone")
        target_include_directories(milestone_${chapter} PRIVATE ${exercises})
      endif()
    endif()
  endforeach()
  course_checks(${chapter} ${exercises}/${chapter}/exercise.h "")
endfunction()
