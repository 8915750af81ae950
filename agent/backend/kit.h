#pragma once
// For authors of backends: what every backend needs around the C ABI. Header-only, C++20, the
// standard library and nothing else, so that a backend links none of the host's libraries.
//
//   int32_t Open(const param_host* host, int32_t device, param_ctx** out, param_error* err) {
//     return kit::Guard(err, [&]() -> int32_t {
//       if (device != 0) return kit::Fail(err, kit::kNotFound, "no device %d", device);
//       ...
//       return kit::kOk;
//     });
//   }
//
// Everything here is free of state and safe to call from any thread.

#include <charconv>
#include <cmath>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <new>
#include <string>

#include "agent/backend/param_backend.h"

// PARAM_KIT_TRY(kit::GetBool(...)); returns the code from the enclosing function unless it is 0.
#define PARAM_KIT_TRY(expr)                                                   \
  do {                                                                        \
    if (const std::int32_t kit_code = (expr); kit_code != 0) return kit_code; \
  } while (false)

namespace param::kit {

// The values of absl::StatusCode that a backend returns.
enum Code : std::int32_t {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,  // "cannot do this here": the case is SKIPPED with the message
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
};

// Fills `err` (which may be null) and returns the code. What does not fit is cut off.
[[gnu::format(printf, 3, 4)]] inline std::int32_t Fail(param_error* err, Code code,
                                                       const char* format, ...) {
  if (err != nullptr) {
    err->code = code;
    va_list args;
    va_start(args, format);
    std::vsnprintf(err->message, sizeof(err->message), format, args);
    va_end(args);
  }
  return code;
}

// The fence at the boundary: runs `body` (returning a code) and turns what it throws into a code.
template <typename Body>
std::int32_t Guard(param_error* err, Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Fail(err, kResourceExhausted, "out of host memory");
  } catch (const std::exception& e) {
    return Fail(err, kInternal, "%s", e.what());
  } catch (...) {
    return Fail(err, kInternal, "an exception of unknown type");
  }
}

// ---- element types ---------------------------------------------------------------------------

// Bytes of one element; 0 for a value that is no type.
inline std::size_t DtypeSize(param_dtype dtype) {
  switch (dtype) {
    case PARAM_DTYPE_F64:
    case PARAM_DTYPE_I64:
      return 8;
    case PARAM_DTYPE_F32:
    case PARAM_DTYPE_TF32:
    case PARAM_DTYPE_I32:
      return 4;
    case PARAM_DTYPE_F16:
    case PARAM_DTYPE_BF16:
      return 2;
    case PARAM_DTYPE_F8E4M3:
    case PARAM_DTYPE_F8E5M2:
    case PARAM_DTYPE_I8:
    case PARAM_DTYPE_U8:
      return 1;
  }
  return 0;
}

// "f32"; "?" for a value that is no type.
inline const char* DtypeName(param_dtype dtype) {
  switch (dtype) {
    case PARAM_DTYPE_F64:
      return "f64";
    case PARAM_DTYPE_F32:
      return "f32";
    case PARAM_DTYPE_TF32:
      return "tf32";
    case PARAM_DTYPE_F16:
      return "f16";
    case PARAM_DTYPE_BF16:
      return "bf16";
    case PARAM_DTYPE_F8E4M3:
      return "f8e4m3";
    case PARAM_DTYPE_F8E5M2:
      return "f8e5m2";
    case PARAM_DTYPE_I8:
      return "i8";
    case PARAM_DTYPE_U8:
      return "u8";
    case PARAM_DTYPE_I32:
      return "i32";
    case PARAM_DTYPE_I64:
      return "i64";
  }
  return "?";
}

// ---- reading a descriptor ----------------------------------------------------------------------

// The attribute of that name, or null when it is not there or is NONE.
inline const param_attr* FindAttr(const param_op_desc& desc, const char* name) {
  for (std::size_t i = 0; i < desc.attr_count; ++i) {
    const param_attr& attr = desc.attrs[i];
    if (attr.name != nullptr && std::strcmp(attr.name, name) == 0) {
      return attr.kind == PARAM_ATTR_NONE ? nullptr : &attr;
    }
  }
  return nullptr;
}

