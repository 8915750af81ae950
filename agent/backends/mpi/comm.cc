// Communicators: all of the job's ranks meet first, with a deadline, and then MPI makes them.

#include <sys/random.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <thread>

#include "agent/backends/mpi/state.h"

namespace param::mpi {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMeetingTag = 1;  // MPI_COMM_WORLD carries nothing else of ours
constexpr int kAbortGraceMs = 100;
constexpr int kStoppedExit = 3;  // as a worker that was told to stop
constexpr std::size_t kMaxNamed = 8;

// When to stop waiting for others.
class Patience {
 public:
  Patience(param_ctx* ctx, std::int64_t deadline_ns)
      : ctx_(ctx), limited_(deadline_ns > 0), end_(Clock::now()), deadline_ns_(deadline_ns) {
    if (limited_) end_ += std::chrono::nanoseconds(deadline_ns);
  }

  // Fills `err` when it is time to go. `missing` says who is waited for.
  template <typename Missing>
  std::int32_t Check(param_error* err, const Missing& missing) const {
    if (ctx_->aborted.load(std::memory_order_relaxed)) return Aborted(err);
    const param_host& host = *ctx_->host;
    if (host.cancelled != nullptr && host.cancelled(host.user) != 0) {
      return kit::Fail(err, kit::kCancelled, "the job was cancelled while waiting for %s",
                       missing().c_str());
    }
    if (limited_ && Clock::now() >= end_) {
      return kit::Fail(err, kit::kDeadlineExceeded, "nothing from %s within %.3f s",
                       missing().c_str(), static_cast<double>(deadline_ns_) * 1e-9);
    }
    return kit::kOk;
  }

 private:
  param_ctx* ctx_;
  bool limited_;
  Clock::time_point end_;
  std::int64_t deadline_ns_;
};

// What a rank tells every other one. On the wire as it is: the ranks run the same program.
struct Card {
  std::uint8_t id[PARAM_COMM_ID_BYTES] = {};
  std::int32_t rank = 0, size = 0;  // in the communicator that it wants
};

// Every rank of the world sends its card to every other: all pairs are connected before anything is
// timed, and at the deadline it is known who is missing. Messages between pairs, since a collective
// does not say whom it waits for.
class Meeting {
 public:
  Meeting(int world_rank, int world_size, const Card& mine)
      : cards_(static_cast<std::size_t>(world_size)),
        receives_(cards_.size(), MPI_REQUEST_NULL),
        sends_(cards_.size(), MPI_REQUEST_NULL),
        rank_(world_rank) {
    cards_[static_cast<std::size_t>(world_rank)] = mine;
  }

  int Start() {
    constexpr int kBytes = static_cast<int>(sizeof(Card));
    for (std::size_t i = 0; i < cards_.size(); ++i) {
      if (i == static_cast<std::size_t>(rank_)) continue;
      const int peer = static_cast<int>(i);
      int code =
          MPI_Irecv(&cards_[i], kBytes, MPI_BYTE, peer, kMeetingTag, MPI_COMM_WORLD, &receives_[i]);
      if (code != MPI_SUCCESS) return code;
      code = MPI_Isend(&cards_[static_cast<std::size_t>(rank_)], kBytes, MPI_BYTE, peer,
                       kMeetingTag, MPI_COMM_WORLD, &sends_[i]);
      if (code != MPI_SUCCESS) return code;
    }
    return MPI_SUCCESS;
  }

  int Test(int* done) {
    const int count = static_cast<int>(cards_.size());
    int received = 0;
    int sent = 0;
    const int code = MPI_Testall(count, receives_.data(), &received, MPI_STATUSES_IGNORE);
    if (code != MPI_SUCCESS) return code;
    *done = 0;
    const int sending = MPI_Testall(count, sends_.data(), &sent, MPI_STATUSES_IGNORE);
    if (sending == MPI_SUCCESS) *done = received != 0 && sent != 0 ? 1 : 0;
    return sending;
  }

  // "ranks 2, 5 of 8"
  std::string Missing() {
    std::string text;
    std::size_t missing = 0;
    for (std::size_t i = 0; i < cards_.size(); ++i) {
      int received = 1;
      int sent = 1;
      MPI_Request_get_status(receives_[i], &received, MPI_STATUS_IGNORE);
      MPI_Request_get_status(sends_[i], &sent, MPI_STATUS_IGNORE);
      if (received != 0 && sent != 0) continue;
      if (++missing <= kMaxNamed) text += (text.empty() ? "" : ", ") + std::to_string(i);
    }
    if (missing > kMaxNamed) text += " and " + std::to_string(missing - kMaxNamed) + " more";
    return (missing == 1 ? "rank " : "ranks ") + text + " of " + std::to_string(cards_.size());
  }

