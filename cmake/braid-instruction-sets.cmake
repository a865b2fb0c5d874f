# Which instruction sets kernels are compiled for: BRAID_KERNELS, all of them or those of this processor (host).
set(BRAID_X86 OFF)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(BRAID_X86 ON)
endif()
if(NOT BRAID_KERNELS MATCHES "^(all|host)$")
  message(FATAL_ERROR "bad BRAID_KERNELS: expected all or host, found '${BRAID_KERNELS}'")
endif()
# Registers of GCC's own AVX-512 header look undefined to it.
set(BRAID_OWN_HEADER "$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-uninitialized>")

# The macros that the compiler defines for a set which this processor has.
set(braid_macros_avx2 AVX2 FMA F16C)
set(braid_macros_avx_vnni AVX2 F16C AVXVNNI)
set(braid_macros_avx512 AVX2 FMA F16C AVX512F AVX512BW AVX512DQ AVX512VL)
set(braid_macros_avx512_bf16 ${braid_macros_avx512} AVX512BF16)
set(braid_macros_amx ${braid_macros_avx512_bf16} AMX_TILE AMX_BF16)
set(braid_macros_strict_avx2 ${braid_macros_avx2})
set(braid_macros_strict_avx512 ${braid_macros_avx512})
set(braid_macros_avx512_vnni ${braid_macros_avx512} AVX512VNNI)
if(BRAID_X86 AND BRAID_KERNELS STREQUAL "host")
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -march=native -dM -E -x c++ /dev/null OUTPUT_VARIABLE braid_host
    COMMAND_ERROR_IS_FATAL ANY)
endif()

# braid_first_set(out sets...): the first that this processor has; the last needs nothing.
function(braid_first_set out)
  list(POP_BACK ARGN last)
  foreach(set ${ARGN})
    set(has ${BRAID_X86})
    foreach(macro ${braid_macros_${set}})
      if(NOT braid_host MATCHES "#define __${macro}__ 1")
        set(has OFF)
      endif()
    endforeach()
    if(has)
      set(${out} ${set} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${out} ${last} PARENT_SCOPE)
endfunction()

# braid_variants(folder sets... [OPTIONS option] [REPLACE set variable]): <folder>/<set>.cpp as a part of braid, with the
# options ${<set>}. BRAID_<NAME OF THE FOLDER>_<SET> tells the folder's variants.cpp which ones there are.
function(braid_variants folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "OPTIONS" "REPLACE")
  set(sets ${arg_UNPARSED_ARGUMENTS})
  if(NOT BRAID_X86)
    list(GET sets -1 sets)
  elseif(BRAID_KERNELS STREQUAL "host")
    braid_first_set(sets ${sets})
  endif()
  list(REMOVE_ITEM sets none)
  get_filename_component(name ${folder} NAME)
  foreach(set ${sets})
    set(options ${${set}})
    if(set IN_LIST arg_REPLACE)
      list(GET arg_REPLACE 1 other)
      set(options ${${other}})
    endif()
    target_sources(braid PRIVATE ${folder}/${set}.cpp)
    set_source_files_properties(${folder}/${set}.cpp TARGET_DIRECTORY braid PROPERTIES
      SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS "${arg_OPTIONS};${options};${BRAID_UNHARDENED};${BRAID_OWN_HEADER}")
    string(TOUPPER "${name}_${set}" macro)
    target_compile_definitions(braid PRIVATE BRAID_${macro})
  endforeach()
endfunction()

# braid_instruction_set(name options files...): the files once more, compiled with the options, as a part of braid. They see
# BRAID_INSTRUCTION_SET=<name>; what they export is braid::cpu::<name>::kernels() (tensor/cpu/backend.cpp) and
# products() (tensor/cpu/gemm/gemm.cpp).
#
# An inline function of a header has one name in every object. The linker keeps any one of them, and were that the one
# with AVX-512, an older processor would stop at it. So the objects become one object whose only exported symbols are
# the tables of its kernels: inside, calls go to its own functions, which no other object can take.
set(BRAID_LD ${CMAKE_LINKER})
if(BRAID_LD MATCHES "lld|gold|mold")  # which do not know --force-group-allocation
  find_program(BRAID_BFD_LD NAMES ld.bfd)
  set(BRAID_LD ${BRAID_BFD_LD})
endif()
if(NOT BRAID_LD OR NOT CMAKE_OBJCOPY)
  message(FATAL_ERROR "ld or objcopy of GNU binutils was not found, which keep the kernels of instruction sets apart: "
    "install binutils, or give -DBRAID_BFD_LD=... and -DCMAKE_OBJCOPY=...")
endif()

function(braid_instruction_set name options)
  set(objects braid_kernels_${name})
  set(linked ${CMAKE_CURRENT_BINARY_DIR}/kernels_${name}.o)
  add_library(${objects} OBJECT ${ARGN})
  set_target_properties(${objects} PROPERTIES INTERPROCEDURAL_OPTIMIZATION OFF)  # ld and objcopy need machine code
  target_compile_features(${objects} PRIVATE cxx_std_20)
  target_link_libraries(${objects} PRIVATE braid_flags $<TARGET_NAME_IF_EXISTS:braid::dnnl>)
  target_include_directories(${objects} PRIVATE $<TARGET_PROPERTY:braid,INCLUDE_DIRECTORIES>)
  target_compile_definitions(${objects} PRIVATE $<TARGET_PROPERTY:braid,COMPILE_DEFINITIONS>
    BRAID_INSTRUCTION_SET=${name})
  # Data of inline functions too must be the object's own: tables of them hold functions.
  target_compile_options(${objects} PRIVATE ${options} $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>
    $<$<BOOL:$<FILTER:${CMAKE_CXX_FLAGS},INCLUDE,-flto>>:-fno-lto>)
  string(LENGTH ${name} length)
  add_custom_command(OUTPUT ${linked}
    # Without groups: of two groups of one name the linker drops one, and this object needs its own.
    COMMAND ${BRAID_LD} -r --force-group-allocation -o ${linked}.all $<TARGET_OBJECTS:${objects}>
    COMMAND ${CMAKE_OBJCOPY} --keep-global-symbol=_ZN5braid3cpu${length}${name}7kernelsEv
      --keep-global-symbol=_ZN5braid3cpu${length}${name}8productsEv ${linked}.all ${linked}
    COMMAND ${CMAKE_COMMAND} -E rm ${linked}.all
    DEPENDS ${objects} $<TARGET_OBJECTS:${objects}> COMMENT "Linking kernels for ${name}" COMMAND_EXPAND_LISTS VERBATIM)
  add_custom_target(${objects}_linked DEPENDS ${linked})  # a command belongs to a folder, and braid to another
  add_dependencies(braid ${objects}_linked)
  target_sources(braid PRIVATE ${linked})
  set_source_files_properties(${linked} TARGET_DIRECTORY braid PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
endfunction()
