#include "proto/base/status.h"

#include <cerrno>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace param {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

absl::Status FailIf(bool fail) { return fail ? absl::AbortedError("gone") : absl::OkStatus(); }

absl::StatusOr<int> HalfOf(int value) {
  if (value % 2 != 0) return absl::InvalidArgumentError("odd");
  return value / 2;
}

absl::Status Through(bool fail, int* reached) {
  PARAM_RETURN_IF_ERROR(FailIf(fail), "rank ", 3);
  ++*reached;
  return absl::OkStatus();
}

absl::StatusOr<int> QuarterOf(int value) {
  PARAM_ASSIGN_OR_RETURN(const int half, HalfOf(value), "first half");
  PARAM_ASSIGN_OR_RETURN(const int quarter, HalfOf(half));
  return quarter;
}

TEST(Annotate, PutsContextBeforeTheMessage) {
  const absl::Status status = Annotate(absl::AbortedError("gone"), "job ", 17);
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(status.message(), "job 17: gone");
}

TEST(Annotate, KeepsPayloads) {
  absl::Status status = absl::AbortedError("gone");
  status.SetPayload("kind", absl::Cord("worker"));
  const auto payload = Annotate(status, "job").GetPayload("kind");
  ASSERT_TRUE(payload.has_value());
  EXPECT_EQ(*payload, "worker");
}

TEST(Annotate, LeavesOkAlone) { EXPECT_TRUE(Annotate(absl::OkStatus(), "job").ok()); }

TEST(ReturnIfError, LeavesWithContextOnError) {
  int reached = 0;
  EXPECT_EQ(Through(true, &reached).message(), "rank 3: gone");
  EXPECT_EQ(reached, 0);
}

TEST(ReturnIfError, GoesOnWhenOk) {
  int reached = 0;
  EXPECT_TRUE(Through(false, &reached).ok());
  EXPECT_EQ(reached, 1);
}

TEST(AssignOrReturn, AssignsOrLeavesWithContext) {
  EXPECT_EQ(*QuarterOf(8), 2);
  EXPECT_EQ(QuarterOf(7).status().message(), "first half: odd");
  EXPECT_EQ(QuarterOf(6).status().message(), "odd");
}

TEST(ErrnoStatus, ChoosesTheCodeAndNamesTheCause) {
  const absl::Status missing = ErrnoStatus(ENOENT, "open /x");
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), StartsWith("open /x: "));
  EXPECT_THAT(std::string(missing.message()), HasSubstr("No such file"));
  EXPECT_EQ(ErrnoStatus(ENOSPC, "x").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ErrnoStatus(ECONNREFUSED, "x").code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ErrnoStatus(EACCES, "x").code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(ErrnoStatus(EEXIST, "x").code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ErrnoStatus(EINVAL, "x").code(), absl::StatusCode::kInternal);
}

TEST(CodeName, NamesEveryCodeOnce) {
  std::set<std::string> names;
  for (int code = 0; code <= 16; ++code) {
    names.insert(std::string(CodeName(static_cast<absl::StatusCode>(code))));
  }
  EXPECT_EQ(names.size(), 17U);
  EXPECT_TRUE(names.contains("DATA_LOSS"));
  EXPECT_EQ(CodeName(static_cast<absl::StatusCode>(99)), "UNKNOWN");
}

}  // namespace
}  // namespace param