// INVALID_ARGUMENT naming the first attribute that is not among `known`: a misspelt or newer
// attribute must not be ignored, since the number would then be of something else.
inline std::int32_t CheckAttrs(const param_op_desc& desc, std::initializer_list<const char*> known,
                               param_error* err) {
  for (std::size_t i = 0; i < desc.attr_count; ++i) {
    const char* const name = desc.attrs[i].name == nullptr ? "" : desc.attrs[i].name;
    bool found = false;
    for (const char* one : known) found |= std::strcmp(one, name) == 0;
    if (!found) {
      return Fail(err, kInvalidArgument, "%s has no attribute \"%s\"", desc.name, name);
    }
  }
  return kOk;
}

namespace internal {
inline std::int32_t WrongKind(const param_op_desc& desc, const char* name, const char* wanted,
                              param_error* err) {
  return Fail(err, kInvalidArgument, "%s: attribute \"%s\" is not %s", desc.name, name, wanted);
}
}  // namespace internal

// Each leaves `*out` as it is when the attribute is missing: set it to the default before.
inline std::int32_t GetBool(const param_op_desc& desc, const char* name, bool* out,
                            param_error* err) {
  const param_attr* attr = FindAttr(desc, name);
  if (attr == nullptr) return kOk;
  if (attr->kind != PARAM_ATTR_BOOL) return internal::WrongKind(desc, name, "a bool", err);
  *out = attr->value.i != 0;
  return kOk;
}

inline std::int32_t GetInt(const param_op_desc& desc, const char* name, std::int64_t* out,
                           param_error* err) {
  const param_attr* attr = FindAttr(desc, name);
  if (attr == nullptr) return kOk;
  if (attr->kind != PARAM_ATTR_INT) return internal::WrongKind(desc, name, "an int", err);
  *out = attr->value.i;
  return kOk;
}

// An int is taken as a float too.
inline std::int32_t GetFloat(const param_op_desc& desc, const char* name, double* out,
                             param_error* err) {
  const param_attr* attr = FindAttr(desc, name);
  if (attr == nullptr) return kOk;
  if (attr->kind == PARAM_ATTR_INT) {
    *out = static_cast<double>(attr->value.i);
    return kOk;
  }
  if (attr->kind != PARAM_ATTR_FLOAT) return internal::WrongKind(desc, name, "a float", err);
  *out = attr->value.f;
  return kOk;
}

inline std::int32_t GetString(const param_op_desc& desc, const char* name, std::string* out,
                              param_error* err) {
  const param_attr* attr = FindAttr(desc, name);
  if (attr == nullptr) return kOk;
  if (attr->kind != PARAM_ATTR_STRING || attr->value.s == nullptr) {
    return internal::WrongKind(desc, name, "a string", err);
  }
  *out = attr->value.s;
  return kOk;
}

// The tensor at `position`, which must be called `name`: operands are bound by position, so a
// descriptor in another order is a mistake.
inline std::int32_t GetTensor(const param_op_desc& desc, std::size_t position, const char* name,
                              const param_tensor** out, param_error* err) {
  if (position >= desc.tensor_count || desc.tensors[position].name == nullptr ||
      std::strcmp(desc.tensors[position].name, name) != 0) {
    return Fail(err, kInvalidArgument, "%s: tensor %zu is not \"%s\"", desc.name, position, name);
  }
  const param_tensor& tensor = desc.tensors[position];
  if (tensor.rank < 0 || tensor.rank > PARAM_MAX_DIMS || DtypeSize(tensor.dtype) == 0) {
    return Fail(err, kInvalidArgument, "%s: tensor \"%s\" has rank %d and type %d", desc.name, name,
                tensor.rank, static_cast<int>(tensor.dtype));
  }
  *out = &tensor;
  return kOk;
}

