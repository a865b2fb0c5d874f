# The libraries that Braid links, for its own build and for users of the installed library: Threads::Threads, ZLIB::ZLIB,
# braid::zstd, braid::pcre2 and braid::utf8proc always; braid::dnnl (oneDNN), braid::lapack, braid::png, braid::jpeg,
# braid::mpi, braid::nccl, braid::cudnn and braid::cusolver where they are found and BRAID_DNNL, BRAID_LAPACK, BRAID_PNG,
# BRAID_JPEG, BRAID_MPI, BRAID_NCCL, BRAID_CUDNN, BRAID_CUSOLVER (AUTO, ON, OFF) do not say OFF. NCCL, cuDNN and
# cuSOLVER belong to the CUDA device: BRAID_CUDA=OFF leaves them out.
# zstd, PCRE2, utf8proc, NCCL and cuDNN have no CMake package everywhere, and the package of oneDNN requires OpenCL, which
# is not used: all of them are searched for directly.
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)

# braid_find(name HEADER library advice [CUDA]): the target braid::<name>, unless the option BRAID_<NAME> is OFF or the
# header or the library is missing.
# CUDA: searched for beside the CUDA toolkit, which it needs.
function(braid_find name header library advice)
  string(TOUPPER ${name} NAME)
  if(TARGET braid::${name} OR "${BRAID_${NAME}}" STREQUAL "OFF" OR (ARGV4 AND "${BRAID_CUDA}" STREQUAL "OFF"))
    return()
  endif()
  if(ARGV4)
    find_package(CUDAToolkit QUIET)
    set(headers ${CUDAToolkit_INCLUDE_DIRS} /usr/local/cuda/include)
    set(libraries ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT}/lib /usr/local/cuda/lib64 /usr/local/cuda/lib)
  endif()
  find_path(BRAID_${NAME}_INCLUDE ${header} HINTS ${headers})
  find_library(BRAID_${NAME}_LIBRARY ${library} HINTS ${libraries})
  if(BRAID_${NAME}_INCLUDE AND BRAID_${NAME}_LIBRARY AND (NOT ARGV4 OR CUDAToolkit_FOUND))
    add_library(braid::${name} UNKNOWN IMPORTED GLOBAL)
    set_target_properties(braid::${name} PROPERTIES IMPORTED_LOCATION ${BRAID_${NAME}_LIBRARY}
      INTERFACE_INCLUDE_DIRECTORIES "${BRAID_${NAME}_INCLUDE}")
    if(ARGV4)
      target_include_directories(braid::${name} SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
      target_link_libraries(braid::${name} INTERFACE CUDA::cudart)
    endif()
  elseif("${BRAID_${NAME}}" STREQUAL "ON")
    message(FATAL_ERROR "BRAID_${NAME} is ON, but ${header} or lib${library} was not found: ${advice}, or build Braid "
      "with -DBRAID_${NAME}=OFF")
  endif()
endfunction()
braid_find(zstd zstd.h zstd "install libzstd-dev")
braid_find(dnnl dnnl.h dnnl "install libdnnl-dev")
braid_find(nccl nccl.h nccl "install NCCL and the CUDA toolkit" CUDA)
braid_find(cudnn cudnn_graph.h cudnn "install cuDNN 9 and the CUDA toolkit" CUDA)
braid_find(cusolver cusolverDn.h cusolver "install the CUDA toolkit with cuSOLVER" CUDA)
if(NOT TARGET braid::zstd)
  message(FATAL_ERROR "zstd.h or libzstd was not found: install libzstd-dev")
endif()
braid_find(pcre2 pcre2.h pcre2-8 "install libpcre2-dev")
if(NOT TARGET braid::pcre2)
  message(FATAL_ERROR "pcre2.h or libpcre2-8 was not found: install libpcre2-dev")
endif()
braid_find(png png.h png "install libpng-dev")
braid_find(jpeg jpeglib.h jpeg "install libjpeg-dev")
braid_find(utf8proc utf8proc.h utf8proc "install libutf8proc-dev")
if(NOT TARGET braid::utf8proc)
  message(FATAL_ERROR "utf8proc.h or libutf8proc was not found: install libutf8proc-dev")
endif()

if(NOT "${BRAID_LAPACK}" STREQUAL "OFF" AND NOT TARGET braid::lapack)
  find_library(BRAID_LAPACK_LIBRARY lapack)
  find_library(BRAID_BLAS_LIBRARY blas)
  if(BRAID_LAPACK_LIBRARY AND BRAID_BLAS_LIBRARY)
    add_library(braid::lapack INTERFACE IMPORTED GLOBAL)
    target_link_libraries(braid::lapack INTERFACE ${BRAID_LAPACK_LIBRARY} ${BRAID_BLAS_LIBRARY})
  elseif("${BRAID_LAPACK}" STREQUAL "ON")
    message(FATAL_ERROR "BRAID_LAPACK is ON, but liblapack or libblas was not found: install liblapack-dev, or build "
      "Braid with -DBRAID_LAPACK=OFF")
  endif()
endif()

if(NOT BRAID_MPI STREQUAL "OFF" AND NOT TARGET braid::mpi)
  enable_language(C)  # FindMPI compiles its trial with the C compiler; only the C interface is used
  find_package(MPI QUIET COMPONENTS C)
  if(MPI_C_FOUND)
    add_library(braid::mpi INTERFACE IMPORTED GLOBAL)
    target_link_libraries(braid::mpi INTERFACE MPI::MPI_C)
  elseif(BRAID_MPI STREQUAL "ON")
    message(FATAL_ERROR "MPI was not found: install libopenmpi-dev and openmpi-bin, or build Braid with -DBRAID_MPI=OFF")
  endif()
endif()
