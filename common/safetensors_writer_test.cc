#include "common/safetensors_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "common/files.h"
#include "common/safetensors.h"

namespace plumbline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SafetensorsWriterTest : public ::testing::Test {
 protected:
  SafetensorsWriterTest() {
    std::string pattern = ::testing::TempDir() + "/safetensors_writer_XXXXXX";
    folder_ = std::filesystem::canonical(mkdtemp(pattern.data()));
    path_ = folder_ + "/f.safetensors";
  }
  ~SafetensorsWriterTest() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
  std::string path_;
};

TEST_F(SafetensorsWriterTest, WritesTheFormatByteForByte) {
  const uint8_t bytes[] = {1, 2, 3, 4};
  ASSERT_TRUE(WriteSafetensors(path_,
                               {{{"b", DType::kU8, {1}}, {bytes, 1}},
                                {{"\"\xc3\xa9\n", DType::kU8, {}}, {bytes + 1, 1}},
                                {{"a", DType::kBF16, {1, 1}}, {bytes + 2, 2}},
                                {{"e", DType::kF32, {0}}, {}}},
                               {{"k", "v\\"}})
                  .ok());
  // Written out by hand from the description of the format.
  const std::string json = R"({"__metadata__":{"k":"v\\"},)"
                           R"("e":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},)"
                           R"("a":{"dtype":"BF16","shape":[1,1],"data_offsets":[0,2]},)"
                           "\"\\\"\xc3\xa9\\n\":"
                           R"({"dtype":"U8","shape":[],"data_offsets":[2,3]},)"
                           R"("b":{"dtype":"U8","shape":[1],"data_offsets":[3,4]}})";
  ASSERT_EQ(json.size(), 245u);
  const std::string expected =
      std::string("\xf8\0\0\0\0\0\0\0", 8) + json + "   " + "\x03\x04\x02\x01";
  EXPECT_EQ(*ReadFile(path_, 1000), expected);
}

TEST_F(SafetensorsWriterTest, EveryTensorIsAligned) {
  const std::vector<uint8_t> bytes(64);
  std::vector<TensorView> views;
  for (DType dtype : {DType::kU8, DType::kF16, DType::kI32, DType::kF64, DType::kBF16, DType::kI64,
                      DType::kF32}) {
    views.push_back({{std::string(DTypeName(dtype)), dtype, {3}},
                     absl::MakeConstSpan(bytes).subspan(0, 3 * DTypeSize(dtype))});
  }
  ASSERT_TRUE(WriteSafetensors(path_, views).ok());
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  std::vector<std::string> order;
  for (const TensorInfo& tensor : file->tensors()) {
    order.push_back(tensor.name);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(file->Bytes(tensor).data()) % DTypeSize(tensor.dtype),
              0u);
  }
  EXPECT_THAT(order, ElementsAre("I64", "F64", "F32", "I32", "BF16", "F16", "U8"));
}

TEST_F(SafetensorsWriterTest, TheFileAppearsOnlyWhenFinished) {
  const uint8_t byte[] = {9};
  {
    auto writer =
        SafetensorsWriter::Create(path_, {{"a", DType::kU8, {1}}, {"b", DType::kU8, {1}}});
    ASSERT_TRUE(writer.ok()) << writer.status();
    ASSERT_TRUE(writer->Write("b", byte).ok());
    EXPECT_EQ(writer->Write("b", byte).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(writer->Write("c", byte).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(writer->Write("a", {}).message(), HasSubstr("takes 1 bytes, not 0"));
    const absl::Status early = writer->Finish();
    EXPECT_EQ(early.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(early.message(), HasSubstr("tensor \"a\" was not written"));
    EXPECT_FALSE(std::filesystem::exists(path_));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(SafetensorsWriterTest, RefusesWhatNoReaderWouldTake) {
  const auto error = [this](const std::vector<TensorSpec>& specs,
                            const std::map<std::string, std::string>& metadata = {}) {
    const absl::Status status = SafetensorsWriter::Create(path_, specs, metadata).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  const int64_t large = int64_t{1} << 62;
  EXPECT_THAT(error({{"", DType::kU8, {1}}}), HasSubstr("cannot name a tensor"));
  EXPECT_THAT(error({{"__metadata__", DType::kU8, {1}}}), HasSubstr("cannot name a tensor"));
  EXPECT_THAT(error({{"a", DType::kU8, {1}}, {"a", DType::kF32, {1}}}),
              HasSubstr("two tensors are named \"a\""));
  EXPECT_THAT(error({{"\xff", DType::kU8, {1}}}), HasSubstr("not valid UTF-8"));
  EXPECT_THAT(error({}, {{"k", "\xff"}}), HasSubstr("not valid UTF-8"));
  EXPECT_THAT(error({{"a", DType::kU8, {-1}}}), HasSubstr("negative"));
  EXPECT_THAT(error({{"a", DType::kF32, {large}}}), HasSubstr("beyond 64 bits"));
  EXPECT_THAT(error({{"a", DType::kU8, {large}}, {"b", DType::kU8, {large}}}),
              HasSubstr("more than 2^63-1 bytes"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(SafetensorsWriterTest, PartsInAnyOrderAreTheWhole) {
  const std::vector<uint8_t> bytes = {1, 2, 3, 4, 5, 6};
  absl::StatusOr<SafetensorsWriter> writer =
      SafetensorsWriter::Create(path_, {{"t", DType::kU8, {6}}});
  ASSERT_TRUE(writer.ok()) << writer.status();
  const absl::Span<const uint8_t> all = bytes;
  ASSERT_TRUE(writer->WritePart("t", 4, all.subspan(4)).ok());
  EXPECT_THAT(writer->Finish().ToString(), HasSubstr("\"t\" was not written to its end"));
  EXPECT_THAT(writer->WritePart("t", 6, all.subspan(5)).ToString(), HasSubstr("takes 6 bytes"));
  EXPECT_THAT(writer->WritePart("t", 0, all.subspan(0, 5)).ToString(), HasSubstr("behind 2"));
  EXPECT_THAT(writer->Write("t", all).ToString(), HasSubstr("is written already"));
  EXPECT_THAT(writer->WritePart("u", 0, all).ToString(), HasSubstr("was not declared"));
  ASSERT_TRUE(writer->WritePart("t", 0, all.subspan(0, 4)).ok());
  ASSERT_TRUE(writer->Finish().ok());
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(*file->Bytes("t"), all);
}

}  // namespace
}  // namespace plumbline
