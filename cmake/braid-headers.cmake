# The include folder of the build: <build>/include/braid/ holds links to the library's folders, and to the facade of each
# (nn/nn.h as braid/nn.h), so that headers have one path, "braid/nn/linear.h", in this tree and where Braid is installed.
set(BRAID_INCLUDE ${CMAKE_CURRENT_BINARY_DIR}/include)
file(MAKE_DIRECTORY ${BRAID_INCLUDE}/braid)
foreach(folder tensor autograd nn cuda distributed models)
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR}/${folder} ${BRAID_INCLUDE}/braid/${folder} SYMBOLIC)
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/${folder}.h)
    file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/${folder}.h ${BRAID_INCLUDE}/braid/${folder}.h SYMBOLIC)
  endif()
endforeach()
