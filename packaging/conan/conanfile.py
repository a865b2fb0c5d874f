"""Conan 2: the library braid, linked with the packages of Debian or Ubuntu. In the root of the sources:

    conan create packaging/conan
"""
import os
import re

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load
from conan.tools.system.package_manager import Apt


class Braid(ConanFile):
    name = "braid"
    description = "Tensors, autograd and DCFormers in C++20"
    license = "Apache-2.0"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False]}
    default_options = {"shared": False, "fPIC": True}
    package_type = "library"

    def set_version(self):
        text = load(self, os.path.join(self.recipe_folder, "..", "..", "CMakeLists.txt"))
        self.version = re.search(r"project\(braid VERSION ([0-9.]+)", text)[1]

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "..", "..")
        copy(self, "*", root, self.export_sources_folder, excludes=("build/*", "out/*", ".git*"))

    def system_requirements(self):
        Apt(self).install(["libdnnl-dev", "liblapack-dev", "libzstd-dev", "zlib1g-dev", "libpng-dev", "libjpeg-dev",
                           "libpcre2-dev", "libutf8proc-dev", "nlohmann-json3-dev"], check=True)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for option in ["APPS", "TESTS", "MPI", "CUDA"]:
            toolchain.cache_variables["BRAID_" + option] = "OFF"
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):  # Braid's own find_package(braid), which knows the libraries behind it
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/braid"]
