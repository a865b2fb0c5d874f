# Installs BUILD into WORK/prefix, then configures, builds and runs a copy of the project in SOURCE against it, in a
# folder outside the tree, with each of COMPILERS. With -DHEADERS=ON the first one also compiles every installed header
# alone.
cmake_minimum_required(VERSION 3.25)
set(flags "")
if(SANITIZE)
  set(flags "-DCMAKE_CXX_FLAGS=-fsanitize=${SANITIZE}")
endif()
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()
function(expect pattern)
  if(NOT output MATCHES "${pattern}")
    message(FATAL_ERROR "expected ${pattern}, found\n${output}")
  endif()
endfunction()

set(prefix ${WORK}/prefix)
file(REMOVE_RECURSE ${prefix})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
file(GLOB installed ${prefix}/bin/* ${prefix}/lib*/*.so ${prefix}/lib*/*/*.so)
list(FILTER installed EXCLUDE REGEX "/braid-course$")  # a script
foreach(file ${installed})
  run(${CMAKE_COMMAND} -DFILES=${file} -P ${SOURCE}/rpath.cmake)
endforeach()
file(GLOB found RELATIVE ${prefix}/include ${prefix}/include/*)
if(NOT found STREQUAL "braid")
  message(FATAL_ERROR "expected only braid/ on the include path of users, found ${found}")
endif()
foreach(file README.md LICENSE SECURITY.md copyright braid.spdx.json)
  if(NOT EXISTS ${prefix}/share/doc/braid/${file})
    message(FATAL_ERROR "expected share/doc/braid/${file}")
  endif()
endforeach()
# Functions of installed headers that compute values must not exist out of line in the library: the linker could take
# the copy of a program that was compiled with other flags (tensor/device_code.h).
find_program(NM nm)
file(GLOB_RECURSE library ${prefix}/*/libbraid.a)
if(NM AND library)
  execute_process(COMMAND ${NM} ${library} COMMAND grep -E
    " [WVu] _ZNK?5braid(8bfloat16|7float16|6philox|11random_bits|4unit|14uniform_number|14normal_numbers)"
    OUTPUT_VARIABLE copies ERROR_QUIET)
  if(copies)
    message(FATAL_ERROR "expected every BRAID_HD function of the installed headers to be inlined, found\n${copies}")
  endif()
endif()
set(headers "")
if(HEADERS)
  set(headers -DHEADERS=${prefix}/include)
endif()
foreach(compiler ${COMPILERS})
  get_filename_component(name ${compiler} NAME)
  set(folder ${WORK}/${name})
  file(REMOVE_RECURSE ${folder})
  file(COPY ${SOURCE}/CMakeLists.txt ${SOURCE}/examples DESTINATION ${folder}/source)
  run(${CMAKE_COMMAND} -S ${folder}/source -B ${folder}/build -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${prefix}
    -DCMAKE_CXX_COMPILER=${compiler} ${headers} ${flags})
  run(${CMAKE_COMMAND} --build ${folder}/build)
  foreach(pair  # a program, which exits with 0 where its own check holds, and a line that it prints
      "next_token|the heads of a layer read"
      "01_mlp|of the new points are recognised"
      "02_cnn|of 200 new images are recognised"
      "03_lstm|mean error of the count: 0."
      "04_char_transformer|attention reads what came before and never what follows"
      "05_dcmha|fused op and formula agree, values and gradients: yes"
      "06_op_and_optimizer|derivatives agree: yes"
      "07_gradient_penalty|the derivative has a length near one: yes"
      "08_numeric|every parameter within four standard errors: yes"
      "09_threads|40000 of 40000 gradients arrived.*32 of 32 threads got the same bits"
      "11_compare_attention|MLP over heads")
    string(REPLACE "|" ";" pair "${pair}")
    list(POP_FRONT pair program pattern)
    run(${folder}/build/${program})
    expect("${pattern}")
  endforeach()
  if(EXISTS ${folder}/build/12_own_program)  # trains, resumes and studies what only it knows
    set(own ${CMAKE_COMMAND} -E chdir ${folder}/build ${folder}/build/12_own_program)
    string(REPEAT "The north wind and the sun disputed which was the stronger. " 400 text)
    file(WRITE ${folder}/build/text.txt "${text}")
    run(${own} prepare text.txt --out data)
    set(settings data.path=data data.seq_len=32 model.preset=transformer-tiny model.n_layer=1 model.dim=32 model.n_head=4
      model.attention=head-network train.batch_size=2 schedule.warmup=1 eval.interval=0)
    run(${own} train ${settings} run.out=run train.steps=2)
    run(${own} train run train.steps=4)
    expect("trained 4 steps")
    run(${own} generate run --prompt "The " --tokens 4)
    run(${own} info run)
    expect("head-network")
    file(WRITE ${folder}/build/study.toml "[study]\nout = \"study\"\nbaseline = \"plain\"\nseeds = [1]\nsteps = [2]\n"
      "[base]\ndata.path = \"data\"\ndata.seq_len = 32\nmodel.preset = \"transformer-tiny\"\nmodel.n_layer = 1\n"
      "model.dim = 32\nmodel.n_head = 4\ntrain.batch_size = 2\nschedule.warmup = 1\n"
      "[variants.plain]\nmodel.attention = [\"plain\"]\n[variants.own]\nmodel.attention = [\"head-network\"]\n")
    run(${own} study study.toml)
    expect("\\| own \\|")
    run(${own} analyze run --prompt "The north wind")
  endif()
  run(${CMAKE_COMMAND} -E chdir ${folder}/build ${folder}/build/10_numpy_files)
  expect("y = 3[.]00 x0 -2[.]00 x1 [+]0[.]50, residuals up to 0[.]0")
  file(READ ${folder}/build/residuals.npy start LIMIT 8 HEX)
  if(NOT start STREQUAL "934e554d50590100")
    message(FATAL_ERROR "expected an .npy file, found ${start}")
  endif()
  if(EXISTS ${folder}/build/eigen)  # where Eigen is installed
    run(${folder}/build/eigen)
    expect("Eigen and Braid agree: yes.*3 of 3 mistakes were rejected")
  endif()
  set(headers "")
endforeach()
# The points of a student: a solution, a file that does not compile, one that is missing.
if(NOT SANITIZE)
  set(course ${WORK}/course)
  file(REMOVE_RECURSE ${course})
  run(${prefix}/bin/braid-course --start ${course})
  file(READ ${course}/course/chapters.cmake list)
  string(REGEX REPLACE "COURSE_CHAPTERS\n[^)]*" "COURSE_CHAPTERS\n  01_tensor\n  13_safe_run\n  14_claim\n" list "${list}")
  file(WRITE ${course}/course/chapters.cmake "${list}")
  file(COPY ${SOURCE}/../course/01_tensor/exercise.h DESTINATION ${course}/student/01_tensor)
  file(WRITE ${course}/student/14_claim/exercise.h "no C++\n")
  run(${CMAKE_COMMAND} -E chdir ${course} scripts/course --grade student)
  expect("01_tensor +6 of 6\n13_safe_run +0 of 7, no file .*\n14_claim +0 of 8, does not compile: [^\n]*error.*6 of 21 points")
endif()
message("every program was built and run with: ${COMPILERS}")
