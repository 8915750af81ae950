#pragma once
// Jobs and nodes with fixed numbers for golden files.

#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "param/v1/job.pb.h"
#include "param/v1/node.pb.h"
#include "proto/catalog/cases.h"
#include "proto/convert/values.h"

namespace param {

inline constexpr std::int64_t kSubmittedNs = 1'700'000'000'000'000'000;

inline void AddMeasurement(v1::CaseResult* result, int rank, const std::string& metric,
                           const std::string& unit, double p50, int slowest_rank = -1) {
  v1::Measurement* m = result->add_measurements();
  m->set_rank(rank);
  m->set_metric(metric);
  m->set_unit(unit);
  v1::Summary* s = m->mutable_summary();
  s->set_n(rank < 0 ? 40 : 20);
  s->set_min(p50 * 0.875);
  s->set_p50(p50);
  s->set_p75(p50 * 1.125);
  s->set_p95(p50 * 1.25);
  s->set_p99(p50 * 1.5);
  s->set_max(p50 * 2);
  s->set_mean(p50);
  s->set_stdev(p50 / 64);
  s->set_ci95_low(p50 * 0.96875);
  s->set_ci95_high(p50 * 1.03125);
  s->set_slowest_rank(slowest_rank);
}

// A gemm case of two ranks on n1 and n2, n2 being a quarter slower.
inline v1::CaseResult SampleCase(int index, int size, v1::CaseStatus status) {
  const BenchmarkSpec& gemm = **FindBenchmark("gemm");
  const std::string text = absl::StrCat(size);
  const Case planned = ExpandCases(gemm, {{"m", text}, {"n", text}})->front();
  v1::CaseResult result;
  result.set_case_index(index);
  result.set_case_id(planned.id);
  ParamsToProto(planned.params, result.mutable_params());
  result.set_status(status);
  if (status != v1::PASSED) result.set_reason("rank 1: element 17 is 4.5, not 4.25");
  (*result.mutable_info())["library"] = "onednn 2.6.0 sgemm";
  const double time = size * 1e-6;
  AddMeasurement(&result, -1, "time", "s", time, 1);
  AddMeasurement(&result, -1, "flops", "FLOP/s", 2.0 * size * size * 1024 / time);
  AddMeasurement(&result, -1, "efficiency", "1", 0.75);
  AddMeasurement(&result, 0, "time", "s", time);
  AddMeasurement(&result, 1, "time", "s", time * 1.25);
  AddMeasurement(&result, -1, "time", "s", time / 4);
  (*result.mutable_measurements(5)->mutable_labels())["phase"] = "copy";
  result.mutable_measurements(5)->mutable_summary()->set_stdev(
      std::numeric_limits<double>::quiet_NaN());
  for (int rank = 0; rank < 2; ++rank) {
    v1::RankStatus* at = result.add_ranks();
    at->set_rank(rank);
    at->set_node(absl::StrCat("n", rank + 1));
    at->set_status(rank == 0 ? v1::PASSED : status);
    if (rank == 1) at->set_reason(result.reason());
  }
  return result;
}

inline v1::Job SampleJob(v1::JobState state) {
  v1::Job job;
  job.set_job_id("j-4k7q2mzd6b");
  v1::JobSpec* spec = job.mutable_spec();
  spec->set_benchmark("gemm");
  (*spec->mutable_params())["m"] = "256,512";
  spec->set_nodes(2);
  spec->set_backend("auto");
  spec->set_name("nightly");
  spec->set_source("cli");
  job.set_benchmark_version(1);
  job.set_state(state);
  job.set_owner("local");
  job.add_nodes("n1");
  job.add_nodes("n2");
  job.set_ranks(2);
  job.set_backend("cpu");
  job.set_attempt(1);
  v1::Timeline* times = job.mutable_timeline();
  times->set_submitted(kSubmittedNs);
  times->set_placed(kSubmittedNs + 50'000'000);
  times->set_spawned(kSubmittedNs + 80'000'000);
  times->set_rendezvous(kSubmittedNs + 90'000'000);
  times->set_warmup(kSubmittedNs + 100'000'000);
  times->set_first_timed(kSubmittedNs + 120'000'000);
  times->set_finished(kSubmittedNs + 3'250'000'000);
  job.set_cases_total(2);
  job.set_cases_done(2);
  return job;
}

inline v1::GetJobResponse SampleResponse(v1::JobState state, v1::CaseStatus second) {
  v1::GetJobResponse response;
  *response.mutable_job() = SampleJob(state);
  *response.add_cases() = SampleCase(0, 256, v1::PASSED);
  *response.add_cases() = SampleCase(1, 512, second);
  for (int rank = 0; rank < 2; ++rank) {
    v1::RankEnvironment* environment = response.add_environment();
    environment->set_rank(rank);
    environment->set_node(absl::StrCat("n", rank + 1));
    (*environment->mutable_facts())["governor"] = "performance";
    (*environment->mutable_facts())["threads"] = "1";
    (*environment->mutable_facts())["library.onednn"] = "2.6.0";
    (*environment->mutable_facts())["kernel"] = rank == 0 ? "Linux 6.1" : "Linux 6.2";
  }
  return response;
}

inline v1::Node SampleNode(const std::string& name, const std::string& state) {
  v1::Node node;
  node.set_name(name);
  node.set_state(state);
  (*node.mutable_labels())["rack"] = "a";
  node.set_last_seen_ns(kSubmittedNs - 3'000'000'000);
  node.set_agent_version("0.1.0");
  node.set_address("ipv4:10.0.0.3:40112");
  v1::Inventory* inventory = node.mutable_inventory();
  inventory->set_hostname("host-1");
  inventory->set_kernel("Linux 6.1");
  inventory->set_cpu_model("Some CPU @ 2.0GHz");
  inventory->set_cores(8);
  inventory->set_sockets(1);
  inventory->set_numa_nodes(1);
  inventory->set_memory_bytes(std::int64_t{16} << 30);
  inventory->set_governor("powersave");
  v1::Nic* nic = inventory->add_nics();
  nic->set_name("eth0");
  nic->set_driver("ena");
  nic->set_speed_bits_per_second(25'000'000'000);
  nic->set_state("up");
  v1::BackendStatus* cpu = inventory->add_backends();
  cpu->set_name("cpu");
  cpu->set_installed(true);
  cpu->set_loadable(true);
  cpu->set_usable(true);
  cpu->set_devices(1);
  cpu->add_tables("device");
  cpu->add_benchmarks("*");
  cpu->set_version("0.1.0");
  cpu->set_describe_json(R"({"libraries": {"onednn": "2.6.0"}})");
  v1::BackendStatus* cuda = inventory->add_backends();
  cuda->set_name("cuda");
  cuda->set_installed(true);
  cuda->set_loadable(true);
  cuda->set_reason("no CUDA-capable device: driver version is insufficient");
  for (int cpu_number = 0; cpu_number < 4; ++cpu_number) node.add_cpus(cpu_number);
  return node;
}

}  // namespace param
