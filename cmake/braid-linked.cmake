# The list of what Braid was linked from, as SPDX 2.3 (braid.spdx.json) and as notices (copyright); both are installed.
# The licences of this table are those of the projects' own pages; versions are read from the headers that were found.
set(BRAID_PARTS "")
set(BRAID_PART_RELATIONS "")
set(BRAID_NOTICES "")
set(BRAID_DEV_PACKAGES "")
string(TIMESTAMP BRAID_CREATED UTC)

# braid_part(target name licence version "libraries" [development package of Debian]): a target that is not there is left
# out; version: the number, or a header and its macros with the parts; no library: headers, compiled in.
function(braid_part target name licence version libraries)
  if(NOT TARGET ${target})
    return()
  endif()
  list(POP_FRONT version header)
  set(hints ${CUDAToolkit_INCLUDE_DIRS} ${MPI_C_INCLUDE_DIRS} ${ZLIB_INCLUDE_DIRS} ${Boost_INCLUDE_DIRS})
  foreach(found ZSTD PCRE2 UTF8PROC DNNL PNG JPEG NCCL CUDNN CUSOLVER)
    list(APPEND hints ${BRAID_${found}_INCLUDE})
  endforeach()
  if(version)
    set(macros ${version})
    set(version "")
    find_file(file ${header} HINTS ${hints} NO_CACHE)
    set(text "")
    if(file)
      file(READ ${file} text)
    endif()
    foreach(macro ${macros})
      if(text MATCHES "# *define[ \t]+${macro}[ \t]+\"?([0-9][0-9._]*)")
        string(APPEND version ".${CMAKE_MATCH_1}")
      endif()
    endforeach()
    string(REGEX REPLACE "^[.]" "" version "${version}")
    string(REPLACE "_" "." version "${version}")
  else()
    set(version ${header})
  endif()
  string(REGEX REPLACE "[^A-Za-z0-9.]+" "-" id "SPDXRef-${name}")
  set(how "linked dynamically: ${libraries}")
  set(relation DYNAMIC_LINK)
  get_target_property(location ${target} IMPORTED_LOCATION)
  if(location MATCHES "[.]a$")
    set(how "linked statically: ${libraries}")
    set(relation STATIC_LINK)
  elseif(libraries STREQUAL "")
    set(how "headers compiled in")
    set(relation CONTAINS)
  endif()
  set(line "")
  set(title "${name}")
  if(version)
    set(line "\"versionInfo\": \"${version}\", ")
    string(APPEND title " ${version}")
  endif()
  set(BRAID_PARTS "${BRAID_PARTS},
    {\"name\": \"${name}\", \"SPDXID\": \"${id}\", ${line}\"comment\": \"${how}\",
     \"downloadLocation\": \"NOASSERTION\", \"filesAnalyzed\": false, \"copyrightText\": \"NOASSERTION\",
     \"licenseConcluded\": \"NOASSERTION\", \"licenseDeclared\": \"${licence}\"}" PARENT_SCOPE)
  set(BRAID_PART_RELATIONS "${BRAID_PART_RELATIONS},
    {\"spdxElementId\": \"SPDXRef-braid\", \"relationshipType\": \"${relation}\", \"relatedSpdxElement\": \"${id}\"}"
    PARENT_SCOPE)
  set(BRAID_NOTICES "${BRAID_NOTICES}  ${title}, ${licence}\n    ${how}\n" PARENT_SCOPE)
  set(BRAID_DEV_PACKAGES ${BRAID_DEV_PACKAGES} ${ARGN} PARENT_SCOPE)
endfunction()

braid_part(ZLIB::ZLIB zlib Zlib "zlib.h;ZLIB_VERSION" libz zlib1g-dev)
braid_part(braid::zstd zstd "BSD-3-Clause OR GPL-2.0-only"
  "zstd.h;ZSTD_VERSION_MAJOR;ZSTD_VERSION_MINOR;ZSTD_VERSION_RELEASE" libzstd libzstd-dev)
braid_part(braid::pcre2 PCRE2 BSD-3-Clause "pcre2.h;PCRE2_MAJOR;PCRE2_MINOR" libpcre2-8 libpcre2-dev)
braid_part(braid::utf8proc utf8proc "MIT AND Unicode-DFS-2015"
  "utf8proc.h;UTF8PROC_VERSION_MAJOR;UTF8PROC_VERSION_MINOR;UTF8PROC_VERSION_PATCH" libutf8proc libutf8proc-dev)
braid_part(braid::dnnl oneDNN Apache-2.0
  "oneapi/dnnl/dnnl_version.h;DNNL_VERSION_MAJOR;DNNL_VERSION_MINOR;DNNL_VERSION_PATCH" libdnnl libdnnl-dev)
braid_part(braid::lapack "LAPACK and BLAS" BSD-3-Clause "" "liblapack libblas" liblapack-dev)
braid_part(braid::png libpng libpng-2.0 "png.h;PNG_LIBPNG_VER_STRING" "libpng16 libpng" libpng-dev)
braid_part(braid::jpeg libjpeg-turbo "IJG AND BSD-3-Clause AND Zlib" "jconfig.h;LIBJPEG_TURBO_VERSION" libjpeg libjpeg-dev)
braid_part(braid::mpi MPI NOASSERTION "${MPI_C_VERSION}" libmpi libopenmpi-dev)
if(BRAID_USES_CUDA)
  braid_part(CUDA::cudart "CUDA runtime and cuBLAS" NOASSERTION "${CUDAToolkit_VERSION}" "libcudart libcublas libcublasLt")
  braid_part(braid::nccl NCCL BSD-3-Clause "nccl.h;NCCL_MAJOR;NCCL_MINOR;NCCL_PATCH" libnccl)
  braid_part(braid::cudnn cuDNN NOASSERTION "cudnn_version.h;CUDNN_MAJOR;CUDNN_MINOR;CUDNN_PATCHLEVEL" libcudnn)
  braid_part(braid::cusolver cuSOLVER NOASSERTION "${CUDAToolkit_VERSION}" libcusolver)
endif()
braid_part(nlohmann_json::nlohmann_json "JSON for Modern C++" MIT "${nlohmann_json_VERSION}" "")
braid_part(braid_apps toml++ MIT "toml++/impl/version.h;TOML_LIB_MAJOR;TOML_LIB_MINOR;TOML_LIB_PATCH" "")
braid_part(braid_apps Boost BSL-1.0 "boost/version.hpp;BOOST_LIB_VERSION" "")
set(runtime "")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(runtime ${CMAKE_CXX_COMPILER_VERSION})
endif()
braid_part(braid "GCC runtime libraries" "GPL-3.0-or-later WITH GCC-exception-3.1" "${runtime}" "libstdc++ libgcc_s")
braid_part(braid "GNU C library" LGPL-2.1-or-later "features.h;__GLIBC__;__GLIBC_MINOR__"
  "libc libm libdl libpthread librt ld-linux-x86-64 ld-linux-aarch64")

string(UUID BRAID_UUID NAMESPACE 3f2b8f2e-6f0b-4a5e-9a51-d8ef1c4f0a77 TYPE SHA1
  NAME "${PROJECT_VERSION} ${CMAKE_SYSTEM_PROCESSOR} ${BRAID_PARTS}")
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/braid.spdx.json @ONLY CONTENT [[{
  "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": "braid-@PROJECT_VERSION@",
  "documentNamespace": "urn:uuid:@BRAID_UUID@",
  "creationInfo": {"created": "@BRAID_CREATED@", "creators": ["Tool: cmake/braid-linked.cmake"]},
  "documentDescribes": ["SPDXRef-braid"],
  "packages": [
    {"name": "braid", "SPDXID": "SPDXRef-braid", "versionInfo": "@PROJECT_VERSION@",
     "downloadLocation": "NOASSERTION", "filesAnalyzed": false, "copyrightText": "NOASSERTION",
     "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0"}@BRAID_PARTS@],
  "relationships": [
    {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-braid"}@BRAID_PART_RELATIONS@]
}
]])
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/copyright @ONLY CONTENT [[
Braid @PROJECT_VERSION@ is under the Apache License 2.0: the file LICENSE beside this one, and on Debian
/usr/share/common-licenses/Apache-2.0. It was built with these, of which a package holds none but compiled headers, and
a wheel the libraries in braid/lib with their own licences (braid.spdx.json is the same list for programs):

@BRAID_NOTICES@
JSON for Modern C++ is copyright 2013-2022 Niels Lohmann, 2009 Florian Loitsch and 2008-2009 Bjoern Hoehrmann; toml++
is copyright 2020-2022 Mark Gillard and 2008-2009 Bjoern Hoehrmann. Both are under the MIT License:

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
]])
install(FILES SECURITY.md ${PROJECT_BINARY_DIR}/braid.spdx.json ${PROJECT_BINARY_DIR}/copyright
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
