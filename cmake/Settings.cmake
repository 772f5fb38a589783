# Compiler settings of every target, and the function that each of our own targets calls for its warnings.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g1")

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

set(TUNE_SANITIZE "" CACHE STRING "Sanitizers, e.g. address,undefined or thread")
if(TUNE_SANITIZE)
  add_compile_options(-fsanitize=${TUNE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -O1 -g1)
  add_link_options(-fsanitize=${TUNE_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-maybe-uninitialized)  # false alarms in <regex> and std::variant of instrumented code
  endif()
  if(TUNE_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-tsan)  # Asio's fences: g++ warns that its sanitizer does not follow them
  endif()
endif()

# Warnings for code of ours; headers of others come in as system headers and stay silent.
function(tune_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion -Wshadow)
  if(TUNE_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(${target} PRIVATE -Wthread-safety)
  endif()
endfunction()

# tune_library(NAME SOURCES ... LIBS ...): a static library of ours; headers are included from the repository's root.
function(tune_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC tune_base ${ARG_LIBS})
  tune_warnings(${name})
endfunction()

# tune_test(NAME SOURCES ... LIBS ...): a GoogleTest program build/<preset>/bin/NAME, run by tests/run.sh.
function(tune_test name)
  if(NOT TUNE_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  # Only where they are used, so that a compiler cache serves the other files in every checkout.
  foreach(source ${ARG_SOURCES})
    file(STRINGS ${source} uses REGEX "TUNE_SOURCE_DIR|TUNE_BIN_DIR" LIMIT_COUNT 1)
    if(uses)
      set_source_files_properties(${source} PROPERTIES COMPILE_DEFINITIONS
        "TUNE_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\";TUNE_BIN_DIR=\"${CMAKE_RUNTIME_OUTPUT_DIRECTORY}\"")
    endif()
  endforeach()
  target_link_libraries(${name} PRIVATE tune_base ${ARG_LIBS} GTest::gmock GTest::gtest_main)
  tune_warnings(${name})
  add_test(NAME ${name} COMMAND ${name})
endfunction()
