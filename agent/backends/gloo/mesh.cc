#include "agent/backends/gloo/mesh.h"

#include <gloo/common/error.h>
#include <gloo/common/logging.h>
#include <gloo/transport/address.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/unbound_buffer.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <thread>

#include "agent/backends/gloo/interface.h"

namespace param::gloo_comm {

namespace {

// Operations end by the communicator's end, not by time: the worker's deadlines come first and say
// more. (Gloo takes 0 for "none" in one place and for "at once" in another.)
constexpr std::chrono::milliseconds kForever = std::chrono::hours(24 * 365);

struct Aborted : std::exception {
  const char* what() const noexcept override { return "the communicator was aborted"; }
};

}  // namespace

// The buffers of a mesh that may be waited for.
class Waiters {
 public:
  class Buffer;

  std::unique_ptr<gloo::transport::UnboundBuffer> Wrap(
      const std::shared_ptr<Waiters>& self, std::unique_ptr<gloo::transport::UnboundBuffer> tcp);
  void Abort();
  void Check() const {
    if (aborted_.load()) throw Aborted();
  }
  bool aborted() const { return aborted_.load(); }

 private:
  std::atomic<bool> aborted_{false};
  std::mutex mutex_;
  Buffer* first_ = nullptr;  // a list through the buffers: they come and go within operations
};

class Waiters::Buffer : public gloo::transport::UnboundBuffer {
 public:
  Buffer(std::shared_ptr<Waiters> waiters, std::unique_ptr<gloo::transport::UnboundBuffer> tcp)
      : UnboundBuffer(tcp->ptr, tcp->size), waiters_(std::move(waiters)), tcp_(std::move(tcp)) {
    const std::lock_guard lock(waiters_->mutex_);
    next_ = waiters_->first_;
    if (next_ != nullptr) next_->previous_ = this;
    waiters_->first_ = this;
  }
  ~Buffer() override {
    const std::lock_guard lock(waiters_->mutex_);
    (previous_ == nullptr ? waiters_->first_ : previous_->next_) = next_;
    if (next_ != nullptr) next_->previous_ = previous_;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  bool waitRecv(int* rank, std::chrono::milliseconds timeout) override {
    waiters_->Check();
    const bool done = tcp_->waitRecv(rank, Limit(timeout));
    waiters_->Check();
    return done;
  }
  bool waitSend(int* rank, std::chrono::milliseconds timeout) override {
    waiters_->Check();
    const bool done = tcp_->waitSend(rank, Limit(timeout));
    waiters_->Check();
    return done;
  }
  void abortWaitRecv() override { tcp_->abortWaitRecv(); }
  void abortWaitSend() override { tcp_->abortWaitSend(); }

  void send(int rank, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
    waiters_->Check();
    tcp_->send(rank, slot, offset, bytes);
  }
  void recv(int rank, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
    waiters_->Check();
    tcp_->recv(rank, slot, offset, bytes);
  }
  void recv(std::vector<int> ranks, std::uint64_t slot, std::size_t offset,
            std::size_t bytes) override {
    waiters_->Check();
    tcp_->recv(std::move(ranks), slot, offset, bytes);
  }

  Buffer* next() const { return next_; }

 private:
  static std::chrono::milliseconds Limit(std::chrono::milliseconds timeout) {
    return timeout == gloo::transport::kUnsetTimeout ? kForever : timeout;
  }

  const std::shared_ptr<Waiters> waiters_;
  const std::unique_ptr<gloo::transport::UnboundBuffer> tcp_;
  Buffer* next_ = nullptr;      // guarded by the waiters' mutex, as are
  Buffer* previous_ = nullptr;  // the neighbours'
};

std::unique_ptr<gloo::transport::UnboundBuffer> Waiters::Wrap(
    const std::shared_ptr<Waiters>& self, std::unique_ptr<gloo::transport::UnboundBuffer> tcp) {
  return std::make_unique<Buffer>(self, std::move(tcp));
}

void Waiters::Abort() {
  aborted_.store(true);
  const std::lock_guard lock(mutex_);
  for (Buffer* one = first_; one != nullptr; one = one->next()) {
    one->abortWaitRecv();
    one->abortWaitSend();
  }
}

namespace {

// Gloo's transport, with buffers that can be aborted.
class Transport : public gloo::transport::Context {
 public:
  Transport(std::shared_ptr<gloo::transport::Context> tcp, std::shared_ptr<Waiters> waiters)
      : gloo::transport::Context(tcp->rank, tcp->size),
        tcp_(std::move(tcp)),
        waiters_(std::move(waiters)) {}

  std::unique_ptr<gloo::transport::Pair>& getPair(int peer) override { return tcp_->getPair(peer); }
  std::unique_ptr<gloo::transport::Pair>& createPair(int peer) override {
    return tcp_->createPair(peer);
  }
  std::unique_ptr<gloo::transport::UnboundBuffer> createUnboundBuffer(void* at,
                                                                      std::size_t bytes) override {
    return waiters_->Wrap(waiters_, tcp_->createUnboundBuffer(at, bytes));
  }

