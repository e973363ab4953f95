#include "server/http/grpc_web.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace plumbline::server {
namespace {

const std::string kFrame("\0\0\0\0\3abc", 8);

TEST(GrpcWebTest, ContentTypes) {
  EXPECT_EQ(FormOfContentType("application/grpc-web+proto"), GrpcWebForm::kBinary);
  EXPECT_EQ(FormOfContentType("Application/gRPC-Web; charset=x"), GrpcWebForm::kBinary);
  EXPECT_EQ(FormOfContentType("application/grpc-web-text"), GrpcWebForm::kText);
  for (const char* other : {"", "application/grpc", "application/json", "text/plain",
                            "application/grpc-web+json", "application/grpc-webx"}) {
    EXPECT_FALSE(FormOfContentType(other).has_value()) << other;
  }
}

TEST(GrpcWebTest, OneMessageOfEitherForm) {
  EXPECT_EQ(DecodeRequest(GrpcWebForm::kBinary, kFrame).value(), "abc");
  EXPECT_EQ(DecodeRequest(GrpcWebForm::kText, absl::Base64Escape(kFrame)).value(), "abc");
  // Padded piece by piece, as a client that streams encodes it.
  EXPECT_EQ(DecodeRequest(GrpcWebForm::kText, absl::StrCat(absl::Base64Escape(kFrame.substr(0, 5)),
                                                           absl::Base64Escape("abc")))
                .value(),
            "abc");
  EXPECT_EQ(DecodeRequest(GrpcWebForm::kBinary, std::string(5, '\0')).value(), "");
  EXPECT_EQ(
      DecodeRequest(GrpcWebForm::kBinary, absl::StrCat(kFrame, std::string("\x80\0\0\0\0", 5)))
          .value(),
      "abc");
}

TEST(GrpcWebTest, OtherBodiesAreRefusedNamingTheField) {
  for (const std::string& body :
       {std::string(), std::string(4, '\0'), kFrame.substr(0, 7), kFrame + "x", kFrame + kFrame,
        std::string("\xff\xff\xff\xff\xff", 5), std::string("\0\xff\xff\xff\xff", 5)}) {
    const absl::Status status = DecodeRequest(GrpcWebForm::kBinary, body).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << absl::CHexEscape(body);
    EXPECT_EQ(GetFieldViolations(status).size(), 1u);
  }
  for (const char* text : {"A", "AAAA=AAA", "====", "\xff\xff\xff\xff", "AA=A"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeRequest(GrpcWebForm::kText, text).status())) << text;
  }
  EXPECT_TRUE(absl::IsUnimplemented(
      DecodeRequest(GrpcWebForm::kBinary, std::string("\1\0\0\0\0", 5)).status()));
}

TEST(GrpcWebTest, Answers) {
  EXPECT_EQ(EncodeMessage(GrpcWebForm::kBinary, "abc"), kFrame);
  EXPECT_EQ(EncodeMessage(GrpcWebForm::kText, "abc"), absl::Base64Escape(kFrame));
  const std::string ok = EncodeTrailers(GrpcWebForm::kBinary, absl::OkStatus(), {{"a", "b"}});
  EXPECT_EQ(ok, std::string("\x80\0\0\0\x16", 5) + "grpc-status: 0\r\na: b\r\n");
  const std::string bad =
      EncodeTrailers(GrpcWebForm::kBinary, FieldError("f", "100% wrong\r\nx: y \xc3\xa4"), {});
  EXPECT_TRUE(absl::StrContains(bad, "grpc-status: 3\r\n"));
  EXPECT_TRUE(absl::StrContains(bad, "grpc-message: f: 100%25 wrong%0D%0Ax: y %C3%A4\r\n")) << bad;
  EXPECT_TRUE(absl::StrContains(bad, "grpc-status-details-bin: "));
}

TEST(GrpcWebTest, Timeouts) {
  EXPECT_EQ(ParseGrpcTimeout("1H"), absl::Hours(1));
  EXPECT_EQ(ParseGrpcTimeout("2M"), absl::Minutes(2));
  EXPECT_EQ(ParseGrpcTimeout("99999999S"), absl::Seconds(99999999));
  EXPECT_EQ(ParseGrpcTimeout("5m"), absl::Milliseconds(5));
  EXPECT_EQ(ParseGrpcTimeout("6u"), absl::Microseconds(6));
  EXPECT_EQ(ParseGrpcTimeout("7n"), absl::Nanoseconds(7));
  for (const char* bad : {"", "S", "1", "1s", "-1S", "+1S", " 1S", "1.5S", "123456789S"}) {
    EXPECT_FALSE(ParseGrpcTimeout(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace plumbline::server
