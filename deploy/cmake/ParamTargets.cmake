# Helpers for the kinds of things the project is made of.

# `programs`: what is installed, so that it can be built without the tests.
add_custom_target(programs)
function(param_collect_programs)
  foreach(program param-server param-agent param-worker paramctl)
    if(TARGET ${program})
      add_dependencies(programs ${program})
    endif()
  endforeach()
endfunction()
cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL param_collect_programs)

# Embeds text files as string constants: param_embed(TARGET OUT_HEADER NAMESPACE_NAME FILES...)
# The header declares `absl::Span<const EmbeddedFile> NAME()`, sorted by path.
function(param_embed out_cc name)
  add_custom_command(
    OUTPUT ${out_cc}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out_cc} -DNAME=${name} "-DFILES=${ARGN}" -DROOT=${CMAKE_SOURCE_DIR}
            -P ${CMAKE_SOURCE_DIR}/deploy/cmake/embed.cmake
    DEPENDS ${ARGN} ${CMAKE_SOURCE_DIR}/deploy/cmake/embed.cmake
    VERBATIM)
endfunction()

# Adds a benchmark: its descriptor proto/catalog/ID.cc and its driver agent/bench/ID.cc.
# Both lists are generated from this one line; there are no static initialisers.
function(param_add_benchmark id)
  set_property(GLOBAL APPEND PROPERTY PARAM_BENCHMARKS ${id})
endfunction()

# Writes the generated list of descriptors (kind = Spec) or drivers (kind = Driver).
#   For ID = gemm: `const BenchmarkSpec& GemmSpec();` and `const BenchmarkDriver& GemmDriver();`
function(param_write_benchmark_list out kind type header function)
  get_property(ids GLOBAL PROPERTY PARAM_BENCHMARKS)
  set(declarations "")
  set(entries "")
  foreach(id ${ids})
    string(REPLACE "_" ";" words ${id})
    set(camel "")
    foreach(word ${words})
      string(SUBSTRING ${word} 0 1 first)
      string(TOUPPER ${first} first)
      string(SUBSTRING ${word} 1 -1 rest)
      string(APPEND camel ${first}${rest})
    endforeach()
    string(APPEND declarations "const ${type}& ${camel}${kind}();\n")
    string(APPEND entries "  list.push_back(&${camel}${kind}());\n")
  endforeach()
  file(CONFIGURE OUTPUT ${out} CONTENT
"// Generated from param_add_benchmark(); do not edit.
#include \"${header}\"
namespace param {
${declarations}
const std::vector<const ${type}*>& ${function}() {
  static const auto* const all = [] {
    auto* made = new std::vector<const ${type}*>();
    auto& list = *made;
${entries}    return made;
  }();
  return *all;
}
}  // namespace param
" @ONLY)
endfunction()

# Adds a backend: a loadable object in lib/param/backends/NAME/ with its manifest.
#   param_add_backend(NAME SOURCES... LINKS... [MANIFEST manifest.json.in])
# A MANIFEST is a template: @VARIABLES@ of the calling folder are replaced.
function(param_add_backend name)
  cmake_parse_arguments(ARG "" "MANIFEST" "SOURCES;LINKS" ${ARGN})
  set(target param_backend_${name})
  add_library(${target} MODULE ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE param_options ${ARG_LINKS})
  set_target_properties(${target} PROPERTIES
    PREFIX "" OUTPUT_NAME "${name}"
    LIBRARY_OUTPUT_DIRECTORY ${PARAM_BACKEND_DIR}/${name}
    CXX_VISIBILITY_PRESET hidden C_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_compile_definitions(${target} PRIVATE PARAM_BACKEND_VERSION="${PROJECT_VERSION}")
  # Hidden visibility leaves instantiated templates of the standard library visible; the version
  # script does not. So nothing in a worker can bind to a backend's copies, nor the other way round.
  target_link_options(${target} PRIVATE
    -Wl,-Bsymbolic -Wl,--version-script=${CMAKE_SOURCE_DIR}/deploy/cmake/backend.map)
  set_target_properties(${target} PROPERTIES LINK_DEPENDS ${CMAKE_SOURCE_DIR}/deploy/cmake/backend.map)
  if(NOT PARAM_SANITIZE)
    target_link_options(${target} PRIVATE -Wl,-z,defs)
  endif()
  if(ARG_MANIFEST)
    configure_file(${ARG_MANIFEST} ${PARAM_BACKEND_DIR}/${name}/manifest.json @ONLY)
  else()
    configure_file(manifest.json ${PARAM_BACKEND_DIR}/${name}/manifest.json COPYONLY)
  endif()
  set_property(GLOBAL APPEND PROPERTY PARAM_BACKENDS ${name})
  add_dependencies(programs ${target})
endfunction()
