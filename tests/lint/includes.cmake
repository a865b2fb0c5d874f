# Who may include whom. Between folders: a folder includes itself and the folders below it.
#   apps > models > distributed > nn > autograd > tensor;  cuda includes itself and tensor, only tests include cuda
# Inside a folder: a sub-folder includes itself and the sub-folders that the table names. tests may include anything;
# nothing else includes tests. There is no circle: a row of the table names rows above it only, and no header reaches
# itself.
# Usage: cmake -DROOT=<tree> [-DARROWS=<another table>] -P tests/lint/includes.cmake
cmake_minimum_required(VERSION 3.25)
set(below_tensor tensor)
set(below_cuda tensor cuda)
set(below_autograd tensor autograd)
set(below_nn ${below_autograd} nn)
set(below_distributed ${below_nn} distributed)
set(below_models ${below_distributed} models)
set(below_apps ${below_models} apps)

# The table: sub-folder, then what it may include of its own folder. "tensor" alone: the headers directly in tensor/. Its
# sources (tensor/tensor.cpp), which nothing includes, may include everything below tensor/.
set(arrows
  "tensor:"
  "tensor/base: tensor"
  "tensor/dry: tensor"
  "tensor/io: tensor tensor/base"
  "tensor/kernels: tensor tensor/base tensor/dry"
  "tensor/linalg: tensor tensor/kernels"
  "tensor/cpu/gemm: tensor tensor/base"
  "tensor/cpu/attention: tensor tensor/base tensor/kernels"
  "tensor/cpu: tensor tensor/base tensor/kernels tensor/cpu/gemm tensor/cpu/attention"
  "cuda/runtime:"
  "cuda/device: cuda/runtime"
  "cuda/matmul: cuda/runtime cuda/device"
  "cuda/kernels: cuda/runtime cuda/device"
  "cuda/attention: cuda/runtime cuda/device cuda/matmul"
  "cuda/dry: cuda/runtime cuda/device cuda/matmul cuda/attention"
  "cuda:"
  "autograd:"
  "autograd/detail: autograd"
  "autograd/ops: autograd autograd/detail"
  "nn:"
  "nn/layers: nn"
  "nn/inference: nn nn/layers"
  "nn/attention: nn nn/layers"
  "nn/optim: nn"
  "nn/optim/rules: nn nn/optim"
  "nn/transformer: nn nn/layers nn/attention"
  "distributed:"
  "distributed/sharding:"
  "distributed/comm: distributed/sharding"
  "distributed/parallel: distributed/sharding distributed/comm"
  "distributed/job: distributed/sharding distributed/comm"
  "models:"
  "models/data: models"
  "models/data/tokenizers: models/data"
  "models/data/tokenizers/training: models/data/tokenizers"
  "models/data/text: models models/data models/data/tokenizers"
  "models/data/tasks: models/data/text models/data/tokenizers"
  "models/data/prepare/template: models/data models/data/tokenizers"
  "models/data/prepare: models models/data models/data/text models/data/tokenizers models/data/tokenizers/training models/data/tasks models/data/prepare/template"
  "models/data/vision: models models/data models/data/text models/data/prepare"
  "models/inference/constraint: models/data/tokenizers"
  "models/inference: models models/data models/data/text models/data/tokenizers models/inference/constraint"
  "models/folders: models models/data/text models/data/tokenizers"
  "models/training: models models/data/text models/folders"
  "models/cost: models models/folders models/training"
  "models/families: models models/cost models/folders"
  "models/families/dcformer: models models/cost models/folders models/data/text models/inference models/families"
  "models/families/seq2seq: models models/cost models/data models/data/text models/families"
  "models/families/vit: models models/cost models/folders models/families"
  "models/training/checkpoint: models models/folders models/training"
  "models/eval: models models/data/text models/data/tokenizers models/data/tasks models/data/prepare models/inference"
  "models/inspect: models models/data/text models/data/tokenizers models/families/dcformer models/families/vit"
  "models/study: models"
  "apps:"
  "apps/cli:"
  "apps/prepare: apps/cli"
  "apps/train/config: apps/cli"
  "apps/serve/page:"
  "apps/serve/api: apps/cli apps/serve/page"
  "apps/serve/http: apps/cli apps/serve/api apps/serve/page"
  "apps/train/log: apps/cli apps/serve/http"
  "apps/train/task: apps/cli apps/train/config apps/train/log"
  "apps/train/run: apps/cli apps/train/config apps/train/log apps/train/task"
  "apps/train/plan: apps/cli apps/train/config apps/train/log apps/train/task apps/train/run"
  "apps/train: apps/cli apps/train/config apps/train/log apps/train/task apps/train/run apps/train/plan"
  "apps/chart: apps/cli apps/train/log"
  "apps/bench: apps/cli apps/train/config apps/train/log apps/train/task apps/train/plan apps/train/run"
  "apps/dump: apps/cli"
  "apps/generate: apps/cli apps/train/run"
  "apps/serve: apps/cli apps/serve/http"
  "apps/eval: apps/cli apps/train/run"
  "apps/chat: apps/cli"
  "apps/analyze: apps/cli apps/chart apps/serve/page"
  "apps/study: apps/cli apps/chart apps/train/config apps/train/log apps/train/task apps/train/plan apps/train"
  "apps/python: apps/cli apps/chart apps/dump apps/train/config apps/train/log apps/train/run apps/train"
)
if(ARROWS)
  set(arrows ${ARROWS})
