#include "common/tls/certificates.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/tls/test_certificates.h"

namespace plumbline {
namespace {

constexpr absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

std::string Refusal(const TestCertificate& certificate) {
  const absl::Status status = CheckIdentity({"tls-cert", "server.pem", certificate.certificate},
                                            {"tls-key", "server.key", certificate.key}, kNow);
  EXPECT_EQ(status.message().find('\n'), absl::string_view::npos);
  return std::string(status.message());
}

TestSubject Server(const std::string& key) {
  TestSubject subject;
  subject.common_names = {"server"};
  subject.key = key;
  return subject;
}

TEST(CertificatesTest, TakesStrongKeys) {
  TestAuthority authority;
  for (const char* const key : {"RSA-2048", "P-256", "P-384", "P-521", "ED25519"}) {
    EXPECT_EQ(Refusal(authority.Issue(Server(key))), "") << key;
  }
}

TEST(CertificatesTest, SaysInOneLineWhichFileHasAWeakKeyAndWhatIsRight) {
  TestAuthority authority;
  constexpr char kAccepted[] =
      "; accepted: RSA of 2048 to 16384 bits, EC on P-256, P-384 or P-521, or Ed25519";
  EXPECT_EQ(Refusal(authority.Issue(Server("RSA-1024"))),
            absl::StrCat("tls-cert: the certificate of CN=server in server.pem has an RSA key of "
                         "1024 bits",
                         kAccepted));
  for (const char* const curve : {"secp256k1", "P-192", "brainpoolP256r1"}) {
    const std::string refusal = Refusal(authority.Issue(Server(curve)));
    EXPECT_TRUE(absl::StrContains(refusal, "has an EC key on ")) << refusal;
    EXPECT_TRUE(absl::EndsWith(refusal, kAccepted)) << refusal;
  }
}

TEST(CertificatesTest, WeakSignaturesAreRefusedAndSoAreWeakAuthoritiesInTheChain) {
  TestAuthority authority;
  TestSubject subject = Server("P-256");
  subject.digest = "SHA1";
  EXPECT_EQ(Refusal(authority.Issue(subject)),
            "tls-cert: the certificate of CN=server in server.pem is signed with SHA1; accepted: "
            "SHA-256, SHA-384 or SHA-512");
  TestAuthority weak("RSA-1024");
  TestCertificate chain = weak.Issue("server");
  EXPECT_EQ(Refusal(chain), "");
  chain.certificate += weak.certificate();
  EXPECT_TRUE(absl::StrContains(Refusal(chain), "CN=Test authority in server.pem has an RSA key"));
  EXPECT_TRUE(absl::StrContains(
      CheckAuthorities({"tls-client-ca", "ca.pem", weak.certificate()}).message(),
      "tls-client-ca: the certificate of CN=Test authority in ca.pem has an RSA key of 1024 bits"));
  EXPECT_TRUE(CheckAuthorities({"tls-client-ca", "ca.pem", authority.certificate()}).ok());
}

TEST(CertificatesTest, ACertificateHasOneNameOrNone) {
  TestAuthority authority;
  const auto name_of = [&authority](std::vector<std::string> common_names) {
    TestSubject subject = Server("P-256");
    subject.common_names = std::move(common_names);
    return CommonNameOf(ParseCertificates(authority.Issue(subject).certificate).at(0).get());
  };
  EXPECT_EQ(name_of({"node-1"}), "node-1");
  EXPECT_EQ(name_of({"M\xc3\xbcller"}), "M\xc3\xbcller");
  EXPECT_EQ(name_of({}), std::nullopt);
  EXPECT_EQ(name_of({"node-1", "admin"}), std::nullopt);
  EXPECT_EQ(name_of({"admin", "admin"}), std::nullopt);
}

TEST(CertificatesTest, NamesAreShownAsPrintableText) {
  TestAuthority authority;
  TestSubject subject = Server("P-256");
  subject.common_names = {"a\nb\xe2\x80\xae"};
  const auto certificates = ParseCertificates(authority.Issue(subject).certificate);
  EXPECT_EQ(IssuerText(certificates.at(0).get()), "CN=Test authority");
  const std::string text = SubjectText(certificates.at(0).get());
  EXPECT_TRUE(absl::StartsWith(text, "CN=a\\0Ab\\")) << text;
}

}  // namespace
}  // namespace plumbline
