# One library a folder, and the include rules of docs/ARCHITECTURE.md enforced by the compiler.
#
# Sources write `#include "sim/step/step.h"`. Each folder is exposed through a directory of its own that holds
# nothing but a link to that folder, so a target sees only the headers of the folders that it links.
function(reckon_expose target folder)
  set(view ${CMAKE_BINARY_DIR}/include/${target})
  get_filename_component(parent ${folder} DIRECTORY)
  file(MAKE_DIRECTORY ${view}/${parent})
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/${folder} ${view}/${folder} SYMBOLIC)
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${view}>)
endfunction()

# Several sources of a target compiled as one: headers are parsed and templates instantiated once for all of them. Each
# source still stands by itself (RECKON_UNITY=OFF, as for clang-tidy), so names in unnamed namespaces are a folder's own.
#
# A function in an unnamed namespace has a name of its own in its library (scripts/own-names, a part of `make lint`): in one
# group the other file's would be an overload, which a call may take without a word.
function(reckon_unity target)
  if(RECKON_UNITY)
    set(batch 48)
    if(RECKON_SANITIZE)
      set(batch 24)  # clang took over 100 CPU s for an instrumented group of 48
    endif()
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
  endif()
endfunction()

# reckon_folder(name folder WITH subfolders... USES public-targets... PRIVATE private-targets...): one library of the
# folder's sources and of those in the subfolders that are no folder of their own.
function(reckon_folder name folder)
  cmake_parse_arguments(ARG "" "" "WITH;USES;PRIVATE" ${ARGN})
  set(patterns ${CMAKE_SOURCE_DIR}/${folder}/*.cpp)
  foreach(subfolder ${ARG_WITH})
    list(APPEND patterns ${CMAKE_SOURCE_DIR}/${folder}/${subfolder}/*.cpp)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  if(sources)
    add_library(reckon_${name} STATIC ${sources})
  else()  # a folder that has headers only, for now
    file(WRITE ${CMAKE_BINARY_DIR}/empty_${name}.cpp "")
    add_library(reckon_${name} STATIC ${CMAKE_BINARY_DIR}/empty_${name}.cpp)
  endif()
  set_target_properties(reckon_${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(reckon_${name} PUBLIC ${ARG_USES} PRIVATE ${ARG_PRIVATE} reckon_warnings)
  reckon_expose(reckon_${name} ${folder})
  reckon_unity(reckon_${name})
endfunction()

# Folders of what runs once a command: reading, writing and formatting text. g++ takes a third less time over them than at -O3.
function(reckon_runs_once)
  foreach(name ${ARGN})
    target_compile_options(reckon_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  endforeach()
endfunction()

# A folder whose time goes into loops over numbers: optimised in debug builds too, where its tests would take minutes.
function(reckon_numeric name)
  if(RECKON_SANITIZE)
    target_compile_options(reckon_${name} PRIVATE -O1)  # instrumented loops at -O3 take minutes to compile
  else()
    target_compile_options(reckon_${name} PRIVATE -O3)
  endif()
endfunction()

# executor/train/products/matrix_*.cpp hold the same products for three instruction sets; matrix.cpp chooses at run time.
function(reckon_matrix_products folder)
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    return()
  endif()
  # Eigen's products under the sanitizers take minutes to compile and find nothing of ours: what calls them is looked at.
  set(sanitized "")
  if(RECKON_SANITIZE)
    # At -O1 g++ 12 warns about its own avx512fintrin.h: GCC bug 105593.
    set(sanitized "-fno-sanitize=all;-O1;-Wno-uninitialized;-Wno-maybe-uninitialized")
  endif()
  set_source_files_properties(${CMAKE_SOURCE_DIR}/${folder}/matrix_baseline.cpp PROPERTIES COMPILE_OPTIONS "${sanitized}")
  set_source_files_properties(${CMAKE_SOURCE_DIR}/${folder}/matrix_avx2.cpp PROPERTIES
    COMPILE_OPTIONS "${sanitized};-mavx2;-mfma")
  set_source_files_properties(${CMAKE_SOURCE_DIR}/${folder}/matrix_avx512.cpp PROPERTIES
    COMPILE_OPTIONS "${sanitized};-mavx512f;-mavx512dq;-mavx512bw;-mavx512vl;-mfma")
endfunction()
