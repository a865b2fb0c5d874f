# What may stand in no text file of the tree: paths that exist on one machine only, addresses of machines, and links to
# hosts outside the short list below.
# And words that have a plain name: GPU, message, sharded, processed, padding, max_. They stand in `banned` as regular
# expressions of a word or words; `excepted` has the files in which one of them means something else.
# Usage: cmake -DROOT=<tree> -P tests/lint/words.cmake
cmake_minimum_required(VERSION 3.25)
set(hosts www.w3.org www.apache.org arxiv.org github.com 127.0.0.1 localhost)
set(banned "[Dd]ealt out" "[Ww]orked off" "by heart" "general way" "composed way" "[Pp]arked" "hide_invisible"
  "kMost[A-Za-z]*" "slip of the pen" "[Ww]hoever" "[Cc]ards?" "[Ss]entences?" "[A-Za-z_]*[Rr]efus(e|es|ed|al|als|ing)[A-Za-z_]*" "[Ww]anted"
  "[Oo]urs" "[Tt]urned" "(in)?visible" "[Dd]evices? (speaks?|hears?|knows?)" "(//|#) (What|Whatever|Those) [A-Za-z]+")
set(excepted
  "tests/models/data/tasks/.*: .*entences.*"  # the texts of tasks consist of them
  "(configs/eval/winogrande.toml|tests/apps/eval/templates_test.cpp): .*entences.*"  # a field of the data set
  "models/data/tasks/words.cpp: .*visible"    # a word of a task
)
set(files "")
foreach(pattern *.md *.txt *.cmake *.h *.cpp *.cu *.cuh *.py *.toml *.json)
  file(GLOB top RELATIVE ${ROOT} ${ROOT}/${pattern})
  list(APPEND files ${top})
  foreach(folder tensor autograd nn cuda distributed models apps tests configs cmake)
    file(GLOB_RECURSE found RELATIVE ${ROOT} ${ROOT}/${folder}/${pattern})
    list(APPEND files ${found})
  endforeach()
endforeach()
file(GLOB scripts RELATIVE ${ROOT} ${ROOT}/scripts/* ${ROOT}/.ci/* ${ROOT}/.clang-*)
list(APPEND files ${scripts})
list(FILTER files EXCLUDE REGEX "^tests/lint/")  # this file, and trees that are wrong on purpose
if(SELF)  # the wrong tree itself
  file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/*)
endif()
set(wrong 0)
foreach(file ${files})
  file(STRINGS ${ROOT}/${file} lines
    REGEX "(^|[^A-Za-z0-9_.-])/(work|home|root)/|[.][.]/shared|://|(^|[^0-9.])(10|192[.]168)[.][0-9]+[.][0-9]+[.][0-9]+")
  foreach(line IN LISTS lines)
    if(line MATCHES "://" AND NOT line MATCHES "(^|[^A-Za-z0-9_.-])/(work|home|root)/|[.][.]/shared")
      string(REGEX REPLACE ".*://([A-Za-z0-9.-]*).*" "\\1" host "${line}")
      if(host STREQUAL "" OR host IN_LIST hosts)
        continue()
      endif()
    endif()
    message("${file}: ${line}")
    math(EXPR wrong "${wrong} + 1")
  endforeach()
endforeach()
string(REPLACE ";" "|" pattern "${banned}")
set(rejected 0)
foreach(file ${files})
  file(STRINGS ${ROOT}/${file} lines REGEX "(^|[^A-Za-z0-9_])(${pattern})([^A-Za-z0-9_]|$)")
  foreach(line IN LISTS lines)
    foreach(word ${banned})
      if(NOT line MATCHES "(^|[^A-Za-z0-9_])(${word})([^A-Za-z0-9_]|$)")
        continue()
      endif()
      set(fine OFF)
      foreach(exception ${excepted})
        if("${file}: ${word}" MATCHES "^${exception}$" OR "${file}: ${word}" STREQUAL "${exception}")
          set(fine ON)
        endif()
      endforeach()
      if(NOT fine)
        message("${file}: ${line}\n    '${word}' has a plain name, see tests/lint/words.cmake")
        math(EXPR rejected "${rejected} + 1")
      endif()
    endforeach()
  endforeach()
endforeach()
message("words: ${rejected} uses of banned words")
math(EXPR wrong "${wrong} + ${rejected}")
list(LENGTH files count)
message("words: ${count} files read, ${wrong} lines with a banned word, a machine, a path of one machine or a host not listed")
if(wrong OR count EQUAL 0)
  message(FATAL_ERROR "see tests/lint/words.cmake for the rules")
endif()