endif()

set(units "")
foreach(arrow ${arrows})
  string(REGEX MATCH "^([^:]*):(.*)$" ignored "${arrow}")
  set(unit ${CMAKE_MATCH_1})
  string(REPLACE " " ";" allowed_${unit} "${CMAKE_MATCH_2}")
  foreach(target ${allowed_${unit}})
    if(NOT target IN_LIST units)
      message(FATAL_ERROR "${unit} -> ${target}: expected a row above, so that the table has no circle")
    endif()
  endforeach()
  list(APPEND units ${unit})
endforeach()
macro(unit_of path result)  # the longest unit that the path begins with
  get_filename_component(${result} ${path} DIRECTORY)
  while(NOT ${result} IN_LIST units AND ${result} MATCHES "/")
    get_filename_component(${result} ${${result}} DIRECTORY)
  endwhile()
endmacro()

set(headers "")
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
      if(folder STREQUAL "apps" AND path STREQUAL "braid/program.h")  # their own public header
        continue()
      endif()
      string(REGEX REPLACE "^braid/" "" target "${path}")
      string(REGEX REPLACE "/.*|[.]h$" "" top "${target}")  # nn.h: the facade of nn/
      if(NOT top IN_LIST below_${folder} OR (top STREQUAL "apps" AND path MATCHES "^braid/") OR
         (NOT top STREQUAL "apps" AND NOT path MATCHES "^braid/"))
        message("${file}: ${line}: expected a path in one of: ${below_${folder}}, after braid/ but for apps")
        math(EXPR wrong "${wrong} + 1")
        continue()
      endif()
      if(file MATCHES "[.](h|cuh)$")
        list(APPEND headers ${file})
        list(APPEND "includes_${file}" ${target})
      endif()
      unit_of(${target} to)
      if(folder STREQUAL "apps" AND to STREQUAL "models/families/dcformer")  # the program reaches families by models/registry.h
        message("${file}: ${line}: apps/ includes no family of models")
        math(EXPR wrong "${wrong} + 1")
      endif()
      if(NOT top STREQUAL folder OR from STREQUAL to)
        continue()
      endif()
      list(APPEND between "${from} > ${to}")
      set(fine OFF)
      if(to IN_LIST allowed_${from} OR (from STREQUAL folder AND (file MATCHES "[.]cpp$")))
        set(fine ON)
      endif()
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

# Headers whose includes have all been taken away are taken away, until none is left or the rest is a circle.
list(REMOVE_DUPLICATES headers)
set(before "")
while(NOT "${headers}" STREQUAL "${before}")
  set(before "${headers}")
  set(left "")
  foreach(header ${headers})
    foreach(target ${includes_${header}})
      if(target IN_LIST headers)
        list(APPEND left ${header})
        break()
      endif()
    endforeach()
  endforeach()
  set(headers "${left}")
endwhile()
if(headers)
  message("headers that include each other in a circle, or include such a circle: ${headers}")
  math(EXPR wrong "${wrong} + 1")
endif()
message("include directions: ${seen} includes read, ${wrong} against the direction")
if(wrong OR NOT seen)
  message(FATAL_ERROR "see tests/lint/includes.cmake for the directions")
endif()
