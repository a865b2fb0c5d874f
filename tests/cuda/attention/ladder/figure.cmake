# figure.svg is what figure.cpp draws from the table in README.md.
execute_process(COMMAND ${FIGURE} ${FOLDER}/README.md ${MADE} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${MADE} ${FOLDER}/figure.svg RESULT_VARIABLE differs)
if(differs)
  message(FATAL_ERROR "${FOLDER}/figure.svg differs from what figure.cpp draws of README.md now: ${MADE}")
endif()
