# Compiler settings of every target, and the function that each of our own targets calls for its warnings.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g1")

# g++ collects its garbage at 128 MB by default; with room it need not, and compiles a tenth faster.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options("SHELL:--param ggc-min-heapsize=600000")
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

# Batches of files are compiled as one: each header is read once a batch, but a change of one file compiles its batch
# again. For builds from nothing; developers leave it off.
# A batch is one translation unit: names of anonymous namespaces must differ within a target.
option(TUNE_UNITY "Compile the files of a target in batches" OFF)
set(TUNE_UNITY_BATCH 32 CACHE STRING "Files a batch; 0: all of a target")
mark_as_advanced(TUNE_UNITY_BATCH)
if(TUNE_UNITY)
  set(CMAKE_UNITY_BUILD ON)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE ${TUNE_UNITY_BATCH})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-subobject-linkage)  # g++ takes the files of a batch for headers
  endif()
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

# For what runs once a command, a trial or a step, and not once a request, a candidate or a sample: a sixth less to
# compile. docs/decisions/build_in_batches.md says which libraries that is.
function(tune_cold target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# What a program loads at run time is built with it, unless TUNE_COMPANIONS is OFF (examples/quickstart.sh on a machine
# without a GPU): the program works without, and names what is missing when it is asked for.
option(TUNE_COMPANIONS "Build the libraries that tune-trainer and tune-data load (GPU, URLs, object stores) with them" ON)
function(tune_companions program)
  if(TUNE_COMPANIONS)
    add_dependencies(${program} ${ARGN})
  endif()
endfunction()

# tune_library(NAME [COLD] SOURCES ... LIBS ...): a static library of ours; headers are included from the repository's root.
function(tune_library name)
  cmake_parse_arguments(ARG "COLD" "" "SOURCES;LIBS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC tune_base ${ARG_LIBS})
  tune_warnings(${name})
  if(ARG_COLD)
    tune_cold(${name})
  endif()
endfunction()

# tune_test(NAME SOURCES ... LIBS ...): a GoogleTest program build/<preset>/bin/NAME, run by tests/run.sh.
function(tune_test name)
  if(NOT TUNE_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  set(folders "TUNE_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\"" "TUNE_BIN_DIR=\"${CMAKE_RUNTIME_OUTPUT_DIRECTORY}\"")
  if(TUNE_UNITY)
    set_target_properties(${name} PROPERTIES UNITY_BUILD_BATCH_SIZE 16)  # two batches of the largest, for two processors
    target_compile_options(${name} PRIVATE -O1)  # of the tests' own code alone: a fifth less to compile
    target_compile_definitions(${name} PRIVATE ${folders})
  else()
    # Only where they are used, so that a compiler cache serves the other files in every checkout.
    foreach(source ${ARG_SOURCES})
      file(STRINGS ${source} uses REGEX "TUNE_SOURCE_DIR|TUNE_BIN_DIR" LIMIT_COUNT 1)
      if(uses)
        set_source_files_properties(${source} PROPERTIES COMPILE_DEFINITIONS "${folders}")
      endif()
    endforeach()
  endif()
  target_link_libraries(${name} PRIVATE tune_base ${ARG_LIBS} GTest::gmock GTest::gtest_main)
  tune_warnings(${name})
  add_test(NAME ${name} COMMAND ${name})
  set_property(GLOBAL APPEND PROPERTY TUNE_TEST_PROGRAMS ${name})
endfunction()
