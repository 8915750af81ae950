// The operation "gemm" of every backend that has it, against sums in f64.

#include <cmath>
#include <tuple>

#include "agent/bench/element.h"
#include "tests/contract/backend_fixture.h"

namespace param {
namespace {

using ::testing::HasSubstr;

struct Shape {
  std::int64_t batch, m, n, k;
  bool trans_a = false, trans_b = false;
  double alpha = 1, beta = 0;
};

std::ostream& operator<<(std::ostream& out, const Shape& s) {
  return out << s.batch << " x " << s.m << " x " << s.n << " x " << s.k << " ta=" << s.trans_a
             << " tb=" << s.trans_b << " alpha=" << s.alpha << " beta=" << s.beta;
}

constexpr Shape kShapes[] = {
    {1, 32, 48, 64, false, true},  // what the pickiest hardware takes
    {1, 32, 48, 64, false, false},
    {1, 32, 48, 64, true, false},
    {1, 32, 48, 64, true, true},
    {1, 1, 1, 1},
    {1, 17, 29, 31},  // odd
    {1, 17, 29, 31, true, false},
    {1, 17, 29, 31, false, true},
    {1, 17, 29, 31, true, true},
    {1, 1, 40, 50},  // a row
    {1, 40, 1, 50},  // a column
    {1, 5, 7, 300},  // long sums
    {3, 16, 32, 48, false, true},
    {4, 9, 11, 13},
    {2, 9, 11, 13, true, true, 0.5, 2},
    {1, 32, 48, 64, false, true, -0.5},
    {1, 32, 48, 64, false, false, 1, 1},
    {1, 32, 48, 64, false, false, 2, -0.5},
    {1, 32, 48, 64, false, false, 0, 1},  // C stays
    {1, 130, 129, 131, false, false, 1.5, 0.25},
};

param_dtype ResultOf(param_dtype dtype) {
  if (dtype == PARAM_DTYPE_I8) return PARAM_DTYPE_I32;
  if (dtype == PARAM_DTYPE_F8E4M3 || dtype == PARAM_DTYPE_F8E5M2) return PARAM_DTYPE_BF16;
  return dtype;
}

std::size_t SizeOf(param_dtype dtype) {
  switch (dtype) {
    case PARAM_DTYPE_F64:
      return 8;
    case PARAM_DTYPE_F32:
    case PARAM_DTYPE_TF32:
    case PARAM_DTYPE_I32:
      return 4;
    case PARAM_DTYPE_F16:
    case PARAM_DTYPE_BF16:
      return 2;
    default:
      return 1;
  }
}

// Relative error of one product, and of the result's own rounding.
double ProductError(param_dtype dtype) {
  if (dtype == PARAM_DTYPE_F64) return 0x1p-52;
  return dtype == PARAM_DTYPE_F32 ? 0x1p-22 : 0x1p-9;
}

// A matrix in host memory, of numbers that the type holds.
class HostMatrix {
 public:
  HostMatrix(param_dtype dtype, std::size_t count)
      : dtype_(dtype), count_(count), bytes_(count * SizeOf(dtype)) {}

  // In -1..1; for integers in -60..60, which every i8 unit multiplies exactly.
  void Fill(std::uint64_t seed) {
    const bool integer = TraitsOf(dtype_).integer;
    for (std::size_t i = 0; i < count_; ++i) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      const double unit = static_cast<double>(seed >> 40) * 0x1p-23 - 1;
      StoreElement(dtype_, bytes_.data(), i, integer ? std::round(unit * 60) : unit);
    }
  }
  // What must not be read, or must be overwritten.
  void Poison() { std::fill(bytes_.begin(), bytes_.end(), static_cast<unsigned char>(0xff)); }
  double At(std::size_t i) const { return LoadElement(dtype_, bytes_.data(), i); }
  std::vector<unsigned char>& bytes() { return bytes_; }

 private:
  param_dtype dtype_;
  std::size_t count_;
  std::vector<unsigned char> bytes_;
};

class GemmRunner : public OpenedBackend {
 protected:
  static void Describe(const Shape& s, param_dtype dtype, const std::string& library,
                       OpDesc* desc) {
    desc->Bool("trans_a", s.trans_a).Bool("trans_b", s.trans_b).Float("alpha", s.alpha);
    desc->Float("beta", s.beta).String("library", library);
    desc->Tensor("a", dtype, {s.batch, s.trans_a ? s.k : s.m, s.trans_a ? s.m : s.k});
    desc->Tensor("b", dtype, {s.batch, s.trans_b ? s.n : s.k, s.trans_b ? s.k : s.n});
    desc->Tensor("c", ResultOf(dtype), {s.batch, s.m, s.n});
  }

