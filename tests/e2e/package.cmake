# The tarball's test. Needs an optimised build without instrumentation: that is what is packed.
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT PARAM_SANITIZE AND NOT PARAM_COVERAGE)
  add_test(NAME package.relocatable
    COMMAND ${CMAKE_CURRENT_LIST_DIR}/package_test.sh ${CMAKE_BINARY_DIR})
  set_tests_properties(package.relocatable PROPERTIES LABELS package RUN_SERIAL ON TIMEOUT 300)
endif()
