#include "common/safetensors_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace plumbline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string WithLength(uint64_t length, absl::string_view rest) {
  std::string file;
  for (int i = 0; i < 8; ++i) file.push_back(static_cast<char>(length >> 8 * i & 0xff));
  return absl::StrCat(file, rest);
}

// A file of header `json` and `data_bytes` zeros.
std::string File(absl::string_view json, size_t data_bytes) {
  return WithLength(json.size(), absl::StrCat(json, std::string(data_bytes, '\0')));
}

absl::StatusOr<SafetensorsHeader> Parse(const std::string& file,
                                        const SafetensorsLimits& limits = {}) {
  // A heap copy of the exact size, so that a sanitizer sees every read beyond the end.
  const std::vector<uint8_t> bytes(file.begin(), file.end());
  return ParseSafetensorsHeader(bytes, "f.safetensors", limits);
}

std::string ErrorOf(const std::string& file, const SafetensorsLimits& limits = {}) {
  const absl::StatusOr<SafetensorsHeader> header = Parse(file, limits);
  if (header.ok()) return "no error";
  EXPECT_EQ(header.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(header.status().message(), HasSubstr("f.safetensors: "));
  return std::string(header.status().message());
}

TEST(NumElementsTest, CountsWithoutOverflow) {
  EXPECT_EQ(NumElements({}), 1);
  EXPECT_EQ(NumElements({3, 4}), 12);
  EXPECT_EQ(NumElements({3, 0, 4}), 0);
  EXPECT_EQ(NumElements({int64_t{1} << 62}), int64_t{1} << 62);
  EXPECT_EQ(NumElements({int64_t{1} << 32, int64_t{1} << 31}), -1);
  EXPECT_EQ(NumElements({0, int64_t{1} << 32, int64_t{1} << 31}), -1);
  EXPECT_EQ(NumElements({-1}), -1);
  EXPECT_EQ(NumElements({-1, -1}), -1);
}

TEST(SafetensorsHeaderTest, ReadsTensorsInTheOrderOfTheirBytes) {
  const absl::StatusOr<SafetensorsHeader> header =
      Parse(File(R"({"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]},)"
                 R"("__metadata__":{"format":"pt","k":""},)"
                 R"("empty":{"dtype":"F64","shape":[0,9],"data_offsets":[12,12]},)"
                 R"("a":{"shape":[],"dtype":"I64","data_offsets":[12,20]}}   )",
                 20));
  ASSERT_TRUE(header.ok()) << header.status();
  ASSERT_EQ(header->tensors.size(), 3u);
  EXPECT_EQ(header->tensors[0].name, "b");
  EXPECT_EQ(header->tensors[0].dtype, DType::kBF16);
  EXPECT_THAT(header->tensors[0].shape, ElementsAre(2, 3));
  EXPECT_EQ(header->tensors[1].name, "empty");
  EXPECT_EQ(header->tensors[2].name, "a");
  EXPECT_THAT(header->tensors[2].shape, IsEmpty());
  EXPECT_EQ(header->tensors[2].begin, 12u);
  EXPECT_EQ(header->tensors[2].size_bytes(), 8u);
  EXPECT_EQ(header->metadata.size(), 2u);
  EXPECT_EQ(header->metadata.at("format"), "pt");
}

TEST(SafetensorsHeaderTest, AFileWithNoTensorIsOne) {
  const absl::StatusOr<SafetensorsHeader> header = Parse(File("{}", 0));
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_THAT(header->tensors, IsEmpty());
  EXPECT_EQ(header->data_offset, 10u);
}

TEST(SafetensorsHeaderTest, RefusesBadLengths) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("has 0 bytes, fewer than the 8"));
  EXPECT_THAT(ErrorOf("1234567"), HasSubstr("has 7 bytes, fewer than the 8"));
  EXPECT_THAT(ErrorOf(WithLength(3, "{}")), HasSubstr("header of 3 bytes in a file of 10 bytes"));
  EXPECT_THAT(ErrorOf(WithLength(~uint64_t{0}, "{}")), HasSubstr("accepted: at most 104857600"));
  EXPECT_THAT(ErrorOf(WithLength((100 << 20) + 1, "{}")), HasSubstr("accepted: at most"));
  EXPECT_THAT(ErrorOf(WithLength(0, "")), HasSubstr("does not begin with '{'"));
}

