#pragma once
// The command lines of Open MPI's launcher: the one that the head runs, and what of the one that it
// wants run on other nodes is let through. Tried with Open MPI 4.1. Pure.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "agent/core/messages.h"

namespace param::agent {

// Arguments of mpirun, without the program's name. `shim` is called for each host as
// "SHIM... HOST orted ARGS..."; no word of it may hold a space. `worker` is what each rank runs,
// looked up by the daemon of its node. REQUIRES: plan.hosts is not empty.
std::vector<std::string> MpirunArgs(const LaunchPlan& plan, absl::Span<const std::string> shim,
                                    absl::Span<const std::string> worker);

// Arguments for orted on `host`, without the program's name, from what mpirun gave the shim behind
// the host: "orted" and pairs "-mca KEY VALUE". PERMISSION_DENIED names the first word that is not
// let through:
//  - a program that is not orted, a key that is not listed, anything that is not such a pair;
//  - a value that the key does not take: most have one only, or must be what the plan says;
//  - a place to connect to that is none of the head's addresses.
// Values come quoted as for a shell and go on as they are meant; no shell ever sees them. What
// mpirun says of its shim is left out: a daemon starts no others.
absl::StatusOr<std::vector<std::string>> OrtedArgs(absl::Span<const std::string> given,
                                                   const LaunchPlan& plan, absl::string_view host);

// Variables by which the launcher and its ranks find each other, and what MpirunArgs() sets for
// them. Nothing else of what a rank's helper hands over reaches the rank: a variable of the library
// can name an object to be loaded (OMPI_MCA_mca_base_component_path).
bool IsForRank(absl::string_view name);

}  // namespace param::agent
