# What is installed, and what `make package` (scripts/package) makes of it: a .deb and an archive. docs/releasing.md.
include(GNUInstallDirs)
install(TARGETS reckon reckon-worker)
install(DIRECTORY catalogs scenarios DESTINATION ${CMAKE_INSTALL_DATADIR}/reckon)
if(NOT RECKON_PACKAGE)
  return()
endif()

# For the archive: `reckon` without any shared library, and a worker that finds those of its own beside it.
set(archive ${CMAKE_BINARY_DIR}/archive)
add_library(reckon_static_parts OBJECT cmake/static/without_gloo.cpp cmake/static/without_libraries.cpp)
target_link_libraries(reckon_static_parts PRIVATE reckon_comm)
add_executable(reckon-static)
target_link_libraries(reckon-static PRIVATE reckon_static_parts reckon_commands reckon_version)
# getaddrinfo: beside another glibc a static program knows the files and the name server, no other service.
target_link_options(reckon-static PRIVATE -static-pie)
set_target_properties(reckon-static PROPERTIES LINKER_LANGUAGE CXX RECKON_STATIC ON OUTPUT_NAME reckon
                      RUNTIME_OUTPUT_DIRECTORY ${archive}/bin)
execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libc.a OUTPUT_VARIABLE libc OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libstdc++.a OUTPUT_VARIABLE libstdcxx OUTPUT_STRIP_TRAILING_WHITESPACE)
string(JOIN "\n" libraries ${libc} ${libstdcxx} ${RECKON_STATIC_LIBRARIES})
file(WRITE ${CMAKE_BINARY_DIR}/static_libraries "${libraries}\n")  # whose terms the archive holds
add_executable(reckon-worker-beside)
target_link_libraries(reckon-worker-beside PRIVATE reckon_worker_commands reckon_version)
# DT_RPATH, not DT_RUNPATH: it serves the libraries of the libraries as well.
target_link_options(reckon-worker-beside PRIVATE -Wl,--disable-new-dtags)
set_target_properties(reckon-worker-beside PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME reckon-worker BUILD_RPATH "$ORIGIN/../lib/reckon"
                      RUNTIME_OUTPUT_DIRECTORY ${archive}/bin)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME reckon)
set(RECKON_MAINTAINER "reckon maintainers <reckon-maintainers@lists.invalid>" CACHE STRING "Who answers for the .deb")
set(CPACK_PACKAGE_CONTACT "${RECKON_MAINTAINER}")
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "bash-completion")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "kubernetes-client")
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "cluster simulator and capacity planner for machine-learning training")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"reckon answers what a training run will take and cost before anyone pays for
it. A scenario file says what is trained and on which cluster; reckon simulates
the cluster with its spot reclaims, autoscaling and failures, and says time,
cost and their range. It searches for the cheapest hardware and layout, runs
jobs on this machine or on Kubernetes, and compares runs with their forecast.
.
Catalogs of accelerators, machines and prices come with it.")
# Man pages, completions, changelog and copyright, which scripts/package writes before it calls cpack.
install(DIRECTORY ${CMAKE_BINARY_DIR}/package-files/ DESTINATION .)
include(CPack)
