# What the library is linked with, for our own build and for whoever uses the installed library.
# Threads::Threads, ZLIB::ZLIB, braid::zstd, braid::dnnl unless BRAID_DNNL is OFF or oneDNN is not there, braid::mpi
# unless BRAID_MPI is OFF or MPI is not there, braid::nccl unless BRAID_NCCL is OFF or the CUDA toolkit or NCCL is not
# there, and braid::cudnn unless BRAID_CUDNN or BRAID_CUDA is OFF or the CUDA toolkit or cuDNN is not there.
# zstd has no CMake package on Debian, and that of oneDNN also wants OpenCL, which we do not use: both are looked for
# directly.
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_library(BRAID_ZSTD zstd REQUIRED)
if(NOT TARGET braid::zstd)
  add_library(braid::zstd UNKNOWN IMPORTED GLOBAL)
  set_target_properties(braid::zstd PROPERTIES IMPORTED_LOCATION ${BRAID_ZSTD})
endif()
if(NOT BRAID_DNNL STREQUAL "OFF" AND NOT TARGET braid::dnnl)
  find_path(BRAID_DNNL_INCLUDE dnnl.h)
  find_library(BRAID_DNNL_LIBRARY dnnl)
  if(BRAID_DNNL_INCLUDE AND BRAID_DNNL_LIBRARY)
    add_library(braid::dnnl UNKNOWN IMPORTED GLOBAL)
    set_target_properties(braid::dnnl PROPERTIES IMPORTED_LOCATION ${BRAID_DNNL_LIBRARY}
      INTERFACE_INCLUDE_DIRECTORIES ${BRAID_DNNL_INCLUDE})
  elseif(BRAID_DNNL STREQUAL "ON")
    message(FATAL_ERROR "oneDNN was not found: install libdnnl-dev, or build Braid with -DBRAID_DNNL=OFF")
  endif()
endif()
if(NOT BRAID_MPI STREQUAL "OFF" AND NOT TARGET braid::mpi)
  enable_language(C)  # FindMPI tries what it found with the C compiler; only the C interface is used
  find_package(MPI QUIET COMPONENTS C)
  if(MPI_C_FOUND)
    add_library(braid::mpi INTERFACE IMPORTED GLOBAL)
    target_link_libraries(braid::mpi INTERFACE MPI::MPI_C)
  elseif(BRAID_MPI STREQUAL "ON")
    message(FATAL_ERROR "MPI was not found: install libopenmpi-dev and openmpi-bin, or build with -DBRAID_MPI=OFF")
  endif()
endif()
if(NOT BRAID_NCCL STREQUAL "OFF" AND NOT TARGET braid::nccl)
  find_package(CUDAToolkit QUIET)
  # NCCL has no CMake package; it comes beside the toolkit or among the system's libraries.
  find_path(BRAID_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} /usr/local/cuda/include)
  find_library(BRAID_NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT}/lib
    /usr/local/cuda/lib64 /usr/local/cuda/lib)
  if(CUDAToolkit_FOUND AND BRAID_NCCL_INCLUDE AND BRAID_NCCL_LIBRARY)
    add_library(braid::nccl INTERFACE IMPORTED GLOBAL)
    target_include_directories(braid::nccl SYSTEM INTERFACE ${BRAID_NCCL_INCLUDE} ${CUDAToolkit_INCLUDE_DIRS})
    target_link_libraries(braid::nccl INTERFACE ${BRAID_NCCL_LIBRARY} CUDA::cudart)
  elseif(BRAID_NCCL STREQUAL "ON")
    message(FATAL_ERROR "NCCL or the CUDA toolkit was not found: install both, or build with -DBRAID_NCCL=OFF")
  endif()
endif()
if(NOT BRAID_CUDNN STREQUAL "OFF" AND NOT BRAID_CUDA STREQUAL "OFF" AND NOT TARGET braid::cudnn)
  find_package(CUDAToolkit QUIET)
  # Like NCCL; cudnn_graph.h is there since cuDNN 9.
  find_path(BRAID_CUDNN_INCLUDE cudnn_graph.h HINTS ${CUDAToolkit_INCLUDE_DIRS} /usr/local/cuda/include)
  find_library(BRAID_CUDNN_LIBRARY cudnn HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT}/lib
    /usr/local/cuda/lib64 /usr/local/cuda/lib)
  if(CUDAToolkit_FOUND AND BRAID_CUDNN_INCLUDE AND BRAID_CUDNN_LIBRARY)
    add_library(braid::cudnn INTERFACE IMPORTED GLOBAL)
    target_include_directories(braid::cudnn SYSTEM INTERFACE ${BRAID_CUDNN_INCLUDE} ${CUDAToolkit_INCLUDE_DIRS})
    target_link_libraries(braid::cudnn INTERFACE ${BRAID_CUDNN_LIBRARY} CUDA::cudart)
  elseif(BRAID_CUDNN STREQUAL "ON")
    message(FATAL_ERROR "cuDNN 9 or the CUDA toolkit was not found: install both, or build with -DBRAID_CUDNN=OFF")
  elseif(CUDAToolkit_FOUND)
    message(STATUS "no cuDNN 9: attention that mixes no heads takes Braid's own kernels on the card")
  endif()
endif()