TEST(SafetensorsHeaderTest, RefusesWhatIsNoJsonObject) {
  EXPECT_THAT(ErrorOf(File("[]", 0)), HasSubstr("does not begin with '{'"));
  EXPECT_THAT(ErrorOf(File(" {}", 0)), HasSubstr("does not begin with '{'"));
  EXPECT_THAT(ErrorOf(File("\xef\xbb\xbf{}", 0)), HasSubstr("does not begin with '{'"));
  EXPECT_THAT(ErrorOf(File("{}\n", 0)), HasSubstr("does not end with '}' and spaces"));
  EXPECT_THAT(ErrorOf(File("{} x", 0)), HasSubstr("does not end with '}' and spaces"));
  EXPECT_THAT(ErrorOf(File(std::string("{}\0", 3), 0)), HasSubstr("does not end with '}'"));
  EXPECT_THAT(ErrorOf(File(std::string("{}\0{}", 5), 0)), HasSubstr("NUL byte"));
  EXPECT_THAT(ErrorOf(File("{}{}", 0)), HasSubstr("not valid JSON"));
  EXPECT_THAT(ErrorOf(File("{\"a\":}", 0)), HasSubstr("not valid JSON"));
  EXPECT_THAT(ErrorOf(File("{\"\xff\":1}", 0)), HasSubstr("not valid JSON"));
}

TEST(SafetensorsHeaderTest, RefusesDuplicateNames) {
  EXPECT_THAT(ErrorOf(File(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                           R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                           2)),
              HasSubstr("key \"a\" appears twice"));
  EXPECT_THAT(ErrorOf(File(R"({"a":{"dtype":"U8","dtype":"F32","shape":[1],)"
                           R"("data_offsets":[0,1]}})",
                           1)),
              HasSubstr("key \"dtype\" appears twice"));
}

// One tensor "t" with one thing wrong; 4 bytes of data.
struct TensorCase {
  const char* tensor;
  const char* error;
};

TEST(SafetensorsHeaderTest, RefusesBadTensors) {
  const TensorCase cases[] = {
      {R"(1)", "is no object"},
      {R"({"shape":[1],"data_offsets":[0,4]})", "key \"dtype\" is missing"},
      {R"({"dtype":"F32","data_offsets":[0,4]})", "key \"shape\" is missing"},
      {R"({"dtype":"F32","shape":[1]})", "key \"data_offsets\" is missing"},
      {R"({"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1})", "unknown key \"x\""},
      {R"({"dtype":7,"shape":[1],"data_offsets":[0,4]})", "dtype is no string"},
      {R"({"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]})",
       "dtype \"F8_E4M3\" is not supported; accepted: BF16, F32, F16, F64, I64, I32, U8"},
      {R"({"dtype":"F32","shape":1,"data_offsets":[0,4]})", "shape is no array"},
      {R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})", "shape[0] is \"-1\""},
      {R"({"dtype":"F32","shape":[1,1.0],"data_offsets":[0,4]})", "shape[1] is \"1.0\""},
      {R"({"dtype":"F32","shape":["1"],"data_offsets":[0,4]})", "shape[0] is"},
      {R"({"dtype":"F32","shape":[[1]],"data_offsets":[0,4]})", "shape[0] is \"[1]\""},
      {R"({"dtype":"F32","shape":[[[1]]],"data_offsets":[0,4]})", "nested deeper than 4"},
      {R"({"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,4]})", "shape[0] is"},
      {R"({"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,4]})", "shape[0] is"},
      {R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]})",
       "has more elements than 64 bits can count"},
      {R"({"dtype":"F32","shape":[9223372036854775807],"data_offsets":[0,4]})",
       "has more elements than 64 bits can count"},
      // 2^62 elements of 4 bytes are 2^64 bytes, which a 64-bit product would read as 0.
      {R"({"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]})",
       "has more elements than 64 bits can count"},
      {R"({"dtype":"F32","shape":[1],"data_offsets":4})", "data_offsets is no array of 2"},
      {R"({"dtype":"F32","shape":[1],"data_offsets":[0]})", "data_offsets is no array of 2"},
      {R"({"dtype":"F32","shape":[1],"data_offsets":[0,4,4]})", "data_offsets is no array of 2"},
      {R"({"dtype":"F32","shape":[1],"data_offsets":[-4,0]})", "data_offsets[0] is \"-4\""},
      {R"({"dtype":"F32","shape":[1],"data_offsets":[0,4.0]})", "data_offsets[1] is \"4.0\""},
      {R"({"dtype":"F32","shape":[1],"data_offsets":[0,18446744073709551615]})",
       "data_offsets[1] is"},
      {R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})", "begin at 4, after their end at 0"},
      {R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})",
       "end at 8, but the file has only 4 bytes of data: it is truncated"},
      {R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})",
       "shape [2] of F32 takes 8 bytes, but data_offsets span 4"},
      {R"({"dtype":"F32","shape":[],"data_offsets":[0,0]})",
       "shape [] of F32 takes 4 bytes, but data_offsets span 0"},
      {R"({"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,)"
       R"(1,1],"data_offsets":[0,4]})",
       "has 33 dimensions; accepted: at most 32"},
  };
  for (const TensorCase& c : cases) {
    const std::string error = ErrorOf(File(absl::StrCat(R"({"t":)", c.tensor, "}"), 4));
    EXPECT_THAT(error, HasSubstr(c.error)) << c.tensor;
    if (error.find("nested") == std::string::npos) {
      EXPECT_THAT(error, HasSubstr("tensor \"t\": ")) << c.tensor;
    }
  }
}