  const std::vector<Card>& cards() const { return cards_; }

 private:
  std::vector<Card> cards_;
  std::vector<MPI_Request> receives_, sends_;
  int rank_;
};

std::int32_t Meet(param_ctx* ctx, const Patience& patience, const Card& mine,
                  std::vector<Card>* cards, param_error* err) {
  auto meeting = std::make_unique<Meeting>(ctx->host->rank, ctx->host->size, mine);
  int code = meeting->Start();
  for (int done = 0; code == MPI_SUCCESS;) {
    code = meeting->Test(&done);
    if (code != MPI_SUCCESS) break;
    if (done != 0) {
      *cards = meeting->cards();
      return kit::kOk;
    }
    const std::int32_t stop = patience.Check(err, [&] { return meeting->Missing(); });
    if (stop != kit::kOk) {
      ctx->broken = true;
      (void)meeting.release();  // MPI may still write into it
      return stop;
    }
    std::this_thread::yield();  // there may be more ranks than cores
  }
  (void)meeting.release();
  return FailWith(ctx, err, "meeting the other ranks", code);
}

// Who else wants the communicator of this id; FAILED_PRECONDITION unless they are its ranks 0 to
// size - 1. `first` is the lowest rank of the world among them, `in_order` says whether they are
// the world as it is.
std::int32_t CheckCards(const std::vector<Card>& cards, const Card& mine, int* first,
                        bool* in_order, param_error* err) {
  std::vector<int> holders(static_cast<std::size_t>(mine.size), -1);
  *first = -1;
  *in_order = mine.size == static_cast<std::int32_t>(cards.size());
  for (std::size_t i = 0; i < cards.size(); ++i) {
    const Card& card = cards[i];
    if (std::memcmp(card.id, mine.id, sizeof(mine.id)) != 0) continue;
    if (card.size != mine.size || card.rank < 0 || card.rank >= mine.size ||
        holders[static_cast<std::size_t>(card.rank)] >= 0) {
      return kit::Fail(err, kit::kFailedPrecondition,
                       "rank %zu of the job wants to be rank %d of %d; here it is rank %d of %d", i,
                       card.rank, card.size, mine.rank, mine.size);
    }
    holders[static_cast<std::size_t>(card.rank)] = static_cast<int>(i);
    if (*first < 0) *first = static_cast<int>(i);
    *in_order &= card.rank == static_cast<std::int32_t>(i);
  }
  for (std::size_t i = 0; i < holders.size(); ++i) {
    if (holders[i] >= 0) continue;
    return kit::Fail(err, kit::kFailedPrecondition,
                     "nobody came with this unique id to be rank %zu of %d", i, mine.size);
  }
  return kit::kOk;
}

std::string TheOthers() { return "the other ranks"; }

// Ends `request` or leaves it behind.
std::int32_t Await(param_ctx* ctx, const Patience& patience, const char* call, MPI_Request* request,
                   param_error* err) {
  while (true) {
    int done = 0;
    const int code = MPI_Test(request, &done, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) return FailWith(ctx, err, call, code);
    if (done != 0) return kit::kOk;
    if (const std::int32_t stop = patience.Check(err, TheOthers); stop != kit::kOk) {
      ctx->broken = true;
      return stop;
    }
    std::this_thread::yield();
  }
}

std::int32_t Describe(param_ctx* ctx, param_comm* comm, param_error* err) {
  int code = MPI_Comm_set_errhandler(comm->handle, MPI_ERRORS_RETURN);
  if (code == MPI_SUCCESS) code = MPI_Comm_rank(comm->handle, &comm->rank);
  if (code == MPI_SUCCESS) code = MPI_Comm_size(comm->handle, &comm->size);
  if (code != MPI_SUCCESS) return FailWith(ctx, err, "the new communicator", code);
  return kit::kOk;
}

// All of the world take part, in groups by id.
std::int32_t Make(param_ctx* ctx, const Patience& patience, const Card& mine,
                  std::unique_ptr<param_comm> comm, param_comm** out, param_error* err) {
  std::vector<Card> cards;
  int first = 0;
  bool in_order = false;
  PARAM_KIT_TRY(Meet(ctx, patience, mine, &cards, err));
  PARAM_KIT_TRY(CheckCards(cards, mine, &first, &in_order, err));
  if (in_order) {
    MPI_Request request = MPI_REQUEST_NULL;
    param_comm* const pending = comm.release();  // MPI writes the handle when it is done
    const int code = MPI_Comm_idup(MPI_COMM_WORLD, &pending->handle, &request);
    if (code != MPI_SUCCESS) return FailWith(ctx, err, "MPI_Comm_idup", code);
    PARAM_KIT_TRY(Await(ctx, patience, "MPI_Comm_idup", &request, err));
    comm.reset(pending);
  } else {
    // Has no non-blocking form, but all ranks have arrived.
    const int code = MPI_Comm_split(MPI_COMM_WORLD, first, mine.rank, &comm->handle);
    if (code != MPI_SUCCESS) return FailWith(ctx, err, "MPI_Comm_split", code);
  }
  PARAM_KIT_TRY(Describe(ctx, comm.get(), err));
  *out = comm.release();
  return kit::kOk;
}

}  // namespace

