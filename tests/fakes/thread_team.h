#pragma once
// A team whose ranks are threads of one process.
//
//   ThreadTeam team(3);
//   team.Run([](Team& mine) { ... });   // on three threads at once, returns when all are done

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/bench/driver.h"
#include "proto/base/sync.h"

namespace param {

class ThreadTeam {
 public:
  explicit ThreadTeam(int size) : size_(size), next_(static_cast<std::size_t>(size)) {}

  void Run(const std::function<void(Team&)>& body) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size_; ++rank) {
      threads.emplace_back([this, rank, &body] {
        Member member(*this, rank);
        body(member);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  // Rounds that all ranks took part in.
  int rounds() const { return rounds_; }

 private:
  class Member final : public Team {
   public:
    Member(ThreadTeam& team, int rank) : team_(team), rank_(rank) {}
    int rank() const override { return rank_; }
    int size() const override { return team_.size_; }
    absl::StatusOr<std::vector<std::string>> Exchange(absl::string_view mine) override {
      return team_.Exchange(rank_, mine);
    }

   private:
    ThreadTeam& team_;
    const int rank_;
  };

  // A rank that waits this long for the others has met a bug.
  static constexpr std::chrono::seconds kPatience{20};

  absl::StatusOr<std::vector<std::string>> Exchange(int rank, absl::string_view mine) {
    MutexLock lock(mu_);
    next_[static_cast<std::size_t>(rank)] = std::string(mine);
    const int round = rounds_;
    if (++arrived_ == size_) {
      arrived_ = 0;
      last_ = next_;
      ++rounds_;
      changed_.NotifyAll();
      return last_;
    }
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (rounds_ == round) {
      if (std::chrono::steady_clock::now() > until) {
        return absl::DeadlineExceededError("the other ranks did not come to the exchange");
      }
      changed_.WaitFor(mu_, kPatience);
    }
    return last_;
  }

  const int size_;
  Mutex mu_;
  CondVar changed_;
  int arrived_ = 0;
  int rounds_ = 0;
  std::vector<std::string> next_;
  std::vector<std::string> last_;
};

// A team of one: answers at once.
class SoloTeam final : public Team {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  absl::StatusOr<std::vector<std::string>> Exchange(absl::string_view mine) override {
    ++exchanges;
    return std::vector<std::string>{std::string(mine)};
  }
  int exchanges = 0;
};

}  // namespace param
