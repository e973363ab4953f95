#ifndef PLUMBLINE_COMMON_TLS_TEST_CERTIFICATES_H_
#define PLUMBLINE_COMMON_TLS_TEST_CERTIFICATES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace plumbline {

// A certificate and its key, PEM.
struct TestCertificate {
  std::string certificate;
  std::string key;
};

// What is to be certified.
struct TestSubject {
  std::vector<std::string> common_names;
  std::string key = "P-256";  // Or another curve, "ED25519", "RSA-2048" with any number of bits.
  std::string alternative_names = "DNS:localhost,IP:127.0.0.1,IP:::1";
  std::string digest = "SHA256";  // Of the signature.
  absl::Time from = absl::UnixEpoch();
  absl::Time until = absl::FromUnixSeconds(4'000'000'000);
};

// Somebody who signs certificates, for one test. Ends the process where OpenSSL fails.
class TestAuthority {
 public:
  explicit TestAuthority(const std::string& key = "P-256");
  ~TestAuthority();
  TestAuthority(const TestAuthority&) = delete;
  TestAuthority& operator=(const TestAuthority&) = delete;

  const std::string& certificate() const;  // PEM.
  // Each with a serial number one above the last.
  TestCertificate Issue(const TestSubject& subject);
  // For 127.0.0.1, ::1 and localhost.
  TestCertificate Issue(const std::string& common_name, absl::Time from = absl::UnixEpoch(),
                        absl::Time until = absl::FromUnixSeconds(4'000'000'000));

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

// Serial number of the certificate that the TLS server on 127.0.0.1:`port` presents; 0: none.
long SerialPresented(int port);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_TLS_TEST_CERTIFICATES_H_
