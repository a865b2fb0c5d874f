# Finds the CUDA toolkit and the GPUs to compile for. Sets BRAID_USES_CUDA and enables the language.
# CMake 3.25 knows no CUDA C++20: the standard is given to nvcc as an option (cuda/CMakeLists.txt).
set(BRAID_USES_CUDA OFF)
if(BRAID_CUDA STREQUAL "OFF")
  return()
endif()
find_package(CUDAToolkit 12.2 QUIET)
if(CUDAToolkit_FOUND AND TARGET CUDA::cublasLt AND TARGET CUDA::cudart)
  set(BRAID_USES_CUDA ON)
elseif(BRAID_CUDA STREQUAL "ON")
  message(FATAL_ERROR "no CUDA toolkit of version 12.2 or newer with cuBLAS was found: install it and put nvcc into "
    "PATH, or build Braid with -DBRAID_CUDA=OFF")
else()
  message(STATUS "no CUDA toolkit (>= 12.2): Braid is built for the CPU only")
  return()
endif()

# sm_80 also as PTX, from which the driver compiles for every newer GPU; sm_90a (H100, H200) has instructions of its own.
set(BRAID_CUDA_ARCHITECTURES "80;90a-real" CACHE STRING "GPUs that kernels are compiled for, as CMAKE_CUDA_ARCHITECTURES")
set(CMAKE_CUDA_ARCHITECTURES ${BRAID_CUDA_ARCHITECTURES})
if(NOT CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
endif()
set(CMAKE_CUDA_EXTENSIONS ON)  # otherwise CMake adds -std=c++17 behind our -std=c++20
set(CMAKE_CUDA_RUNTIME_LIBRARY None)  # CUDA::cudart is linked by name, as every other library
if(BRAID_CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${BRAID_CCACHE})
endif()
enable_language(CUDA)
message(STATUS "CUDA ${CUDAToolkit_VERSION} for ${BRAID_CUDA_ARCHITECTURES}")

# Flags of kernel files: warnings are errors in code for the GPU and for the CPU.
add_library(braid_cuda_flags INTERFACE)
target_compile_options(braid_cuda_flags INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20 --expt-relaxed-constexpr
  --extended-lambda $<$<BOOL:${BRAID_WERROR}>:-Werror=all-warnings>
  -Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers,-fno-strict-aliasing>)
