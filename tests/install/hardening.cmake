# The program as SECURITY.md describes it: full RELRO, stack protector, fortified C library.
# Usage: cmake -DPROGRAM=<file> -P tests/install/hardening.cmake
cmake_minimum_required(VERSION 3.25)
find_program(READELF NAMES readelf llvm-readelf REQUIRED)
execute_process(COMMAND ${READELF} -ldsW ${PROGRAM} OUTPUT_VARIABLE elf COMMAND_ERROR_IS_FATAL ANY)
set(missing "")
foreach(part "GNU_RELRO" "BIND_NOW|FLAGS_1[^\n]* NOW" "__stack_chk_fail" "_chk@")
  if(NOT elf MATCHES "${part}")
    list(APPEND missing "${part}")
  endif()
endforeach()
if(missing)
  message(FATAL_ERROR "${PROGRAM}: expected ${missing} in what readelf -ldsW prints")
endif()
