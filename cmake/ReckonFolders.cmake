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

# reckon_folder(name folder USES public-targets... PRIVATE private-targets...)
function(reckon_folder name folder)
  cmake_parse_arguments(ARG "" "" "USES;PRIVATE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.cpp)
  if(sources)
    add_library(reckon_${name} STATIC ${sources})
  else()  # a folder that has headers only, for now
    file(WRITE ${CMAKE_BINARY_DIR}/empty_${name}.cpp "")
    add_library(reckon_${name} STATIC ${CMAKE_BINARY_DIR}/empty_${name}.cpp)
  endif()
  set_target_properties(reckon_${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(reckon_${name} PUBLIC ${ARG_USES} PRIVATE ${ARG_PRIVATE} reckon_warnings)
  reckon_expose(reckon_${name} ${folder})
endfunction()
