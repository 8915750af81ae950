# Writes OUT from IN with the source revision of ROOT, anew only when that changed; run at build time
# by proto/CMakeLists.txt. VERSION, COMPILER_ID and COMPILER_VERSION come from the configuration.
set(PROJECT_VERSION ${VERSION})
set(CMAKE_CXX_COMPILER_ID ${COMPILER_ID})
set(CMAKE_CXX_COMPILER_VERSION ${COMPILER_VERSION})
# Git refuses another user's checkout, but root builds in such.
execute_process(COMMAND git -c safe.directory=* describe --always --dirty --abbrev=12
                WORKING_DIRECTORY ${ROOT}
                OUTPUT_VARIABLE PARAM_REVISION OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT PARAM_REVISION)
  set(PARAM_REVISION unknown)
endif()
configure_file(${IN} ${OUT} @ONLY)
