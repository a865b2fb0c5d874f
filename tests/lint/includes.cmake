# Who may include whom. Between folders: a folder includes itself and the folders below it.
#   apps > models > distributed > nn > autograd > tensor;  cuda includes itself and tensor, only tests include cuda
# Inside a folder: a sub-folder includes itself and the sub-folders that the table names, and so do the files that lie
# directly in the folder. tests may include anything; nothing else includes tests.
# Usage: cmake -DROOT=<tree> -P tests/lint/includes.cmake
cmake_minimum_required(VERSION 3.25)
set(below_tensor tensor)
set(below_cuda tensor cuda)
set(below_autograd tensor autograd)
set(below_nn ${below_autograd} nn)
set(below_distributed ${below_nn} distributed)
set(below_models ${below_distributed} models)
set(below_apps ${below_models} apps)

# The table: sub-folder, then what it may include of its own folder. "tensor" alone: the files directly in tensor/. Read
# downwards it has no circle, but for the sources (.cpp) of a folder's own files: they may include all below their folder.
set(arrows
  "tensor:"
  "tensor/detail: tensor"
  "tensor/io: tensor tensor/detail"
  "tensor/kernels: tensor tensor/detail"
  "tensor/cpu/gemm: tensor"
  "tensor/cpu/attention: tensor tensor/kernels tensor/detail"
  "tensor/cpu: tensor tensor/kernels tensor/detail tensor/cpu/gemm tensor/cpu/attention"
  "cuda/runtime:"
  "cuda/device: cuda/runtime"
  "cuda/matmul: cuda/runtime cuda/device"
  "cuda/kernels: cuda/runtime cuda/device"
  "cuda/attention: cuda/runtime cuda/device cuda/matmul"
  "cuda: cuda/runtime cuda/device cuda/matmul cuda/kernels cuda/attention"
  "autograd:"
  "autograd/detail: autograd"
  "autograd/ops: autograd autograd/detail"
  "nn:"
  "nn/attention: nn"
  "nn/optim: nn"
  "distributed/comm:"
  "distributed/sharding: distributed/comm"
  "distributed/parallel: distributed/comm distributed/sharding"
  "distributed/job: distributed/comm distributed/sharding"
  "distributed:"
  "models/text: models"
  "models/text/tasks: models/text"
  "models/text/prepare: models/text models/text/tasks"
  "models:"
  "models/dcformer: models models/text"
  "models/training: models models/text"
  "models/generation: models models/text"
  "models/eval: models models/text models/text/tasks models/generation"
  "apps/cli:"
  "apps/train: apps/cli"
  "apps/report: apps/cli apps/train"
  "apps/bench: apps/cli apps/train"
  "apps: apps/cli apps/train apps/report apps/bench"
)
# Files that put a folder together, and so include what lies below it; and single arrows with their reason.
set(exceptions
  "tensor/kernels/(pointwise|math).h -> tensor/cpu/math.h"  # the polynomials, which every device evaluates alike
  "nn/block.h -> nn/attention/attention.h"
  "distributed/comm/rank_order_reduce.h -> distributed/sharding/partition.h"
  "cuda/runtime/.* -> cuda/device/.*"
  "models/pretrained.h -> models/text/tokenizer.h"
  "tensor/memory.h -> tensor/detail/scoped_value.h"
  "apps/train/.* -> apps/bench/matmul_rate.h"  # the time of a step is estimated from a measured rate
  "apps/.* -> apps/commands.h"  # the list of entry points, which each command implements
)

set(units "")
foreach(arrow ${arrows})
  string(REGEX MATCH "^([^:]*):(.*)$" ignored "${arrow}")
  set(unit ${CMAKE_MATCH_1})
  string(REPLACE " " ";" allowed_${unit} "${CMAKE_MATCH_2}")
  list(APPEND units ${unit})
endforeach()
macro(unit_of path result)  # the longest unit that the path begins with
  get_filename_component(${result} ${path} DIRECTORY)
  while(NOT ${result} IN_LIST units AND ${result} MATCHES "/")
    get_filename_component(${result} ${${result}} DIRECTORY)
  endwhile()
endmacro()

set(wrong 0)
set(seen 0)
foreach(folder tensor cuda autograd nn distributed models apps)
  set(between "")
  file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/${folder}/*.h ${ROOT}/${folder}/*.cpp ${ROOT}/${folder}/*.cu
    ${ROOT}/${folder}/*.cuh)
  foreach(file ${files})
    unit_of(${file} from)
    file(STRINGS ${ROOT}/${file} lines REGEX "^[ \t]*#[ \t]*include[ \t]*\"")
    foreach(line ${lines})
      math(EXPR seen "${seen} + 1")
      string(REGEX REPLACE "^[^\"]*\"([^\"]*)\".*" "\\1" path "${line}")
      string(REGEX REPLACE "^braid/" "" target "${path}")
      string(REGEX REPLACE "/.*" "" top "${target}")
      if(NOT top IN_LIST below_${folder} OR (top STREQUAL "apps" AND path MATCHES "^braid/") OR
         (NOT top STREQUAL "apps" AND NOT path MATCHES "^braid/"))
        message("${file}: ${line}: expected a path in one of: ${below_${folder}}, after braid/ but for apps")
        math(EXPR wrong "${wrong} + 1")
        continue()
      endif()
      unit_of(${target} to)
      if(NOT top STREQUAL folder OR from STREQUAL to)
        continue()
      endif()
      list(APPEND between "${from} > ${to}")
      set(fine OFF)
      if(to IN_LIST allowed_${from} OR (from STREQUAL folder AND (file MATCHES "[.]cpp$" OR
          file MATCHES "^(tensor/tensor|autograd/autograd|nn/nn|distributed/distributed|models/models|models/braid)[.]h$")))
        set(fine ON)
      endif()
      foreach(exception ${exceptions})
        if("${file} -> ${target}" MATCHES "^${exception}$")
          set(fine ON)
        endif()
      endforeach()
      if(NOT fine)
        message("${file}: ${line}: ${from}/ may include only ${allowed_${from}} of ${folder}/")
        math(EXPR wrong "${wrong} + 1")
      endif()
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES between)
  list(LENGTH between count)
  message("${folder}/: ${count} arrows between its sub-folders")
endforeach()
message("include directions: ${seen} includes read, ${wrong} against the direction")
if(wrong OR NOT seen)
  message(FATAL_ERROR "see tests/lint/includes.cmake for the directions")
endif()
