#pragma once
// Messages between pairs: the buffers and prepared operations of one rank.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/backend/comm.h"
#include "agent/backend/device.h"
#include "agent/bench/collective_pattern.h"
#include "agent/bench/driver.h"
#include "agent/bench/fill.h"
#include "agent/bench/measure.h"

namespace param {

enum class P2pTest { kPing, kPingPong, kUni, kBi };

struct RankPair {
  int source = 0, destination = 1;
};

// What a case asks for, checked; the same answer on every rank.
struct P2pOrder {
  bool matrix = false;
  P2pTest test = P2pTest::kPingPong;
  std::vector<RankPair> pairs;  // of matrix: every ordered pair
  std::int64_t size = 8;
  std::int64_t window = 64;
  bool barrier = true;
  int ranks = 2;
  Fill fill = Fill::kNormal;
  Injection injection;
};

// INVALID_ARGUMENT for one rank alone, ranks out of range, a rank in two pairs, lists of unequal
// length.
absl::StatusOr<P2pOrder> P2pOrderOf(const CaseContext& context);

// The pair that `rank` belongs to, if any.
std::optional<RankPair> PairOf(const std::vector<RankPair>& pairs, int rank);

// Whether `rank` is the end of `pair` whose time tells: of ping the receiver, to whom the message
// has come; of ping_pong and uni the source, which hears of its end; of bi both.
bool Tells(P2pTest test, const RankPair& pair, int rank);

// Output bytes that `rank` can check in one iteration.
std::int64_t ReceivedBy(const P2pOrder& order, int rank);

// What one rank sends and receives with one peer. Steps as in CollectiveCase: CreateOps may be
// refused, Allocate costs memory; the rest is collective over the pair.
class P2pLink {
 public:
  // All borrowed.
  P2pLink(const CaseContext& context, const P2pOrder& order, Device& device, Stream& stream);

  // Prepares for a pair; a rank outside it stays idle.
  absl::Status CreateOps(P2pTest test, const RankPair& pair);
  // One buffer to send from, one to receive into.
  absl::Status Allocate();
  absl::Status FillInputs();

  // One iteration of the test.
  absl::Status Run();
  // Runs once and compares what came in; "" or what is wrong.
  absl::StatusOr<std::string> Check(std::int64_t* checked);

  absl::StatusOr<std::string> Info() const;

 private:
  bool windowed() const { return test_ == P2pTest::kUni || test_ == P2pTest::kBi; }
  // Receives in its test.
  bool receives() const {
    return !is_source_ || test_ == P2pTest::kPingPong || test_ == P2pTest::kBi;
  }
  absl::StatusOr<CommOp> Prepare(const char* name, int peer, std::int64_t bytes, int tag) const;
  absl::Status RunWindow();

  const CaseContext& context_;
  const P2pOrder& order_;
  Device& device_;
  Stream& stream_;
  P2pTest test_ = P2pTest::kPingPong;
  int peer_ = -1;
  bool is_source_ = false;
  CommOp send_, receive_;  // the messages
  CommOp answer_, heard_;  // the short one that ends a window
  Buffer out_, in_;
};

}  // namespace param