std::string TwoTensors(int a_begin, int a_end, int b_begin, int b_end, size_t data_bytes) {
  return File(
      absl::StrCat(R"({"a":{"dtype":"U8","shape":[)", a_end - a_begin, R"(],"data_offsets":[)",
                   a_begin, ",", a_end, R"(]},"b":{"dtype":"U8","shape":[)", b_end - b_begin,
                   R"(],"data_offsets":[)", b_begin, ",", b_end, "]}}"),
      data_bytes);
}

TEST(SafetensorsHeaderTest, RefusesHolesAndOverlaps) {
  EXPECT_EQ(ErrorOf(TwoTensors(0, 4, 4, 8, 8)), "no error");
  EXPECT_EQ(ErrorOf(TwoTensors(4, 8, 0, 4, 8)), "no error");
  EXPECT_THAT(ErrorOf(TwoTensors(0, 4, 3, 8, 8)),
              HasSubstr("tensor \"b\": its data from byte 3 overlap those of tensor \"a\""));
  EXPECT_THAT(ErrorOf(TwoTensors(0, 8, 0, 8, 8)), HasSubstr("overlap"));
  EXPECT_THAT(ErrorOf(TwoTensors(0, 8, 2, 2, 8)), HasSubstr("overlap"));
  EXPECT_THAT(ErrorOf(TwoTensors(0, 4, 5, 8, 8)),
              HasSubstr("tensor \"b\": bytes 4 to 5 of the data before it belong to no tensor"));
  EXPECT_THAT(ErrorOf(TwoTensors(1, 4, 4, 8, 8)), HasSubstr("bytes 0 to 1"));
  EXPECT_THAT(ErrorOf(TwoTensors(0, 4, 4, 8, 9)),
              HasSubstr("bytes 8 to 9 at the end of the data belong to no tensor"));
  EXPECT_THAT(ErrorOf(File("{}", 1)), HasSubstr("bytes 0 to 1 at the end"));
}

TEST(SafetensorsHeaderTest, RefusesMetadataThatAreNotStrings) {
  EXPECT_THAT(ErrorOf(File(R"({"__metadata__":[]})", 0)), HasSubstr("__metadata__ is no object"));
  EXPECT_THAT(ErrorOf(File(R"({"__metadata__":{"a":1}})", 0)),
              HasSubstr("__metadata__: value of \"a\" is no string"));
}

TEST(SafetensorsHeaderTest, HoldsItsLimits) {
  SafetensorsLimits limits;
  limits.max_tensors = 1;
  EXPECT_THAT(ErrorOf(TwoTensors(0, 4, 4, 8, 8), limits),
              HasSubstr("2 tensors; accepted: at most 1"));
  std::string many = "{\"a\":[0";
  for (int i = 0; i < 100; ++i) many += ",0";
  EXPECT_THAT(ErrorOf(File(many + "]}", 0), limits), HasSubstr("more than 32 values"));
  limits.max_header_bytes = 1;
  EXPECT_THAT(ErrorOf(File("{}", 0), limits), HasSubstr("accepted: at most 1"));
}

// Whatever bytes come, the parser returns; what it accepts keeps its promises.
TEST(SafetensorsHeaderTest, SurvivesRandomDamage) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  const std::string good = TwoTensors(0, 4, 4, 8, 8);
  for (int round = 0; round < 20'000; ++round) {
    std::string file = good;
    for (int edits = 1 + random() % 4; edits > 0; --edits) {
      const size_t place = random() % file.size();
      switch (random() % 3) {
        case 0:
          file[place] = static_cast<char>(random());
          break;
        case 1:
          file[place] = "0123456789,:[]{}\"-. "[random() % 20];
          break;
        default:
          file.resize(place + 1);
      }
    }
    const absl::StatusOr<SafetensorsHeader> header = Parse(file);
    if (!header.ok()) continue;
    for (const TensorInfo& tensor : header->tensors) {
      ASSERT_LE(tensor.begin, tensor.end);
      ASSERT_LE(header->data_offset + tensor.end, file.size());
      ASSERT_EQ(NumElements(tensor.shape) * DTypeSize(tensor.dtype), tensor.size_bytes());
    }
  }
}

}  // namespace
}  // namespace plumbline
