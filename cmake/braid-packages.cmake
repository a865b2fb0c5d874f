# A .deb and a relocatable .tar.zst: cmake --workflow --preset package (packaging/README.md). Both hold what an
# installation has.
include(cmake/braid-linked.cmake)
if(BRAID_APPS AND NOT CMAKE_CROSSCOMPILING)  # completions and manual pages, which the program writes
  install(CODE "execute_process(COMMAND $<TARGET_FILE:braid_program> --shell-files
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}\" COMMAND_ERROR_IS_FATAL ANY)")
endif()
set(CPACK_GENERATOR DEB TZST)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR})
set(CPACK_PACKAGE_NAME braid)
if(NOT CPACK_PACKAGE_CONTACT)
  set(CPACK_PACKAGE_CONTACT "The maintainers of Braid")
endif()
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "train, run and read DCFormers and Transformers")
set(CPACK_PACKAGE_DESCRIPTION "The program braid, the C++20 library that it is made of, and its manual pages.")
set(CPACK_PACKAGE_FILE_NAME braid-${PROJECT_VERSION}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # Depends: what the program is linked with
# What a program with the library needs, and chapter 11 of the course; scripts/course prints the installed list.
list(PREPEND BRAID_DEV_PACKAGES g++ cmake make libboost-context-dev)
list(JOIN BRAID_DEV_PACKAGES ", " CPACK_DEBIAN_PACKAGE_SUGGESTS)
list(JOIN BRAID_DEV_PACKAGES " " packages)
file(WRITE ${PROJECT_BINARY_DIR}/packages "${packages}\n")
install(FILES ${PROJECT_BINARY_DIR}/packages DESTINATION ${CMAKE_INSTALL_DATADIR}/braid)
include(CPack)
