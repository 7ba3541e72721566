# The version is the project's (CMakeLists.txt). The commit goes into a header that is written where the commit changed;
# one small source includes it. Where there is no repository, -DRECKON_COMMIT=... says it.
set(RECKON_COMMIT "" CACHE STRING "The commit that is built; empty: what git says")
set(RECKON_COMMIT_DIRECTORY ${CMAKE_BINARY_DIR}/version)
add_custom_target(reckon_commit
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR} -DHEADER=${RECKON_COMMIT_DIRECTORY}/reckon_commit.h
          -DCOMMIT=${RECKON_COMMIT} -P ${CMAKE_SOURCE_DIR}/cmake/WriteCommit.cmake
  BYPRODUCTS ${RECKON_COMMIT_DIRECTORY}/reckon_commit.h
  COMMENT "")
