# Headers have one path in this tree and where Braid is installed: include/braid/ holds the facades, <braid/nn.h>, and a
# link to each folder of the library, "braid/nn/layers/linear.h".
include(cmake/public-headers.cmake)
set(BRAID_INCLUDE ${CMAKE_CURRENT_SOURCE_DIR}/include)
foreach(header ${BRAID_PUBLIC_HEADERS})
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/braid/${folder})
endforeach()
foreach(facade ${BRAID_FACADES})
  install(FILES include/braid/${facade}.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/braid)
endforeach()