  // Runs it and compares every element. UNIMPLEMENTED when the backend does not do it.
  absl::Status RunAndCompare(const Shape& s, param_dtype dtype, const std::string& library) {
    OpDesc desc("gemm");
    Describe(s, dtype, library, &desc);
    PARAM_ASSIGN_OR_RETURN(Op op, device_->CreateOp(desc.desc()));
    HostMatrix a(dtype, static_cast<std::size_t>(s.batch * s.m * s.k));
    HostMatrix b(dtype, static_cast<std::size_t>(s.batch * s.k * s.n));
    HostMatrix c(ResultOf(dtype), static_cast<std::size_t>(s.batch * s.m * s.n));
    a.Fill(1);
    b.Fill(2);
    c.Fill(3);
    if (s.beta == 0) c.Poison();
    Buffer buffers[3] = {NewBuffer(a.bytes().size()), NewBuffer(b.bytes().size()),
                         NewBuffer(c.bytes().size())};
    PARAM_RETURN_IF_ERROR(buffers[0].Write(0, a.bytes().data(), a.bytes().size()));
    PARAM_RETURN_IF_ERROR(buffers[1].Write(0, b.bytes().data(), b.bytes().size()));
    PARAM_RETURN_IF_ERROR(buffers[2].Write(0, c.bytes().data(), c.bytes().size()));
    PARAM_RETURN_IF_ERROR(RunOnce(op, {buffers[0].At(0), buffers[1].At(0), buffers[2].At(0)}));
    HostMatrix got(ResultOf(dtype), static_cast<std::size_t>(s.batch * s.m * s.n));
    PARAM_RETURN_IF_ERROR(buffers[2].Read(0, got.bytes().data(), got.bytes().size()));
    Compare(s, dtype, a, b, c, got);
    return absl::OkStatus();
  }

  static void Compare(const Shape& s, param_dtype dtype, const HostMatrix& a, const HostMatrix& b,
                      const HostMatrix& c, const HostMatrix& got) {
    const ElementTraits out = TraitsOf(ResultOf(dtype));
    for (std::int64_t i = 0; i < s.batch * s.m * s.n; ++i) {
      const std::int64_t col = i % s.n;
      const std::int64_t row = i / s.n % s.m;
      const std::int64_t batch = i / s.n / s.m;
      double sum = 0;
      double sum_of_sizes = 0;
      for (std::int64_t k = 0; k < s.k; ++k) {
        const std::int64_t at_a = s.trans_a ? k * s.m + row : row * s.k + k;
        const std::int64_t at_b = s.trans_b ? col * s.k + k : k * s.n + col;
        const double product = a.At(static_cast<std::size_t>(batch * s.m * s.k + at_a)) *
                               b.At(static_cast<std::size_t>(batch * s.k * s.n + at_b));
        sum += product;
        sum_of_sizes += std::abs(product);
      }
      const double old = s.beta == 0 ? 0 : s.beta * c.At(static_cast<std::size_t>(i));
      const double expected = s.alpha * sum + old;
      const double tolerance =
          out.integer ? 0.5001  // alpha and beta may end between two integers
                      : ProductError(dtype) * std::abs(s.alpha) * sum_of_sizes +
                            2 * out.unit_roundoff * (std::abs(expected) + std::abs(old)) + 1e-30;
      ASSERT_NEAR(got.At(static_cast<std::size_t>(i)), expected, tolerance)
          << s << ", batch " << batch << " row " << row << " column " << col;
    }
  }
};

constexpr std::pair<param_dtype, const char*> kTypes[] = {
    {PARAM_DTYPE_F64, "f64"},       {PARAM_DTYPE_F32, "f32"},   {PARAM_DTYPE_TF32, "tf32"},
    {PARAM_DTYPE_F16, "f16"},       {PARAM_DTYPE_BF16, "bf16"}, {PARAM_DTYPE_F8E4M3, "f8e4m3"},
    {PARAM_DTYPE_F8E5M2, "f8e5m2"}, {PARAM_DTYPE_I8, "i8"},
};
constexpr const char* kLibraries[] = {"auto", "onednn", "openblas", "cublas", "cublaslt"};

class GemmContract : public GemmRunner,
                     public ::testing::WithParamInterface<
                         std::tuple<std::string, std::pair<param_dtype, const char*>>> {
 protected:
  void SetUp() override { Open(std::get<0>(GetParam())); }

  // How many shapes the library did; the reason for the others in `reason`.
  int CompareAll(param_dtype dtype, const char* library, std::string* reason) {
    int compared = 0;
    for (const Shape& shape : kShapes) {
      const absl::Status status = RunAndCompare(shape, dtype, library);
      if (absl::IsUnimplemented(status)) {
        EXPECT_NE(status.message(), "") << shape;
        *reason = std::string(status.message());
        continue;
      }
      EXPECT_TRUE(status.ok()) << status << " " << library << " " << shape;
      if (HasFailure()) return compared;
      ++compared;
    }
    return compared;
  }
};

INSTANTIATE_TEST_SUITE_P(Installed, GemmContract,
                         ::testing::Combine(::testing::ValuesIn(NamesWith("device")),
                                            ::testing::ValuesIn(kTypes)),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_" + std::get<1>(test.param).second;
                         });

