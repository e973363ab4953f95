#ifndef PLUMBLINE_SERVER_TESTING_TEST_CERTIFICATES_H_
#define PLUMBLINE_SERVER_TESTING_TEST_CERTIFICATES_H_

#include <memory>
#include <string>

#include "absl/time/time.h"

namespace plumbline::server {

// A certificate and its key, PEM.
struct TestCertificate {
  std::string certificate;
  std::string key;
};

// Somebody who signs certificates, for one test. Ends the process where OpenSSL fails.
class TestAuthority {
 public:
  TestAuthority();
  ~TestAuthority();
  TestAuthority(const TestAuthority&) = delete;
  TestAuthority& operator=(const TestAuthority&) = delete;

  const std::string& certificate() const;  // PEM.
  // For 127.0.0.1, ::1 and localhost, each with a serial number one above the last.
  TestCertificate Issue(const std::string& common_name, absl::Time from = absl::UnixEpoch(),
                        absl::Time until = absl::FromUnixSeconds(4'000'000'000));

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

// Serial number of the certificate that the TLS server on 127.0.0.1:`port` presents; 0: none.
long SerialPresented(int port);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_TESTING_TEST_CERTIFICATES_H_
