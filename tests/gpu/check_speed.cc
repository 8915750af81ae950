#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/backend/kit_gemm.h"
#include "tests/gpu/gpu_check.h"

namespace param::gpu_check {
namespace {

constexpr int kRounds = 10;
constexpr int kIterations = 20;
// Ours chooses its algorithm by time, so it should not lose; less than this is a finding.
constexpr double kLeastRatio = 0.97;

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Nanoseconds of each iteration through the backend.
absl::Status Ours(const Device& device, Stream& stream, DeviceGemm& gemm,
                  std::vector<double>* out) {
  std::vector<Event> events;
  for (int i = 0; i < 2 * kIterations; ++i) {
    PARAM_ASSIGN_OR_RETURN(Event event, device.CreateEvent());
    events.push_back(std::move(event));
  }
  for (int i = 0; i < 2; ++i) PARAM_RETURN_IF_ERROR(gemm.Enqueue(stream));
  for (std::size_t i = 0; i < events.size(); i += 2) {
    PARAM_RETURN_IF_ERROR(events[i].Record(stream));
    PARAM_RETURN_IF_ERROR(gemm.Enqueue(stream));
    PARAM_RETURN_IF_ERROR(events[i + 1].Record(stream));
  }
  PARAM_RETURN_IF_ERROR(stream.Synchronize());
  for (std::size_t i = 0; i < events.size(); i += 2) {
    PARAM_ASSIGN_OR_RETURN(const double ns, events[i + 1].ElapsedNsSince(events[i]));
    out->push_back(ns);
  }
  return absl::OkStatus();
}

absl::Status Bare(const DeviceGemm& gemm, bare_gemm_run_fn run, std::vector<double>* out) {
  std::vector<double> ns(kIterations);
  bare_gemm bare = gemm.Bare();
  bare.iterations = kIterations;
  bare.ns = ns.data();
  char why[512] = "";
  if (run(&bare, why, sizeof(why)) != 0) {
    return absl::InternalError(absl::StrCat("bare loop: ", why));
  }
  out->insert(out->end(), ns.begin(), ns.end());
  return absl::OkStatus();
}

struct Rates {
  double ours = 0, bare = 0;  // FLOP/s at the median
  std::string info;
};

absl::StatusOr<Rates> Measure(const Device& device, const GemmShape& shape, bare_gemm_run_fn run) {
  PARAM_ASSIGN_OR_RETURN(DeviceGemm gemm, DeviceGemm::Create(device, shape, "cublaslt"));
  PARAM_ASSIGN_OR_RETURN(Stream stream, device.CreateStream());
  std::vector<double> ours;
  std::vector<double> bare;
  for (int round = 0; round < kRounds; ++round) {
    // Who goes first changes: clocks fall while a device gets warm.
    if (round % 2 == 0) PARAM_RETURN_IF_ERROR(Ours(device, stream, gemm, &ours));
    PARAM_RETURN_IF_ERROR(Bare(gemm, run, &bare));
    if (round % 2 != 0) PARAM_RETURN_IF_ERROR(Ours(device, stream, gemm, &ours));
  }
  const double flops = 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                       static_cast<double>(shape.k);
  Rates rates;
  rates.ours = flops / (Median(ours) * 1e-9);
  rates.bare = flops / (Median(bare) * 1e-9);
  PARAM_ASSIGN_OR_RETURN(rates.info, gemm.op().Info());
  return rates;
}

}  // namespace

std::vector<Row> CheckSpeed(const Device& device, bare_gemm_run_fn bare) {
  std::vector<Row> rows;
  for (const param_dtype dtype : AllTypes()) {
    for (const std::int64_t side : {std::int64_t{1024}, std::int64_t{4096}}) {
      GemmShape shape;
      shape.m = shape.n = shape.k = side;
      shape.trans_b = true;
      shape.input = dtype;
      shape.result = kit::GemmResultType(dtype);
      Row row{absl::StrCat(kit::DtypeName(dtype), " ", side, "^3 speed"), "ok", ""};
      const absl::StatusOr<Rates> rates = Measure(device, shape, bare);
      if (!rates.ok()) {
        const bool skipped = rates.status().code() == absl::StatusCode::kUnimplemented;
        row.verdict = skipped ? "skipped" : "FAILED";
        row.detail = std::string(rates.status().message());
      } else {
        const double ratio = rates->ours / rates->bare;
        if (ratio < kLeastRatio) row.verdict = "SLOW";
        row.detail =
            absl::StrFormat("%.2f TFLOP/s, bare %.2f, ratio %.3f, n %d; %s", rates->ours * 1e-12,
                            rates->bare * 1e-12, ratio, kRounds * kIterations, rates->info);
      }
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace param::gpu_check
