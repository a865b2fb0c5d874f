# An overlay port of the library: vcpkg install braid --overlay-ports=packaging/vcpkg. It builds the sources around it.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}" OPTIONS
  -DBRAID_APPS=OFF -DBRAID_TESTS=OFF -DBRAID_MPI=OFF -DBRAID_CUDA=OFF -DBRAID_DNNL=OFF -DBRAID_LAPACK=OFF
  -DBRAID_PNG=OFF -DBRAID_JPEG=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/braid)
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
