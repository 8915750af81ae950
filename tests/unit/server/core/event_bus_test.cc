#include "server/core/event_bus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace param {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class Watcher final : public JobWatcher {
 public:
  void Replay(std::vector<std::shared_ptr<const JobEvent>>) override {}
  bool Push(const std::shared_ptr<const JobEvent>& event, bool may_drop) override {
    seqs.push_back(event->seq);
    droppable.push_back(may_drop);
    return takes;
  }
  void Close(absl::Status status) override { closed.push_back(std::move(status)); }

  bool takes = true;
  std::vector<std::uint64_t> seqs;
  std::vector<bool> droppable;
  std::vector<absl::Status> closed;
};

template <typename Kind>
std::shared_ptr<const JobEvent> Event(const std::string& job_id, std::uint64_t seq, Kind kind) {
  auto event = std::make_shared<JobEvent>();
  event->job_id = job_id;
  event->seq = seq;
  event->kind = std::move(kind);
  return event;
}

class EventBusTest : public testing::Test {
 protected:
  std::shared_ptr<Watcher> Watching(const std::string& job_id) {
    auto watcher = std::make_shared<Watcher>();
    bus_.Subscribe(job_id, watcher);
    return watcher;
  }
  EventBus bus_;
};

TEST_F(EventBusTest, AJobsEventsReachAllItsWatchersInOrderAndNobodyElse) {
  const auto first = Watching("j-1"), second = Watching("j-1"), other = Watching("j-2");
  EXPECT_EQ(bus_.Publish(Event("j-1", 1, Job())), 0);
  EXPECT_EQ(bus_.Publish(Event("j-1", 2, std::make_shared<const CaseRecord>())), 0);
  EXPECT_THAT(first->seqs, ElementsAre(1, 2));
  EXPECT_THAT(second->seqs, ElementsAre(1, 2));
  EXPECT_THAT(other->seqs, IsEmpty());
}

TEST_F(EventBusTest, OnlyProgressMayBeDropped) {
  const auto watcher = Watching("j-1");
  bus_.Publish(Event("j-1", 1, Job()));
  bus_.Publish(Event("j-1", 2, std::make_shared<const CaseRecord>()));
  bus_.Publish(Event("j-1", 3, Progress{"timed", 0, 5}));
  EXPECT_THAT(watcher->droppable, ElementsAre(false, false, true));
}

TEST_F(EventBusTest, WatchersThatDidNotTakeItAreCountedAndHoldUpNobody) {
  const auto slow = Watching("j-1"), quick = Watching("j-1"), slow_too = Watching("j-1");
  slow->takes = slow_too->takes = false;
  EXPECT_EQ(bus_.Publish(Event("j-1", 1, Job())), 2);
  EXPECT_THAT(quick->seqs, ElementsAre(1));
}

TEST_F(EventBusTest, NobodyWatchesIsNoLoss) { EXPECT_EQ(bus_.Publish(Event("j-1", 1, Job())), 0); }

TEST_F(EventBusTest, WhoLeavesIsForgottenAndTheOthersStay) {
  const auto leaving = Watching("j-1"), staying = Watching("j-1");
  EXPECT_EQ(bus_.watchers(), 2u);
  bus_.Unsubscribe("j-1", leaving.get());
  bus_.Unsubscribe("j-1", leaving.get());     // twice is harmless
  bus_.Unsubscribe("j-none", staying.get());  // and so is another job
  EXPECT_EQ(bus_.watchers(), 1u);
  EXPECT_EQ(leaving.use_count(), 1);  // the bus holds it no more
  bus_.Publish(Event("j-1", 1, Job()));
  EXPECT_THAT(leaving->seqs, IsEmpty());
  EXPECT_THAT(staying->seqs, ElementsAre(1));
  bus_.Unsubscribe("j-1", staying.get());
  EXPECT_EQ(bus_.watchers(), 0u);
}

TEST_F(EventBusTest, TheEndClosesTheJobsWatchersOnceAndForgetsThem) {
  const auto first = Watching("j-1"), second = Watching("j-1"), other = Watching("j-2");
  bus_.CloseAll("j-1", absl::OkStatus());
  bus_.CloseAll("j-1", absl::InternalError("again"));
  EXPECT_THAT(first->closed, ElementsAre(absl::OkStatus()));
  EXPECT_THAT(second->closed, ElementsAre(absl::OkStatus()));
  EXPECT_THAT(other->closed, IsEmpty());
  EXPECT_EQ(bus_.watchers(), 1u);
  EXPECT_EQ(bus_.Publish(Event("j-1", 9, Job())), 0);
  EXPECT_THAT(first->seqs, IsEmpty());
}

}  // namespace
}  // namespace param
