# SPDX-License-Identifier: Apache-2.0
# What every target of this project shares: language level, warnings, sanitizers, and how a test is declared.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(TE_CCACHE ccache)
if(TE_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_DEPEND=1 ${TE_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
endif()
find_program(TE_MOLD mold)
if(TE_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# Two jobs of about 1 GB each are what a small machine takes.
set_property(GLOBAL PROPERTY JOB_POOLS compile=2 link=2)
set(CMAKE_JOB_POOL_COMPILE compile)
set(CMAKE_JOB_POOL_LINK link)

# Interface target with the project's warnings; generated code does not link it.
add_library(te_warnings INTERFACE)
target_compile_options(te_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror)

if(TE_SANITIZE)
  add_compile_options(-fsanitize=${TE_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TE_SANITIZE})
  if(TE_SANITIZE MATCHES undefined)
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()

# te_unity(NAME): in batches, as TE_UNITY says. One file a time is what developers want, and what shows a missing include.
function(te_unity name)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
endfunction()

# te_library(NAME [PURE] SOURCES a.cc ... [DEPS lib ...]): a static library of ours; headers are included from the tree's
# root. PURE: it asks the operating system for nothing (tests/unit/purity holds it to that), and is optimised a little under
# sanitizers too: simulations take eight times as long without, and all else is compiled in half the time.
define_property(GLOBAL PROPERTY TE_PURE_LIBRARIES)
function(te_library name)
  cmake_parse_arguments(ARG "PURE" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS} PRIVATE te_warnings)
  if(ARG_PURE)
    set_property(GLOBAL APPEND PROPERTY TE_PURE_LIBRARIES ${name})
    if(TE_SANITIZE)
      target_compile_options(${name} PRIVATE -O1)
    endif()
  endif()
  if(TE_UNITY STREQUAL all)
    te_unity(${name})
  endif()
endfunction()

# te_program(NAME SOURCES a.cc ... [DEPS lib ...]): an executable, put into BUILD/bin.
function(te_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} te_warnings)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  if(TE_SANITIZE)  # such builds are for tests; programs are built there when asked for by name
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
endfunction()

# All that te_test() declares with LABEL threads.
add_custom_target(te_thread_tests)

# te_test(NAME SOURCES a.cc ... [DEPS lib ...] LABEL unit|threads|bpf): a GoogleTest program; each of its cases is a ctest.
# threads: a unit test of code with threads or an event loop, which also runs under ThreadSanitizer.
function(te_test name)
  cmake_parse_arguments(ARG "" "LABEL" "SOURCES;DEPS" ${ARGN})
  te_program(${name} SOURCES ${ARG_SOURCES} DEPS ${ARG_DEPS} GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests EXCLUDE_FROM_ALL OFF)
  if(TE_UNITY)
    te_unity(${name})
  endif()
  if(ARG_LABEL STREQUAL threads)
    add_dependencies(te_thread_tests ${name})
  endif()
  gtest_discover_tests(${name} TEST_PREFIX ${name}. PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT 300 DISCOVERY_TIMEOUT 60)
endfunction()
