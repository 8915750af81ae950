// Results of other tools: stored as they come, never scheduled.

#include <utility>

#include "proto/base/status.h"
#include "server/core/coordinator.h"
#include "server/core/import.h"

namespace param {

void Coordinator::Import(const std::string& principal, const std::string& request_id,
                         const ImportRequest& request, Reply<Job> reply) {
  if (request_id.empty()) {
    reply(absl::InvalidArgumentError("request_id is empty: it makes a repeated import harmless"));
    return;
  }
  absl::StatusOr<ImportPlan> plan =
      PlanImport(request, principal, request_id, MakeId(random_, "j-"), Now());
  if (!plan.ok()) {
    reply(plan.status());
    return;
  }
  const Job job = plan->job;
  store_.Submit(std::move(plan->writes), [this, job, request_id, reply](absl::Status stored) {
    post_([this, job, request_id, reply, stored] {
      if (absl::IsAlreadyExists(stored)) {  // the same request, asked twice
        reply(store_.FindByRequest(request_id));
        return;
      }
      if (!stored.ok()) {
        reply(Annotate(stored, "storing the imported results"));
        return;
      }
      log_.Info("results imported", {F("job", job.job_id), F("benchmark", job.spec.benchmark),
                                     F("source", job.spec.source), F("cases", job.cases_total)});
      reply(job);
    });
  });
}

}  // namespace param