 private:
  const std::shared_ptr<gloo::transport::Context> tcp_;
  const std::shared_ptr<Waiters> waiters_;
};

// ---- what the ranks tell each other
// --------------------------------------------------------------

constexpr std::size_t kIdBytes = 16;
constexpr std::size_t kAddressBytes = gloo::transport::Address::kMaxByteSize;

// A rank listens at one address, with a port for each peer. The addresses of Gloo's pairs are whole
// socket structures: sent for each pair they would outgrow a message with some hundred ranks.
struct Record {
  unsigned char id[kIdBytes] = {};
  unsigned char address[kAddressBytes] = {};
  std::uint32_t address_bytes = 0;
  // Then a 16-bit port for each rank, as in the address.
};

constexpr std::size_t kPortAt = offsetof(sockaddr_in, sin_port);
static_assert(kPortAt == offsetof(sockaddr_in6, sin6_port));

std::size_t RecordBytes(std::int32_t most) {
  return sizeof(Record) + sizeof(std::uint16_t) * static_cast<std::size_t>(most);
}

// Where in a record the port for `rank` is.
std::size_t PortFor(std::int32_t rank) {
  return sizeof(Record) + sizeof(std::uint16_t) * static_cast<std::size_t>(rank);
}

// Gloo leaves what the structure has beyond its family's address as it was on the stack.
void ClearTail(std::vector<char>* address) {
  sa_family_t family = AF_UNSPEC;
  std::memcpy(&family, address->data() + offsetof(sockaddr, sa_family), sizeof(family));
  const std::size_t used = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  std::fill(address->begin() + static_cast<std::ptrdiff_t>(used),
            address->begin() + sizeof(sockaddr_storage), '\0');
}

std::int32_t MakeRecord(const Meeting& meeting, gloo::transport::Context& tcp,
                        std::vector<unsigned char>* out, param_error* err) {
  Record record;
  std::memcpy(record.id, meeting.id.data(), kIdBytes);
  out->assign(RecordBytes(meeting.most), 0);
  std::vector<char> first;
  for (std::int32_t peer = 0; peer < meeting.size; ++peer) {
    if (peer == meeting.rank) continue;
    std::vector<char> address = tcp.getPair(peer)->address().bytes();
    if (address.size() < sizeof(sockaddr_storage) || address.size() > kAddressBytes) {
      return kit::Fail(err, kit::kInternal, "an address of Gloo's has %zu bytes", address.size());
    }
    ClearTail(&address);
    std::memcpy(out->data() + PortFor(peer), address.data() + kPortAt, sizeof(std::uint16_t));
    std::memset(address.data() + kPortAt, 0, sizeof(std::uint16_t));
    if (first.empty()) first = address;
    if (first != address) {
      return kit::Fail(err, kit::kInternal, "Gloo's pairs listen at more than one address");
    }
  }
  record.address_bytes = static_cast<std::uint32_t>(first.size());
  if (!first.empty()) std::memcpy(record.address, first.data(), first.size());
  std::memcpy(out->data(), &record, sizeof(record));
  return kit::kOk;
}

// Where `peer` waits for `rank`.
std::vector<char> AddressFor(const unsigned char* record_of_peer, std::int32_t rank) {
  Record record;
  std::memcpy(&record, record_of_peer, sizeof(record));
  std::vector<char> address(record.address, record.address + record.address_bytes);
  std::memcpy(address.data() + kPortAt, record_of_peer + PortFor(rank), sizeof(std::uint16_t));
  return address;
}

// "10.0.0.2 port 40001"
std::string TextOf(const std::vector<char>& address) {
  sockaddr_storage storage = {};
  std::memcpy(&storage, address.data(), std::min(address.size(), sizeof(storage)));
  std::uint16_t port = 0;
  std::memcpy(&port, address.data() + kPortAt, sizeof(port));
  return AddressText(reinterpret_cast<const sockaddr*>(&storage)) + " port " +
         std::to_string(ntohs(port));
}

// Calls `late` unless it is gone before the deadline.
class Watchdog {
 public:
  Watchdog(std::int64_t deadline_ns, std::function<void()> late)
      : thread_([this, deadline_ns, late = std::move(late)] {
          std::unique_lock lock(mutex_);
          if (changed_.wait_for(lock, std::chrono::nanoseconds(deadline_ns),
                                [&] { return gone_; })) {
            return;
          }
          expired_ = true;
          late();
        }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      gone_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  bool expired() const { return expired_.load(); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool gone_ = false;
  std::atomic<bool> expired_{false};
  std::thread thread_;
};

// Without the place in Gloo's sources that it puts first.
std::string Cleaned(const char* what) {
  const std::string text = what;
  const std::size_t end = text.find("] ");
  return text.rfind("[/", 0) == 0 || text.rfind("[.", 0) == 0 || text.rfind("[gloo", 0) == 0
             ? text.substr(end == std::string::npos ? 0 : end + 2)
             : text;
}

}  // namespace

Mesh::Mesh(const Meeting& meeting, std::shared_ptr<gloo::transport::Context> transport)
    : gloo::Context(meeting.rank, meeting.size),
      tcp_(std::move(transport)),
      waiters_(std::make_shared<Waiters>()) {
  device_ = meeting.device;
  transportContext_ = std::make_shared<Transport>(tcp_, waiters_);
  setTimeout(kForever);
}

Mesh::~Mesh() = default;

std::int32_t Mesh::Connect(const Meeting& meeting, const Share& share, std::shared_ptr<Mesh>* out,
                           param_error* err) {
  const auto begin = std::chrono::steady_clock::now();
  std::shared_ptr<gloo::transport::Context> tcp =
      meeting.device->createContext(meeting.rank, meeting.size);
  tcp->setTimeout(std::chrono::milliseconds(0));  // none: connecting ends by our own deadline
  for (std::int32_t peer = 0; peer < meeting.size; ++peer) {
    if (peer != meeting.rank) tcp->createPair(peer);
  }
  std::vector<unsigned char> mine;
  std::vector<unsigned char> all;
  PARAM_KIT_TRY(MakeRecord(meeting, *tcp, &mine, err));
  PARAM_KIT_TRY(share(std::move(mine), &all, err));
  for (std::int32_t peer = 0; peer < meeting.size; ++peer) {
    const unsigned char* const record =
        all.data() + RecordBytes(meeting.most) * static_cast<std::size_t>(peer);
    if (std::memcmp(record, meeting.id.data(), kIdBytes) == 0) continue;
    return kit::Fail(err, kit::kFailedPrecondition, "rank %d brought another unique id", peer);
  }
  if (meeting.on_connect != nullptr) meeting.on_connect();
  const std::shared_ptr<Mesh> mesh(new Mesh(meeting, std::move(tcp)));
  Meeting rest = meeting;
  const auto spent = std::chrono::steady_clock::now() - begin;
  rest.deadline_ns =
      std::max<std::int64_t>(meeting.deadline_ns - spent / std::chrono::nanoseconds(1), 1);
  PARAM_KIT_TRY(mesh->ConnectPairs(rest, all, err));
  *out = mesh;
  return kit::kOk;
}

std::int32_t Mesh::ConnectPairs(const Meeting& meeting, const std::vector<unsigned char>& all,
                                param_error* err) {
  const Watchdog watchdog(meeting.deadline_ns, [this] { ClosePairs(); });
  for (std::int32_t peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    const std::vector<char> address =
        AddressFor(all.data() + RecordBytes(meeting.most) * static_cast<std::size_t>(peer), rank);
    std::string why;
    try {
      tcp_->getPair(peer)->connect(address);
    } catch (const std::exception& e) {
      why = Cleaned(e.what());
    }
    if (watchdog.expired()) {
      return kit::Fail(err, kit::kDeadlineExceeded, "rank %d at %s is not connected within %.3f s",
                       peer, TextOf(address).c_str(),
                       static_cast<double>(meeting.deadline_ns) * 1e-9);
    }
    if (!why.empty()) {
      return kit::Fail(err, kit::kUnavailable, "connecting to rank %d at %s: %s", peer,
                       TextOf(address).c_str(), why.c_str());
    }
  }
  return kit::kOk;
}

void Mesh::ClosePairs() {
  for (std::int32_t peer = 0; peer < size; ++peer) {
    if (peer != rank) tcp_->getPair(peer)->close();
  }
}

void Mesh::Abort() {
  (void)Note(kit::kAborted, Aborted().what(), nullptr);
  waiters_->Abort();
  (void)kit::Guard(nullptr, [&] {
    ClosePairs();
    return kit::kOk;
  });
}

std::int32_t Mesh::Failure(param_error* err) const {
  const std::lock_guard lock(mutex_);
  if (failure_.code != 0 && err != nullptr) *err = failure_;
  return failure_.code;
}

std::int32_t Mesh::Note(kit::Code code, const std::string& what, param_error* err) {
  param_error failure = {};
  (void)kit::Fail(&failure, code, "%s", what.c_str());
  const std::lock_guard lock(mutex_);
  // What follows an abort is due to it.
  if (failure_.code == kit::kAborted) failure = failure_;
  if (failure_.code == 0 || code == kit::kAborted) failure_ = failure;
  if (err != nullptr) *err = failure;
  return failure.code;
}

std::int32_t Mesh::Call(param_error* err, const std::function<void()>& body) {
  return kit::Guard(err, [&]() -> std::int32_t {
    try {
      waiters_->Check();
      body();
      return kit::kOk;
    } catch (const Aborted& e) {
      return Note(kit::kAborted, e.what(), err);
    } catch (const gloo::IoException& e) {
      return Note(kit::kUnavailable, Cleaned(e.what()), err);
    } catch (const gloo::Exception& e) {
      return Note(kit::kInternal, Cleaned(e.what()), err);
    } catch (const gloo::EnforceNotMet& e) {
      return Note(kit::kInternal, Cleaned(e.what()), err);
    }
  });
}

}  // namespace param::gloo_comm
