# Configures the presets that scripts/test does not build: what an option of theirs breaks should not wait for the day
# on which somebody looks for a race or a write past an end.
# Usage: cmake -DPRESETS=asan;tsan -DSOURCE=folder -DWORK=folder -P presets.cmake
cmake_minimum_required(VERSION 3.25)
foreach(preset ${PRESETS})
  file(REMOVE_RECURSE ${WORK}/${preset})
  execute_process(COMMAND ${CMAKE_COMMAND} --preset ${preset} -B ${WORK}/${preset} WORKING_DIRECTORY ${SOURCE}
    RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  file(REMOVE_RECURSE ${WORK}/${preset})
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "cmake --preset ${preset}: expected exit code 0, found ${code}\n${output}")
  endif()
  message(STATUS "configured preset ${preset}")
endforeach()
