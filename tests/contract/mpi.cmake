# The mpi backend needs processes that mpirun started, hence a program of its own instead of threads.
if(NOT TARGET param_backend_mpi)
  return()
endif()
find_program(PARAM_MPIRUN mpirun)
mark_as_advanced(PARAM_MPIRUN)
if(NOT PARAM_MPIRUN)
  message(STATUS "tests/contract: no mpirun, the mpi backend's tests are left out")
  return()
endif()

add_executable(mpi_ranks contract/mpi_ranks.cc)
target_link_libraries(mpi_ranks PRIVATE param_collective_checks param_mpi nlohmann_json::nlohmann_json)
target_compile_definitions(mpi_ranks PRIVATE PARAM_BINARY_DIR="${CMAKE_BINARY_DIR}")
add_dependencies(mpi_ranks param_backend_mpi)
foreach(device cpu fake)
  if(TARGET param_backend_${device})
    add_dependencies(mpi_ranks param_backend_${device})
  endif()
endforeach()

# What MPI keeps until the process ends is no leak of ours.
set(environment OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 LSAN_OPTIONS=detect_leaks=0)
foreach(ranks 1 2 3 4)
  add_test(NAME contract_mpi.collectives_${ranks}_ranks
    COMMAND ${PARAM_MPIRUN} -n ${ranks} --oversubscribe --bind-to none --mca pml ob1
            --mca btl self,vader,tcp --mca mpi_yield_when_idle 1 $<TARGET_FILE:mpi_ranks> checks)
  set_tests_properties(contract_mpi.collectives_${ranks}_ranks PROPERTIES
    LABELS contract TIMEOUT 120 PROCESSORS 2 ENVIRONMENT "${environment}")
endforeach()
add_test(NAME contract_mpi.failures
  COMMAND ${CMAKE_CURRENT_LIST_DIR}/mpi_test.py $<TARGET_FILE:mpi_ranks>)
set_tests_properties(contract_mpi.failures PROPERTIES LABELS contract TIMEOUT 300 PROCESSORS 2
  ENVIRONMENT "${environment}")
