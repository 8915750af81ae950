#pragma once
// RAII for C handles: one template, a traits struct per handle.

#include <unistd.h>

#include <utility>

namespace param {

// Owns one C handle. Traits: `using Type`, `static Type Null()`, `static void Close(Type)
// noexcept`. Move-only. Where closing can fail in a way that matters, the owner offers its own
// Close() for the good path and leaves this destructor as the abort path.
template <typename Traits>
class Handle {
 public:
  using Type = typename Traits::Type;
  Handle() = default;
  explicit Handle(Type raw) : raw_(raw) {}
  Handle(Handle&& other) noexcept : raw_(std::exchange(other.raw_, Traits::Null())) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) reset(std::exchange(other.raw_, Traits::Null()));
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { reset(); }

  Type get() const { return raw_; }
  explicit operator bool() const { return raw_ != Traits::Null(); }
  [[nodiscard]] Type release() { return std::exchange(raw_, Traits::Null()); }
  // For C calls that fill an out parameter; what was owned before is closed.
  Type* out() {
    reset();
    return &raw_;
  }
  void reset(Type next = Traits::Null()) {
    if (Type old = std::exchange(raw_, next); old != Traits::Null()) Traits::Close(old);
  }

 private:
  Type raw_ = Traits::Null();
};

struct FdTraits {
  using Type = int;
  static Type Null() { return -1; }
  static void Close(Type fd) noexcept { ::close(fd); }
};
// A file descriptor.
using Fd = Handle<FdTraits>;

}  // namespace param
