# Writes OUT, the one source file that holds the commit of SOURCE. Run at every build; the file changes, and is compiled,
# only when the commit has changed. Usage: cmake -DSOURCE=<tree> -DOUT=<file> -P cmake/braid-commit.cmake
set(commit unknown)
find_program(GIT git)
if(GIT)
  execute_process(COMMAND ${GIT} -C ${SOURCE} rev-parse --show-toplevel OUTPUT_VARIABLE top ERROR_QUIET
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  file(REAL_PATH ${SOURCE} source)
  if(top STREQUAL source)  # not the repository of a tree that this one was copied into
    execute_process(COMMAND ${GIT} -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
      OUTPUT_VARIABLE described ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(described)
      set(commit ${described})
    endif()
  endif()
endif()
set(text "// Made by cmake/braid-commit.cmake.
#include \"apps/cli/version.h\"

namespace braid::apps {

const char* build_commit() { return \"${commit}\"; }

}  // namespace braid::apps
")
set(before "")
if(EXISTS ${OUT})
  file(READ ${OUT} before)
endif()
if(NOT before STREQUAL text)
  file(WRITE ${OUT} "${text}")
endif()
