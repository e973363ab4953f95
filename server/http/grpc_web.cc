#include "server/http/grpc_web.h"

#include <grpcpp/support/status.h>

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status.h"
#include "server/error_details.h"

namespace plumbline::server {
namespace {

constexpr size_t kHeaderBytes = 5;
constexpr unsigned char kTrailerFlag = 0x80;
constexpr unsigned char kCompressedFlag = 0x01;

absl::Status BadBody(absl::string_view what) {
  return WithReason(FieldError("body", what, "one uncompressed gRPC-Web message frame"),
                    "INVALID_FIELD");
}

uint32_t FrameSize(absl::string_view header) {
  uint32_t size = 0;
  for (const char c : header.substr(1, 4)) size = size << 8 | static_cast<unsigned char>(c);
  return size;
}

std::string Frame(unsigned char flags, absl::string_view bytes) {
  std::string frame(1, static_cast<char>(flags));
  for (int shift = 24; shift >= 0; shift -= 8) {
    frame.push_back(static_cast<char>(bytes.size() >> shift & 0xff));
  }
  frame.append(bytes.data(), bytes.size());
  return frame;
}

// Text may be several pieces of base64, each padded by itself.
absl::StatusOr<std::string> DecodeText(absl::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    const size_t padding = text.find('=');
    const size_t end = padding == absl::string_view::npos
                           ? text.size()
                           : std::min(text.size(), padding / 4 * 4 + 4);
    std::string piece;
    if (!absl::Base64Unescape(text.substr(0, end), &piece)) return BadBody("is no base64");
    bytes += piece;
    text.remove_prefix(end);
  }
  return bytes;
}

std::string Encode(GrpcWebForm form, std::string frame) {
  return form == GrpcWebForm::kText ? absl::Base64Escape(frame) : frame;
}

// As the gRPC protocol wants a message in a header.
std::string PercentEncoded(absl::string_view text) {
  std::string encoded;
  for (const char c : text) {
    if (c >= ' ' && c <= '~' && c != '%') {
      encoded.push_back(c);
    } else {
      const absl::string_view hex = "0123456789ABCDEF";
      const auto byte = static_cast<unsigned char>(c);
      encoded.append({'%', hex[byte >> 4], hex[byte & 15]});
    }
  }
  return encoded;
}

}  // namespace

std::optional<GrpcWebForm> FormOfContentType(absl::string_view content_type) {
  const std::string type = absl::AsciiStrToLower(
      absl::StripAsciiWhitespace(content_type.substr(0, content_type.find(';'))));
  if (type == "application/grpc-web" || type == "application/grpc-web+proto") {
    return GrpcWebForm::kBinary;
  }
  if (type == "application/grpc-web-text" || type == "application/grpc-web-text+proto") {
    return GrpcWebForm::kText;
  }
  return std::nullopt;
}

absl::string_view ContentTypeOf(GrpcWebForm form) {
  return form == GrpcWebForm::kText ? "application/grpc-web-text+proto"
                                    : "application/grpc-web+proto";
}

absl::StatusOr<std::string> DecodeRequest(GrpcWebForm form, absl::string_view body) {
  std::string decoded;
  if (form == GrpcWebForm::kText) {
    PLUMBLINE_ASSIGN_OR_RETURN(decoded, DecodeText(body));
    body = decoded;
  }
  if (body.size() < kHeaderBytes) return BadBody("is shorter than the header of a frame");
  const auto flags = static_cast<unsigned char>(body[0]);
  if (flags == kCompressedFlag) {
    return WithReason(absl::UnimplementedError("compressed messages are not taken"),
                      "UNIMPLEMENTED");
  }
  if (flags != 0) return BadBody("begins with a frame that is no message");
  const size_t size = FrameSize(body);
  if (body.size() - kHeaderBytes < size) return BadBody("ends within a frame");
  absl::string_view rest = body.substr(kHeaderBytes + size);
  // A client may send trailers of its own, which say nothing.
  if (rest.size() >= kHeaderBytes && static_cast<unsigned char>(rest[0]) == kTrailerFlag &&
      rest.size() - kHeaderBytes == FrameSize(rest)) {
    rest = "";
  }
  if (!rest.empty()) return BadBody("goes on after the message");
  return std::string(body.substr(kHeaderBytes, size));
}

std::string EncodeMessage(GrpcWebForm form, absl::string_view message) {
  return Encode(form, Frame(0, message));
}

std::string EncodeTrailers(GrpcWebForm form, const absl::Status& status,
                           const HttpHeaders& metadata) {
  std::string lines = absl::StrCat("grpc-status: ", static_cast<int>(status.code()), "\r\n");
  if (!status.ok()) {
    absl::StrAppend(&lines, "grpc-message: ", PercentEncoded(status.message()), "\r\n");
    if (const std::string details = ToClientStatus(status).error_details(); !details.empty()) {
      absl::StrAppend(&lines, "grpc-status-details-bin: ", absl::Base64Escape(details), "\r\n");
    }
  }
  for (const auto& [name, value] : metadata) {
    absl::StrAppend(&lines, name, ": ",
                    absl::EndsWith(name, "-bin") ? absl::Base64Escape(value) : value, "\r\n");
  }
  return Encode(form, Frame(kTrailerFlag, lines));
}

std::optional<absl::Duration> ParseGrpcTimeout(absl::string_view header) {
  int64_t value = 0;
  if (header.size() < 2 || header.size() > 9) return std::nullopt;
  const absl::string_view digits = header.substr(0, header.size() - 1);
  if (!std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit) ||
      !absl::SimpleAtoi(digits, &value)) {
    return std::nullopt;
  }
  switch (header.back()) {
    case 'H':
      return absl::Hours(value);
    case 'M':
      return absl::Minutes(value);
    case 'S':
      return absl::Seconds(value);
    case 'm':
      return absl::Milliseconds(value);
    case 'u':
      return absl::Microseconds(value);
    case 'n':
      return absl::Nanoseconds(value);
    default:
      return std::nullopt;
  }
}

}  // namespace plumbline::server
