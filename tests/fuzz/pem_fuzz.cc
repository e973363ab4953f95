// PEM files: certificates, keys and authorities of TLS, keys of signatures.
#include <string>

#include "common/evidence/signature.h"
#include "common/printable.h"
#include "common/tls/certificates.h"
#include "common/tls/tls_identity.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plumbline;  // NOLINT
  fuzz::Input input(data, size);
  const absl::string_view certificate = input.Text();
  const absl::string_view key = input.Text();
  const absl::string_view rest = input.Rest();
  const fuzz::MemoryFile certificate_file(certificate);
  const fuzz::MemoryFile key_file(key);
  const fuzz::MemoryFile authority_file(rest);
  const auto identity =
      LoadTlsIdentity({certificate_file.path(), key_file.path(), authority_file.path()},
                      absl::FromUnixSeconds(1'800'000'000));
  if (!identity.ok()) FUZZ_REQUIRE(absl::IsInvalidArgument(identity.status()));
  for (const Certificate& each : ParseCertificates(std::string(certificate))) {
    CommonNameOf(each.get()).reset();
    FUZZ_REQUIRE(!HostNamesOf(each.get()).empty());
    for (const std::string& name : {SubjectText(each.get()), IssuerText(each.get())}) {
      FUZZ_REQUIRE(Printable(name) == name);
    }
  }
  VerifyEd25519(rest, "message", key).IgnoreError();
  if (const auto public_key = PublicKeyOf(rest); public_key.ok()) {
    const auto signature = SignEd25519(rest, "message");
    FUZZ_REQUIRE(signature.ok() && VerifyEd25519(*public_key, "message", *signature).value());
  }
  return 0;
}
