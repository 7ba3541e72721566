# Language level, warnings, sanitizers: the same for every target of ours.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# Folders of loops over numbers ask for -O3, text for -O1: reckon_numeric, reckon_runs_once.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
# g++ stops to collect its garbage from 128 MiB on: 5 to 13 % of the time that a group of sources takes.
add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:SHELL:--param ggc-min-heapsize=1000000>")

option(RECKON_TESTS "Build the tests" ON)
option(RECKON_SANITIZE "Address and undefined-behaviour sanitizers; with clang the libFuzzer programs too" OFF)
option(RECKON_WERROR "Warnings are errors" ON)
option(RECKON_UNITY "Compile several sources of a folder as one" OFF)

add_library(reckon_warnings INTERFACE)
target_compile_options(reckon_warnings INTERFACE
  -Wall -Wextra -Wconversion -Wno-missing-field-initializers
  # g++ 12 at -O3 warns about its own std::string: GCC bugs 105651 (restrict, stringop-overflow) and 105562
  # (maybe-uninitialized). What these would find, the sanitizers and valgrind find.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>
  # clang's -Wconversion has -Wsign-conversion in it, g++'s has not.
  $<$<CXX_COMPILER_ID:Clang>:-Wno-sign-conversion>
  $<$<BOOL:${RECKON_WERROR}>:-Werror>)
# Floating-point sums are part of the interface (one seed reproduces every digit on every machine):
# no fused multiply-add that one compiler would form and another would not.
target_compile_options(reckon_warnings INTERFACE -ffp-contract=off)

if(RECKON_SANITIZE)
  add_compile_options(-O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # One tree serves the tests and the fuzz programs: libraries are compiled under the sanitizers once. Line tables are all that a
    # finding prints of debug information: groups of sources compile 5 to 25 % faster for it. Of the undefined behaviour that is
    # left out the address sanitizer or the processor stops what matters; a group compiles 17 % faster for it.
    add_compile_options(-gline-tables-only -fsanitize=fuzzer-no-link
      -fno-sanitize=null,alignment,vptr,object-size,pointer-overflow)
  endif()
endif()

find_program(RECKON_CCACHE ccache)
if(RECKON_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Tests have a precompiled header: ccache keeps what is compiled with one only where it may take its macros for granted.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros ${RECKON_CCACHE})
endif()
find_program(RECKON_MOLD mold)
if(RECKON_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
