// Bodies of gRPC-Web requests.
#include "server/http/grpc_web.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plumbline;          // NOLINT
  using namespace plumbline::server;  // NOLINT
  fuzz::Input input(data, size);
  const GrpcWebForm form = input.Byte() % 2 == 0 ? GrpcWebForm::kBinary : GrpcWebForm::kText;
  const absl::string_view body = input.Rest();
  const absl::StatusOr<std::string> message = DecodeRequest(form, body);
  if (message.ok()) {
    // The frame of an answer is that of a request.
    FUZZ_REQUIRE(*DecodeRequest(form, EncodeMessage(form, *message)) == *message);
  }
  const std::string trailers =
      EncodeTrailers(GrpcWebForm::kBinary, absl::InvalidArgumentError(body), {});
  // Whatever the message is, it stays within its line.
  size_t lines = 0;
  for (const char c : trailers.substr(5)) lines += c == '\n' ? 1 : 0;
  FUZZ_REQUIRE(lines == 3);
  FormOfContentType(body);
  ParseGrpcTimeout(body);
  return 0;
}