// MPI needs none; it tells communicators apart.
std::int32_t UniqueId(param_ctx*, std::uint8_t id[PARAM_COMM_ID_BYTES], param_error* err) {
  std::memset(id, 0, PARAM_COMM_ID_BYTES);
  constexpr std::size_t kRandom = 32;
  if (getrandom(id, kRandom, 0) == static_cast<ssize_t>(kRandom)) return kit::kOk;
  return kit::Fail(err, kit::kUnavailable, "the system gives no random bytes");
}

// Every rank of the job must call at the same time, also where it wants another communicator than
// the others: those with the same id get one together.
std::int32_t CommCreate(param_ctx* ctx, const std::uint8_t id[PARAM_COMM_ID_BYTES],
                        std::int32_t rank, std::int32_t size, std::int64_t deadline_ns,
                        param_comm** out, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    const param_host& host = *ctx->host;
    if (size < 1 || size > host.size || rank < 0 || rank >= size) {
      return kit::Fail(err, kit::kInvalidArgument, "rank %d of %d in a job of %d", rank, size,
                       host.size);
    }
    if (ctx->broken) {
      return kit::Fail(err, kit::kFailedPrecondition, "an earlier call of MPI did not end well");
    }
    if (host.progress != nullptr) host.progress(host.user, "connect");
    Card mine;
    std::memcpy(mine.id, id, sizeof(mine.id));
    mine.rank = rank;
    mine.size = size;
    return Make(ctx, Patience(ctx, deadline_ns), mine, std::make_unique<param_comm>(), out, err);
  });
}

// Color -1: a rank that takes part and gets no communicator; `*out` is null.
std::int32_t CommSplit(param_ctx* ctx, param_comm* comm, std::int32_t color, std::int32_t key,
                       param_comm** out, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    if (color < -1) return kit::Fail(err, kit::kInvalidArgument, "color %d", color);
    // MPI_Comm_split cannot be watched; waiting for the others can.
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_Ibarrier(comm->handle, &request);
    if (code != MPI_SUCCESS) return FailWith(ctx, err, "MPI_Ibarrier", code);
    PARAM_KIT_TRY(Await(ctx, Patience(ctx, 0), "MPI_Ibarrier", &request, err));
    auto made = std::make_unique<param_comm>();
    code = MPI_Comm_split(comm->handle, color < 0 ? MPI_UNDEFINED : color, key, &made->handle);
    if (code != MPI_SUCCESS) return FailWith(ctx, err, "MPI_Comm_split", code);
    *out = nullptr;
    if (made->handle == MPI_COMM_NULL) return kit::kOk;
    PARAM_KIT_TRY(Describe(ctx, made.get(), err));
    *out = made.release();
    return kit::kOk;
  });
}

std::int32_t CommDestroy(param_ctx* ctx, param_comm* raw, param_error* err) {
  const std::unique_ptr<param_comm> comm(raw);
  if (ctx->aborted.load() || ctx->broken) return kit::kOk;  // nobody would answer
  const int code = MPI_Comm_free(&comm->handle);
  return code == MPI_SUCCESS ? kit::kOk : FailWith(ctx, err, "MPI_Comm_free", code);
}

void CommAbort(param_ctx* ctx, param_comm*) {
  ctx->aborted.store(true);
  // The first pause comes before the first look: by then a call that had not seen the flag has
  // become visible, without a fence on the hot path.
  for (int i = 0; i < kAbortGraceMs; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (!ctx->in_flight.load()) return;
  }
  if (ctx->host->log != nullptr) {
    ctx->host->log(ctx->host->user, 3,
                   "aborted while a call of MPI waits for a peer, which nothing but the end of the "
                   "process ends: exiting");
  }
  _exit(kStoppedExit);
}

std::int32_t CommAsyncError(param_ctx* ctx, param_comm*, param_error* err) {
  return ctx->aborted.load() ? Aborted(err) : kit::kOk;
}

}  // namespace param::mpi
