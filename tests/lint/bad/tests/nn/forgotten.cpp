// See CMakeLists.txt.
