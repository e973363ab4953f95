#include "server/store/step_upload.h"

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "common/sha256.h"
#include "common/status.h"
#include "gtest/gtest.h"

namespace plumbline::server {
namespace {

v1::PutStepRequest::Header Header(const std::vector<std::string>& outputs) {
  v1::PutStepRequest::Header header;
  header.mutable_identity()->set_sha256(std::string(64, 'a'));
  header.mutable_identity()->add_parts()->set_name("kernel");
  header.mutable_identity()->add_parts()->set_name("seed");
  header.set_total_steps(4);
  v1::StepRecord& record = *header.mutable_record();
  record.set_index(3);
  record.set_input_digest(std::string(64, 'b'));
  record.add_inputs()->set_name("rows");
  record.mutable_inputs(0)->set_sha256(std::string(64, 'c'));
  for (size_t i = 0; i < outputs.size(); ++i) {
    v1::TensorDigest& output = *record.add_outputs();
    output.set_name(std::string(1, static_cast<char>('p' + i)));
    output.set_size_bytes(static_cast<int64_t>(outputs[i].size()));
    output.set_sha256(Sha256Hex(outputs[i]));
  }
  return header;
}

v1::StreamTrailer Trailer(const std::string& bytes) {
  v1::StreamTrailer trailer;
  trailer.set_size_bytes(static_cast<int64_t>(bytes.size()));
  trailer.set_sha256(Sha256Hex(bytes));
  return trailer;
}

std::string Text(const std::vector<absl::string_view>& pieces) { return absl::StrJoin(pieces, ""); }

TEST(StepUploadTest, CutsTheStreamIntoTensorsWhereverChunksEnd) {
  const std::vector<std::string> outputs = {"", "abcdef", "", "ghi", ""};
  const std::string all = absl::StrJoin(outputs, "");
  for (size_t chunk = 1; chunk <= all.size() + 1; ++chunk) {
    StepUpload upload(Header(outputs));
    for (size_t i = 0; i < all.size(); i += chunk) {
      ASSERT_TRUE(upload.Append(all.substr(i, chunk)).ok());
    }
    ASSERT_TRUE(upload.Finish(Trailer(all)).ok());
    EXPECT_TRUE(upload.CheckDigests().ok()) << upload.CheckDigests();
    ASSERT_EQ(upload.outputs().size(), outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) EXPECT_EQ(Text(upload.outputs()[i]), outputs[i]);
  }
}

TEST(StepUploadTest, RefusesTooManyAndTooFewBytes) {
  StepUpload more(Header({"abc"}));
  EXPECT_TRUE(absl::IsInvalidArgument(more.Append("abcd")));
  StepUpload fewer(Header({"abc", "d"}));
  ASSERT_TRUE(fewer.Append("abc").ok());
  EXPECT_EQ(GetReason(fewer.Finish(Trailer("abc"))), "DIGEST_MISMATCH");
  StepUpload other_length(Header({"abc"}));
  ASSERT_TRUE(other_length.Append("abc").ok());
  EXPECT_EQ(GetReason(other_length.Finish(Trailer("abcd"))), "DIGEST_MISMATCH");
}

TEST(StepUploadTest, ChecksEveryDigest) {
  StepUpload wrong_tensor(Header({"abc", "def"}));
  ASSERT_TRUE(wrong_tensor.Append("abcdeF").ok());
  ASSERT_TRUE(wrong_tensor.Finish(Trailer("abcdeF")).ok());
  EXPECT_NE(wrong_tensor.CheckDigests().message().find("step 3: q"), std::string::npos);
  StepUpload wrong_stream(Header({"abc", "def"}));
  ASSERT_TRUE(wrong_stream.Append("abcdef").ok());
  ASSERT_TRUE(wrong_stream.Finish(Trailer("abcdeF")).ok());
  EXPECT_EQ(GetReason(wrong_stream.CheckDigests()), "DIGEST_MISMATCH");
}

TEST(StepUploadTest, NamesTheFieldOfABadHeader) {
  ASSERT_TRUE(CheckStepHeader(Header({"abc"})).ok());
  const auto field = [](const v1::PutStepRequest::Header& header) {
    const std::vector<FieldViolation> violations = GetFieldViolations(CheckStepHeader(header));
    return violations.empty() ? std::string() : violations[0].field;
  };
  v1::PutStepRequest::Header header = Header({"abc"});
  header.mutable_identity()->set_sha256("abc");
  EXPECT_EQ(field(header), "header.identity.sha256");
  header = Header({"abc"});
  header.mutable_identity()->mutable_parts()->SwapElements(0, 1);
  EXPECT_EQ(field(header), "header.identity.parts[1].name");
  header = Header({"abc"});
  header.mutable_identity()->clear_parts();
  EXPECT_EQ(field(header), "header.identity.parts");
  header = Header({"abc"});
  header.set_total_steps(0);
  EXPECT_EQ(field(header), "header.total_steps");
  header = Header({"abc"});
  header.mutable_record()->set_index(4);
  EXPECT_EQ(field(header), "header.record.index");
  header = Header({"abc"});
  header.mutable_record()->mutable_outputs(0)->set_size_bytes(-1);
  EXPECT_EQ(field(header), "header.record.outputs[0].size_bytes");
  header = Header({"abc", "def"});
  for (auto& output : *header.mutable_record()->mutable_outputs()) {
    output.set_size_bytes(int64_t{300} << 20);
  }
  EXPECT_EQ(field(header), "header.record.outputs");
  header = Header({});
  EXPECT_EQ(field(header), "header.record.outputs");
  header = Header({"abc"});
  header.mutable_record()->set_seconds(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(field(header), "header.record.seconds");
  header = Header({"abc"});
  header.clear_record();
  EXPECT_EQ(field(header), "");
}

}  // namespace
}  // namespace plumbline::server
