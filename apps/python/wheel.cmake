# What a wheel holds beside the Python files: braid/_braid.*.so, braid/bin/braid, and braid/lib with the shared libraries
# that they need and that a bare system may lack. What the C++ compiler brings is linked into them. The search path is a
# DT_RPATH, which holds for libraries of these libraries too.
foreach(target braid_python braid_program)
  target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc LINKER:--as-needed
    LINKER:--disable-new-dtags LINKER:--strip-all)
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH_USE_LINK_PATH OFF)
endforeach()
set_target_properties(braid_python PROPERTIES INSTALL_RPATH "$ORIGIN/lib")
set_target_properties(braid_program PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
install(TARGETS braid_python LIBRARY DESTINATION braid COMPONENT python)
install(TARGETS braid_program RUNTIME DESTINATION braid/bin COMPONENT python)
install(FILES ${PROJECT_BINARY_DIR}/braid.spdx.json ${PROJECT_BINARY_DIR}/copyright DESTINATION braid COMPONENT python)
install(DIRECTORY ${package}/ DESTINATION braid COMPONENT python FILES_MATCHING PATTERN "*.pyi" PATTERN py.typed)
install(CODE "
  file(MAKE_DIRECTORY \"\${CMAKE_INSTALL_PREFIX}/braid/lib\")
  file(GET_RUNTIME_DEPENDENCIES MODULES \"$<TARGET_FILE:braid_python>\" EXECUTABLES \"$<TARGET_FILE:braid_program>\"
    RESOLVED_DEPENDENCIES_VAR libraries POST_EXCLUDE_REGEXES \"/(libc|libm|libdl|librt|libpthread|ld-linux[^/]*)[.]so[^/]*$\")
  foreach(library IN LISTS libraries)
    get_filename_component(name \"\${library}\" NAME)  # the one that the loader looks for
    file(REAL_PATH \"\${library}\" file)
    file(COPY_FILE \"\${file}\" \"\${CMAKE_INSTALL_PREFIX}/braid/lib/\${name}\")
    message(STATUS \"Installing: braid/lib/\${name}\")
    get_filename_component(name_of_file \"\${file}\" NAME)
    # Its licence, where Debian's package manager knows the file.
    execute_process(COMMAND dpkg -S \"*/\${name_of_file}\" OUTPUT_VARIABLE owner RESULT_VARIABLE unknown ERROR_QUIET)
    string(REGEX REPLACE \":.*\" \"\" owner \"\${owner}\")
    if(unknown)
      message(WARNING \"\${name}: its licence is not in the wheel, since dpkg does not know the file\")
    else()
      file(COPY_FILE /usr/share/doc/\${owner}/copyright \"\${CMAKE_INSTALL_PREFIX}/braid/lib/\${name}.copyright\")
    endif()
  endforeach()" COMPONENT python)
