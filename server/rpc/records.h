#pragma once
// The coordinator's records <-> wire messages. Pure translation, nothing is decided here.

#include "absl/status/statusor.h"
#include "param/v1/agent.pb.h"
#include "param/v1/job.pb.h"
#include "param/v1/node.pb.h"
#include "param/v1/result.pb.h"
#include "server/core/agent_port.h"
#include "server/core/event_bus.h"
#include "server/core/import.h"
#include "server/core/job.h"
#include "server/core/node.h"

namespace param {

v1::Job JobToProto(const Job& job);
JobSpec SpecFromProto(const v1::JobSpec& spec);
// INVALID_ARGUMENT: a case's status is none of an ended case.
absl::StatusOr<ImportRequest> ImportFromProto(const v1::ImportRequest& request);
v1::CaseResult CaseToProto(const CaseRecord& record);
v1::JobEvent EventToProto(const JobEvent& event);
v1::SampleBlob SamplesToProto(const SampleBlob& blob);
v1::Node NodeToProto(const NodeView& view);
// INVALID_ARGUMENT: the wire knows a state this program does not.
absl::StatusOr<JobState> StateFromProto(v1::JobState state);

Inventory InventoryFromProto(const v1::Inventory& inventory);
// For the record: protobuf's JSON mapping.
std::string InventoryJson(const v1::Inventory& inventory);
Registration RegistrationFromProto(const v1::Register& message, std::string address);
AttemptKey KeyFromProto(const v1::AttemptKey& key);
v1::ToAgent WelcomeToProto(const Welcome& welcome);
v1::ToAgent ToAgentToProto(const ToAgent& message);

}  // namespace param