TEST_P(GemmContract, AgreesWithSumsInF64InEveryLibrary) {
  const param_dtype dtype = std::get<1>(GetParam()).first;
  int compared = 0;
  for (const char* library : kLibraries) {
    std::string reason;
    const int with_this = CompareAll(dtype, library, &reason);
    ASSERT_FALSE(HasFailure()) << library;
    compared += with_this;
    // The two plain types are whole or not at all; others may be limited by their hardware.
    if (with_this > 0 && (dtype == PARAM_DTYPE_F32 || dtype == PARAM_DTYPE_F64)) {
      EXPECT_EQ(reason, "") << library << " did only " << with_this;
    }
  }
  if (compared == 0) GTEST_SKIP() << RunAndCompare(kShapes[0], dtype, "auto").message();
}

class GemmRules : public GemmRunner, public ::testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override { Open(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Installed, GemmRules, ::testing::ValuesIn(NamesWith("device")),
                         [](const auto& test) { return test.param; });

TEST_P(GemmRules, MultipliesF32WithItsOwnChoiceOfLibrary) {
  PARAM_ASSERT_OK(RunAndCompare({1, 64, 64, 64}, PARAM_DTYPE_F32, "auto"));
}

TEST_P(GemmRules, AnUnknownLibraryIsUnimplementedAndNamed) {
  OpDesc desc("gemm");
  Describe({1, 8, 8, 8}, PARAM_DTYPE_F32, "no_such_library", &desc);
  const absl::Status status = device_->CreateOp(desc.desc()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no_such_library"));
}

TEST_P(GemmRules, AnUnknownAttributeIsAnErrorAndNamed) {
  OpDesc desc("gemm");
  Describe({1, 8, 8, 8}, PARAM_DTYPE_F32, "auto", &desc);
  desc.Bool("no_such_attribute", true);
  const absl::Status status = device_->CreateOp(desc.desc()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no_such_attribute"));
}

TEST_P(GemmRules, AnAttributeOfAnotherKindIsAnError) {
  OpDesc desc("gemm");
  desc.String("trans_a", "yes").Tensor("a", PARAM_DTYPE_F32, {1, 8, 8});
  desc.Tensor("b", PARAM_DTYPE_F32, {1, 8, 8}).Tensor("c", PARAM_DTYPE_F32, {1, 8, 8});
  EXPECT_EQ(device_->CreateOp(desc.desc()).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(GemmRules, ShapesThatDoNotFitAreAnError) {
  OpDesc desc("gemm");
  desc.Tensor("a", PARAM_DTYPE_F32, {1, 8, 9}).Tensor("b", PARAM_DTYPE_F32, {1, 8, 8});
  desc.Tensor("c", PARAM_DTYPE_F32, {1, 8, 8});
  EXPECT_EQ(device_->CreateOp(desc.desc()).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(GemmRules, TypesThatDoNotFitAreAnError) {
  OpDesc desc("gemm");
  desc.Tensor("a", PARAM_DTYPE_F32, {1, 8, 8}).Tensor("b", PARAM_DTYPE_F64, {1, 8, 8});
  desc.Tensor("c", PARAM_DTYPE_F32, {1, 8, 8});
  EXPECT_EQ(device_->CreateOp(desc.desc()).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(GemmRules, SizesThatOverflowAreAnErrorNotACrash) {
  const std::int64_t huge = std::int64_t{1} << 40;
  OpDesc desc("gemm");
  for (const char* name : {"a", "b", "c"}) {
    desc.Tensor(name, PARAM_DTYPE_F32, {1, 1, 1});
  }
  param_op_desc raw = desc.desc();
  std::vector<param_tensor> tensors(raw.tensors, raw.tensors + 3);
  for (param_tensor& tensor : tensors) {
    tensor.dims[1] = tensor.dims[2] = tensor.strides[1] = huge;
  }
  raw.tensors = tensors.data();
  EXPECT_EQ(device_->CreateOp(raw).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(GemmRules, OperandsOutsideTheirBuffersAreAnError) {
  OpDesc desc("gemm");
  Describe({1, 8, 8, 8}, PARAM_DTYPE_F32, "auto", &desc);
  absl::StatusOr<Op> op = device_->CreateOp(desc.desc());
  ASSERT_TRUE(op.ok()) << op.status();
  Buffer whole = NewBuffer(256);
  Buffer part = NewBuffer(252);
  EXPECT_EQ(RunOnce(*op, {whole.At(0), part.At(0), whole.At(0)}).code(),
            absl::StatusCode::kOutOfRange);
  EXPECT_EQ(RunOnce(*op, {whole.At(4), whole.At(0), whole.At(0)}).code(),
            absl::StatusCode::kOutOfRange);
  EXPECT_EQ(RunOnce(*op, {whole.At(0), whole.At(0)}).code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(GemmRules, RepeatingItAccumulatesWithBetaOne) {
  OpDesc desc("gemm");
  Describe({1, 16, 16, 16, false, false, 1, 1}, PARAM_DTYPE_F32, "auto", &desc);
  absl::StatusOr<Op> op = device_->CreateOp(desc.desc());
  ASSERT_TRUE(op.ok()) << op.status();
  const std::vector<float> ones(256, 1.0f);
  Buffer a = NewBuffer(1024);
  Buffer c = NewBuffer(1024);
  PARAM_ASSERT_OK(a.Write(0, ones.data(), 1024));
  PARAM_ASSERT_OK(c.Write(0, ones.data(), 1024));
  for (int i = 0; i < 3; ++i) PARAM_ASSERT_OK(RunOnce(*op, {a.At(0), a.At(0), c.At(0)}));
  std::vector<float> got(256);
  PARAM_ASSERT_OK(c.Read(0, got.data(), 1024));
  EXPECT_EQ(got, std::vector<float>(256, 49.0f));
}

TEST_P(GemmRules, RowsMayBePaddedAndOperandsMayLieAnywhere) {
  OpDesc desc("gemm");
  Describe({1, 3, 4, 2}, PARAM_DTYPE_F32, "auto", &desc);
  param_op_desc raw = desc.desc();
  std::vector<param_tensor> tensors(raw.tensors, raw.tensors + 3);
  for (param_tensor& tensor : tensors) tensor.strides[1] = 10;
  raw.tensors = tensors.data();
  absl::StatusOr<Op> op = device_->CreateOp(raw);
  ASSERT_TRUE(op.ok()) << op.status();
  Buffer memory = NewBuffer(3 * 256);
  std::vector<float> numbers(192, 7.0f);
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 2; ++j) numbers[i * 10 + j] = static_cast<float>(i + 1);
  }
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t j = 0; j < 4; ++j) numbers[64 + i * 10 + j] = static_cast<float>(j + 1);
  }
  PARAM_ASSERT_OK(memory.Write(0, numbers.data(), 768));
  PARAM_ASSERT_OK(RunOnce(*op, {memory.At(0), memory.At(256), memory.At(512)}));
  std::vector<float> got(64);
  PARAM_ASSERT_OK(memory.Read(512, got.data(), 256));
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 4; ++j) {
      EXPECT_EQ(got[i * 10 + j], static_cast<float>(2 * (i + 1) * (j + 1)));
    }
    EXPECT_EQ(got[i * 10 + 4], 7.0f) << "the padding was written";
  }
}

TEST_P(GemmRules, SaysWhatReallyRuns) {
  OpDesc desc("gemm");
  Describe({1, 32, 32, 32}, PARAM_DTYPE_F32, "auto", &desc);
  absl::StatusOr<Op> op = device_->CreateOp(desc.desc());
  ASSERT_TRUE(op.ok()) << op.status();
  const absl::StatusOr<std::string> info = op->Info();
  ASSERT_TRUE(info.ok()) << info.status();
  const nlohmann::json json = nlohmann::json::parse(*info);
  ASSERT_TRUE(json.is_object());
  EXPECT_NE(json["library"].get<std::string>(), "");
  EXPECT_NE(json["implementation"].get<std::string>(), "");
  for (const auto& [key, value] : json.items()) EXPECT_TRUE(value.is_string()) << key;
}

}  // namespace
}  // namespace param