// Bytes of a dense row-major tensor; false when it is not dense or has more than can be addressed.
inline bool DenseBytes(const param_tensor& tensor, std::size_t* bytes) {
  std::int64_t total = static_cast<std::int64_t>(DtypeSize(tensor.dtype));
  std::int64_t stride = 1;
  for (int i = tensor.rank - 1; i >= 0; --i) {
    if (tensor.dims[i] < 0 || (tensor.dims[i] > 1 && tensor.strides[i] != stride) ||
        __builtin_mul_overflow(stride, tensor.dims[i], &stride) ||
        __builtin_mul_overflow(total, tensor.dims[i], &total)) {
      return false;
    }
  }
  *bytes = static_cast<std::size_t>(total);
  return true;
}

// "copy": dst = src. Two dense tensors of one shape and type; their bytes.
inline std::int32_t ParseCopy(const param_op_desc& desc, std::size_t* bytes, param_error* err) {
  const param_tensor* src = nullptr;
  const param_tensor* dst = nullptr;
  PARAM_KIT_TRY(CheckAttrs(desc, {}, err));
  PARAM_KIT_TRY(GetTensor(desc, 0, "src", &src, err));
  PARAM_KIT_TRY(GetTensor(desc, 1, "dst", &dst, err));
  bool same = desc.tensor_count == 2 && src->rank == dst->rank && src->dtype == dst->dtype;
  for (int i = 0; same && i < src->rank; ++i) same = src->dims[i] == dst->dims[i];
  std::size_t dst_bytes = 0;
  if (!same || !DenseBytes(*src, bytes) || !DenseBytes(*dst, &dst_bytes)) {
    return Fail(err, kInvalidArgument, "copy: src and dst must be dense, of one shape and type");
  }
  return kOk;
}

// OUT_OF_RANGE unless [offset, offset + bytes) lies in a buffer of `size` bytes.
inline std::int32_t CheckRange(const char* what, std::size_t offset, std::size_t bytes,
                               std::size_t size, param_error* err) {
  if (offset <= size && bytes <= size - offset) return kOk;
  return Fail(err, kOutOfRange, "%s: bytes %zu to %zu of a buffer of %zu", what, offset,
              offset + bytes, size);
}

// ---- writing JSON ------------------------------------------------------------------------------

// `text` as a JSON string with its quotes. Control characters are escaped; other bytes pass.
inline std::string JsonQuote(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof(code), "\\u%04x", static_cast<unsigned>(c));
      out += code;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// Builds one JSON object: JsonObject().Text("library", "x").Number("hz", 1e9).Done().
class JsonObject {
 public:
  JsonObject& Text(const char* key, const std::string& value) { return Raw(key, JsonQuote(value)); }
  JsonObject& Integer(const char* key, std::int64_t value) {
    return Raw(key, std::to_string(value));
  }
  // Shortest text that reads back as the same double; null when not finite.
  JsonObject& Number(const char* key, double value) {
    if (!std::isfinite(value)) return Raw(key, "null");
    char text[32];
    const auto end = std::to_chars(text, text + sizeof(text), value);
    return Raw(key, std::string(text, end.ptr));
  }
  // `json` is JSON already.
  JsonObject& Raw(const char* key, const std::string& json) {
    text_ += text_.empty() ? "{" : ", ";
    text_ += JsonQuote(key) + ": " + json;
    return *this;
  }
  std::string Done() const { return text_.empty() ? "{}" : text_ + "}"; }

 private:
  std::string text_;
};

// Copies `text` with its NUL to a caller's memory; RESOURCE_EXHAUSTED when it does not fit, since
// half a JSON text is worse than none.
inline std::int32_t PutText(const std::string& text, char* out, std::size_t capacity,
                            param_error* err) {
  if (out == nullptr || text.size() + 1 > capacity) {
    return Fail(err, kResourceExhausted, "%zu bytes of text do not fit in %zu", text.size() + 1,
                capacity);
  }
  std::memcpy(out, text.c_str(), text.size() + 1);
  return kOk;
}

}  // namespace param::kit
