# Warnings, standard and sanitizers on one interface target that every target of ours links.
# Nothing here is global: generated code and system headers keep their own settings.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

# The build tree mirrors the install tree, so that programs find their parts the same way in both.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(PARAM_BACKEND_DIR ${CMAKE_BINARY_DIR}/lib/param/backends)

# What is measured runs inside vendor libraries; -O3 of ours only costs build time.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

add_library(param_options INTERFACE)
target_include_directories(param_options INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/gen)
target_compile_options(param_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:
    -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wold-style-cast
    -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-qual -Wformat=2 -Wimplicit-fallthrough
    $<$<CXX_COMPILER_ID:GNU>:-Wduplicated-cond -Wduplicated-branches -Wlogical-op
      # g++ 12 sees uninitialised strings in every std::variant it inlines; ASan and valgrind do not.
      -Wno-maybe-uninitialized>
    $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
    $<$<BOOL:${PARAM_WERROR}>:-Werror>
    $<$<CONFIG:Debug>:-D_GLIBCXX_ASSERTIONS>>)

# Sanitizers and coverage concern code generation: they apply to everything, generated code too.
if(PARAM_SANITIZE)
  add_compile_options(-fsanitize=${PARAM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -O1 -g1)
  add_link_options(-fsanitize=${PARAM_SANITIZE})
endif()
if(PARAM_COVERAGE)
  add_compile_options(--coverage -O0)
  add_link_options(--coverage)
endif()

# A static library with our options; one per folder, all sources of that folder.
#   param_library(NAME SOURCES... LINKS...)
function(param_library name)
  cmake_parse_arguments(ARG "" "" "LINKS;EXTRA" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cc)
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  list(APPEND sources ${ARG_EXTRA})
  if(sources)
    add_library(${name} STATIC ${sources})
    target_link_libraries(${name} PUBLIC param_options ${ARG_LINKS})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE param_options ${ARG_LINKS})
  endif()
endfunction()
